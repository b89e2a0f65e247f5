"""A subscriber that believes nothing: the law of the log, checked event by event."""

from typing import Any

VERSION_EVENTS = {"feed.dataset.updated", "feed.dataset.resync_required"}


def check_log(events: list[dict[str, Any]]) -> dict[str, int | None]:
    """The datasets delivered at the end with the version held of each.

    Raises AssertionError where numbers are not consecutive from 1, a dataset speaks that did not
    join, or a version does not follow from the one before it.
    """
    numbers = [int(event["id"][4:]) for event in events]
    assert numbers == list(range(1, len(numbers) + 1))
    current: dict[str, int | None] = {}
    for event in events:
        _check(event["type"], event["data"], current)
    return current


def _check(kind: str, data: dict[str, Any], current: dict[str, int | None]) -> None:
    dataset = data["datasetId"]
    if kind == "feed.dataset.added":
        assert dataset not in current
        current[dataset] = data["version"]
        return
    assert dataset in current
    held = current[dataset]
    if kind == "feed.dataset.removed":
        del current[dataset]
    elif kind == "feed.dataset.delayed":
        assert data["version"] == held
    else:
        assert kind in VERSION_EVENTS
        assert data["version"] > (held or 0)
        assert data.get("previousVersion", held) == held
        assert kind == "feed.dataset.updated" or held is None
        current[dataset] = data["version"]
