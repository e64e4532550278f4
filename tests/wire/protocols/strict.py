"""Strict validation against the types of the official `openai` package.

The package's models accept unknown fields and are built without validation in its own streaming
code; here both an unknown field and a missing or ill-typed one is a problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

ALLOWED_EXTENSIONS: dict[tuple[str, str], str] = {
    ("ChoiceDelta", "reasoning_content"): "how compatible servers stream reasoning",
    ("ChatCompletionMessage", "reasoning_content"): "how compatible servers give reasoning",
    ("ChoiceDelta", "annotations"): "the models that search the web stream it; untyped",
    ("AnnotationURLCitation", "content"): "how OpenRouter gives the text that is cited",
    ("Response", "store"): "the service echoes it; untyped",
    ("Response", "frequency_penalty"): "the service sends it; untyped",
    ("Response", "presence_penalty"): "the service sends it; untyped",
    ("Response", "billing"): "bodies have it; untyped",
    ("ResponseCustomToolCall", "status"): "the service sends it; untyped",
    ("ResponseMcpCallArgumentsDeltaEvent", "obfuscation"): "documented padding; untyped",
    ("ResponseCodeInterpreterCallCodeDeltaEvent", "obfuscation"): "documented padding; untyped",
    ("ResponseCustomToolCallInputDeltaEvent", "obfuscation"): "documented padding; untyped",
    ("ResponseTextDeltaEvent", "obfuscation"): "documented padding of deltas; untyped",
    ("ResponseRefusalDeltaEvent", "obfuscation"): "documented padding of deltas; untyped",
    ("ResponseReasoningTextDeltaEvent", "obfuscation"): "documented padding; untyped",
    ("ResponseReasoningSummaryTextDeltaEvent", "obfuscation"): "documented padding; untyped",
    ("ResponseFunctionCallArgumentsDeltaEvent", "obfuscation"): "documented padding; untyped",
}
"""(name of the model, name of the field) -> why the field may be there."""


def problems(model_or_type: Any, value: Any) -> list[str]:
    """The type errors of a JSON value as `path: problem`; empty if its type is exact.

    Args: model_or_type: a model of the package, or a union of them such as `ResponseStreamEvent`;
    of a union, the members with the value's `type` are checked.
    """
    candidates = _candidates(model_or_type, value)
    if not candidates:
        return [f"type: no member of the union is called {value.get('type')!r}"]
    found: list[str] = []
    for candidate in candidates:
        try:
            parsed = _adapter(candidate).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            found += [f"{_path(item['loc'])}: {item['msg']}" for item in error.errors()]
        else:
            return list(_unknown(parsed, ""))
    return found


@cache
def _adapter(type_: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type_)


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(map(str, loc))


def _candidates(type_: Any, value: Any) -> list[Any]:
    """The members of a union that have the value's `type`; a model is its own only member."""
    if get_origin(type_) is Annotated:
        return _candidates(get_args(type_)[0], value)
    if get_origin(type_) is not Union or not isinstance(value, dict) or "type" not in value:
        return [type_]
    return [member for member in get_args(type_) if value["type"] in _types(member)]


def _types(member: Any) -> tuple[Any, ...]:
    if not (isinstance(member, type) and issubclass(member, BaseModel)):
        return ()
    field = member.model_fields.get("type")
    if field is None or get_origin(field.annotation) is not Literal:
        return ()
    return get_args(field.annotation)


def _unknown(value: Any, path: str) -> Iterator[str]:
    """The fields that the types do not have, at any depth."""
    if isinstance(value, BaseModel):
        name = type(value).__name__
        for field in value.model_extra or {}:
            if (name, field) not in ALLOWED_EXTENSIONS:
                yield f"{path}{field}: {name} has no such field"
        for field in type(value).model_fields:
            yield from _unknown(getattr(value, field), f"{path}{field}.")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _unknown(item, f"{path}{key}.")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _unknown(item, f"{path}{i}.")
