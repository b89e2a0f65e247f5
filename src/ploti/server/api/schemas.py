"""JSON Schema of the values that travel, drawn from their own definitions."""

from __future__ import annotations

import types
from enum import Enum
from typing import NewType, Union, get_args, get_origin, get_type_hints

import msgspec

from ploti.model.event import KINDS, Event, UnknownEvent
from ploti.model.wire import Instant
from ploti.server.api.rules import ANY_TEXT, FIELDS, TOGETHER

JsonSchema = dict[str, object]

_PLAIN: dict[object, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    object: {},
    Instant: {"type": "string", "format": "date-time"},
}
_NOT_SENT = {UnknownEvent, msgspec.UnsetType}
"""Members of unions that the server never sends: what only a reader knows, and absence."""


class Schemas:
    """Schemas by reference; `components` holds each that was referred to, by its class's name."""

    def __init__(self) -> None:
        self.components: dict[str, JsonSchema] = {}

    def of(self, kind: object) -> JsonSchema:
        """The schema of an answer's type: every field that is not optional is always there."""
        if isinstance(kind, NewType):
            return self.of(kind.__supertype__)
        if kind in _PLAIN:
            return _PLAIN[kind]
        origin, args = get_origin(kind), get_args(kind)
        if origin in {Union, types.UnionType}:
            return self._union([arg for arg in args if arg not in _NOT_SENT])
        if origin is list:
            return {"type": "array", "items": self.of(args[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if isinstance(kind, type):
            return self._named(kind)
        raise TypeError(f"{kind} has no schema")

    def of_parameter(self, kind: object) -> JsonSchema:
        """The schema of a query parameter's type: one that is not given is left out, not null."""
        given = [arg for arg in get_args(kind) if arg is not type(None)]
        return self.of(given[0] if given else kind)

    def of_body(self, kind: type[msgspec.Struct]) -> JsonSchema:
        """The schema of a request's body: unknown fields are refused, defaults may be left out."""
        fields = msgspec.structs.fields(kind)
        rules, hints = FIELDS.get(kind, {}), get_type_hints(kind)
        told = {
            field.encode_name: _ruled(self.of(hints[field.name]), rules.get(field.encode_name, {}))
            for field in fields
        }
        self.components[kind.__name__] = (
            self._object(kind)
            | {
                "properties": told,
                "required": [field.encode_name for field in fields if field.required],
                "additionalProperties": False,
            }
            | TOGETHER.get(kind, {})
        )
        return _refer(kind.__name__)

    def _union(self, kinds: list[object]) -> JsonSchema:
        if len(kinds) == 1:
            return self.of(kinds[0])
        return {"anyOf": [self.of(kind) for kind in kinds]}

    def _named(self, kind: type) -> JsonSchema:
        name = kind.__name__
        if name not in self.components:
            self.components[name] = {}  # a value may refer to itself
            self.components[name] = self._draw(kind)
        return _refer(name)

    def _draw(self, kind: type) -> JsonSchema:
        if kind is Event:
            return self._event()
        if issubclass(kind, Enum):
            return {"type": "string", "enum": [member.value for member in kind]}
        if issubclass(kind, msgspec.Struct):
            return self._object(kind)
        raise TypeError(f"{kind} has no schema")

    def _object(self, kind: type[msgspec.Struct]) -> JsonSchema:
        hints = get_type_hints(kind)
        fields = msgspec.structs.fields(kind)
        return {
            "type": "object",
            "description": (kind.__doc__ or "").partition("\n")[0],
            "properties": {field.encode_name: self.of(hints[field.name]) for field in fields},
            "required": [
                field.encode_name
                for field in fields
                if msgspec.UnsetType not in get_args(hints[field.name])
            ],
        }

    def _event(self) -> JsonSchema:
        """An event by its type, which decides on its data: msgspec cannot say that by itself."""
        hints = get_type_hints(Event)
        shared = {
            field.encode_name: self.of(hints[field.name])
            for field in msgspec.structs.fields(Event)
            if field.name not in {"type", "data"}
        }
        return {
            "description": (Event.__doc__ or "").partition("\n")[0],
            "oneOf": [
                {
                    "type": "object",
                    "title": name,
                    "properties": {**shared, "type": {"const": name}, "data": self.of(data)},
                    "required": ["id", "type", "timestamp", "subscriptionId", "data"],
                }
                for name, data in KINDS.items()
            ],
        }


def _ruled(schema: JsonSchema, rules: JsonSchema) -> JsonSchema:
    """A field of a body with its rules, which hold beside null where it may be null."""
    kinds = schema.get("anyOf", [schema])
    may_be_text = isinstance(kinds, list) and _PLAIN[str] in kinds
    return schema | (ANY_TEXT if may_be_text else {}) | rules


def _refer(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}
