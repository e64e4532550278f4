"""The third witness: whether the types of the service's own SDK have a field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

from mockllm.conformance.drift.shapes import JsonPlace
from mockllm.wire.protocols.base import WireProtocol

_STEP = re.compile(r"(?P<name>[^.\[\]]+)|\[(?P<kind>[^\]]*)\]")


def witness(protocol: WireProtocol, place: JsonPlace, *, streamed: bool) -> str:
    """The word of the SDK's types about a field, such as `openai 3.54.0 does not know it`; "" for
    an API whose SDK has no types."""
    types = protocol.sdk
    if types is None:
        return ""
    known = is_known(protocol, place, streamed=streamed)
    if known is None:
        return f"{types.package} is not installed"
    installed = f"{types.package} {version(types.package)}"
    return f"{installed} {'knows' if known else 'does not know'} it"


def is_known(protocol: WireProtocol, place: JsonPlace, *, streamed: bool) -> bool | None:
    """Whether the SDK's types have a field; None where none are installed."""
    root = _root(protocol, streamed=streamed)
    if root is None:
        return None
    models = list(_models(root))
    if place.event:
        models = _of_kind(models, place.event)
    return _knows(models, place.path)


def is_known_finish(protocol: WireProtocol, value: str, *, streamed: bool) -> bool:
    """Whether the SDK's types list a finish reason: an enumeration with a usual one has it, too."""
    usual = {name for names in protocol.finish_values.values() for name in names}
    root = _root(protocol, streamed=streamed)
    return any(value in listed and usual & listed for listed in _enumerations(root, set()))


def _root(protocol: WireProtocol, *, streamed: bool) -> Any:
    types = protocol.sdk
    if types is None:
        return None
    try:
        version(types.package)
        return _import_name(types.stream if streamed else types.body)
    except (PackageNotFoundError, ImportError, AttributeError):
        return None


def _enumerations(annotation: Any, seen: set[Any]) -> Iterator[set[str]]:
    """The values of all enumerations in a type."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield {str(member.value) for member in annotation}
        return
    arguments = get_args(annotation) or get_args(getattr(annotation, "__value__", None))
    yield {argument for argument in arguments if isinstance(argument, str)}
    for argument in arguments:
        yield from _enumerations(argument, seen)
    if hasattr(annotation, "model_fields") and annotation not in seen:
        seen.add(annotation)
        for field in annotation.model_fields.values():
            yield from _enumerations(field.annotation, seen)


def _import_name(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _knows(models: list[Any], path: str) -> bool:
    for step in _STEP.finditer(path):
        if step["kind"] == "":
            continue  # the items of a list; `_models` looks into lists
        if step["kind"]:
            models = _of_kind(models, step["kind"])
        else:
            found = [field for model in models for field in _fields(model, step["name"])]
            if not found:
                return False
            models = [model for annotation in found for model in _models(annotation)]
    return True


def _fields(model: Any, name: str) -> Iterator[Any]:
    """The types of the field with a name on the wire."""
    for own, field in model.model_fields.items():
        if name in (field.alias, own, f"{own}_"):
            yield field.annotation


def _of_kind(models: Iterable[Any], kind: str) -> list[Any]:
    """The models whose `type` may be one; all that have none."""
    return [
        model
        for model in models
        if "type" not in model.model_fields
        or not (kinds := get_args(model.model_fields["type"].annotation))
        or kind in kinds
    ]


def _models(annotation: Any) -> Iterator[Any]:
    """The models in a type: those of its unions, lists and optional values."""
    if hasattr(annotation, "model_fields"):
        yield annotation
        return
    inner = get_args(annotation) or get_args(getattr(annotation, "__value__", None))
    for argument in inner:
        yield from _models(argument)
