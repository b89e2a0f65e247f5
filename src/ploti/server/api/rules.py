"""What bodies must be besides their types, as JSON Schema says it; the use cases are the judges."""

from __future__ import annotations

import re

from ploti.model.account import (
    NewKey,
    NewMember,
    NewPlan,
    NewWorkspace,
    PlanPatch,
    WorkspacePatch,
)
from ploti.model.event import EventType
from ploti.model.ids import (
    DATASET_FORM,
    EVENT_FORM,
    LONGEST_DATASET,
    LONGEST_PLAN,
    PLAN_FORM,
    START,
)
from ploti.model.subscription import NewSubscription, Selection, SubscriptionPatch
from ploti.model.webhook import NOW, NewWebhook, Resume, WebhookPatch
from ploti.server.deliver.endpoint import LONGEST_URL
from ploti.server.membership.selection import MOST_ENTRIES
from ploti.server.service import change_subscription
from ploti.server.service.manage_members import PERMISSIONS
from ploti.server.service.manage_workspaces import (
    LONGEST_NAME,
    MOST_DATASETS,
    MOST_PATHS,
    NAME_FORM,
)
from ploti.server.sources.fields import LONGEST_PATH, PATH_FORM

Rules = dict[str, object]
Fields = dict[str, Rules]


def _text(form: re.Pattern[str], *, longest: int) -> Rules:
    return {"type": "string", "pattern": f"^(?:{form.pattern})$", "maxLength": longest}


def _list(of: Rules, *, most: int, least: int = 0) -> Rules:
    return {"items": of, "minItems": least, "maxItems": most}


PATH = _text(PATH_FORM, longest=LONGEST_PATH)
_DATASET = _text(DATASET_FORM, longest=LONGEST_DATASET)
_NAME = _text(NAME_FORM, longest=LONGEST_NAME)
_SELECTION: Fields = {
    "places": _list(PATH, most=MOST_ENTRIES),
    "topics": _list(PATH, most=MOST_ENTRIES),
    "datasets": _list(_DATASET, most=MOST_ENTRIES),
}
_TERMS: Fields = {
    "topics": _list(PATH, least=1, most=MOST_PATHS),
    "datasets": _list(_DATASET, least=1, most=MOST_DATASETS),
}
_WORKSPACE: Fields = {"name": _NAME, "coverage": _list(PATH, least=1, most=MOST_PATHS)}
_SUBSCRIPTION: Fields = _SELECTION | {"name": {"maxLength": change_subscription.LONGEST_NAME}}
_WEBHOOK: Fields = {"url": {"format": "uri", "maxLength": LONGEST_URL}, "events": {"minItems": 1}}
EVENT = _text(EVENT_FORM, longest=len(START))
TYPES: Rules = {"type": "array", "items": {"enum": [*EventType]}, "minItems": 1}
_START = re.compile(f"{NOW}|{EVENT_FORM.pattern}")

ANY_TEXT: Rules = {"pattern": r"^[^\x00]*$"}
"""Of every text in a body: no database keeps a NUL."""

FIELDS: dict[type, Fields] = {
    NewSubscription: _SUBSCRIPTION,
    SubscriptionPatch: _SUBSCRIPTION,
    Selection: _SELECTION,
    NewPlan: _TERMS | {"id": _text(PLAN_FORM, longest=LONGEST_PLAN)},
    PlanPatch: _TERMS,
    NewWorkspace: _WORKSPACE,
    WorkspacePatch: _WORKSPACE,
    NewMember: {"name": _NAME},
    NewKey: {
        "name": _text(re.compile(f"(?:{NAME_FORM.pattern})?"), longest=LONGEST_NAME),
        "permissions": {"items": {"enum": [*PERMISSIONS]}, "minItems": 1},
    },
    NewWebhook: _WEBHOOK,
    WebhookPatch: _WEBHOOK,
    Resume: {"from": {"pattern": f"^(?:{_START.pattern})$"}},
}
"""The rules of each body's fields, by their names on the wire; null keeps every rule of a list."""

_ONE_LIST: Rules = {
    "anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in _SELECTION]
}

TOGETHER: dict[type, Rules] = {NewSubscription: _ONE_LIST, Selection: _ONE_LIST}
"""Rules of whole bodies: a selection names something."""
