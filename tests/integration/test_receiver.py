"""What `ploti webhooks listen` hands on: each event of each subscription once."""

import json
import threading
from datetime import UTC, datetime

import httpx2
from standardwebhooks import Webhook as Official

from ploti.client.receiver import Receiver
from ploti.model.webhook import Message

SECRET = "whsec_" + "A" * 43 + "="


def event(number: int, subscription: str) -> str:
    return json.dumps(
        {
            "id": f"evt_{number:012d}",
            "type": "feed.dataset.removed",
            "timestamp": "2026-10-18T06:13:02.000Z",
            "subscriptionId": subscription,
            "data": {"datasetId": "ds_a", "reason": "plan_changed"},
        }
    )


def post(url: str, body: str, *, delivery: str) -> int:
    now = datetime.now(UTC)
    headers = {
        "webhook-id": delivery,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Official(SECRET).sign(delivery, now, body),
    }
    return httpx2.post(url, content=body, headers=headers).status_code


def test_the_ids_of_two_subscriptions_repeat_and_each_is_handed_on_once_r156_s51() -> None:
    taken: list[bytes] = []

    def take(body: bytes, _: Message) -> None:
        taken.append(body)

    def refused(reason: str) -> None:
        raise AssertionError(reason)

    with Receiver("127.0.0.1", 0, secret=SECRET, take=take, refused=refused) as receiver:
        serving = threading.Thread(target=receiver.serve_forever)
        serving.start()
        sent = [event(7, "sub_a"), event(7, "sub_b"), event(8, "sub_a")]
        answers = [
            post(receiver.url, body, delivery=f"msg_{number}")
            for number, body in enumerate([*sent, *sent])
        ]
        receiver.shutdown()
        serving.join()
    assert answers == [204] * 6
    assert [body.decode() for body in taken] == sent
