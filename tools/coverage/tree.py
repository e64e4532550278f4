"""Items of a tree of pydantic types, and the items that a JSON value plays.

An item is a field, a member of a union, or a value of an enumeration:

- `choices[].delta.content`: a field; `[]` is an element of a list
- `response.completed/response`: a field of an event, the event by its literal `type`
- `response.output_item.added/item[reasoning]`: a member of a union, by its literal `type`
- `choices[].finish_reason=stop`: a value of an enumeration
- `Response/usage`: a field of a type that several fields have; its items are listed once, under
  the name of the type
"""

from __future__ import annotations

import enum
import inspect
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import TypeAliasType

Model = type[BaseModel]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value without fields; `values` are those of an enumeration."""

    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Many:
    """A list."""

    element: _Shape


@dataclass(frozen=True, slots=True)
class _Object:
    """An object with the fields of a model."""

    model: Model


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of several models, by their labels, or a list or leaf in place of them."""

    models: tuple[tuple[str, Model], ...]
    others: tuple[_Leaf | _Many, ...]


_Shape = _Leaf | _Many | _Object | _Choice


class Tree:
    """The items of a type.

    Args:
        root: a model, or a union of models.
    """

    def __init__(self, root: Any) -> None:
        self._shapes: dict[Model, dict[str, _Shape]] = {}
        self._root = self._shape(root)
        self._uses: Counter[Model] = Counter()
        self._count(self._root)
        # Members of the root are listed as events, under their own labels.
        self._events = dict(self._root.models) if isinstance(self._root, _Choice) else {}

    def items(self) -> list[str]:
        """All items, events first and shared types last, each in the order of the SDK's fields."""
        if not self._events:
            assert isinstance(self._root, _Object)
            own = list(self._fields(self._root.model, ""))
        else:
            own = [
                item
                for label, model in self._events.items()
                for item in (label, *self._fields(model, f"{label}/"))
            ]
        shared = sorted(
            (model for model, uses in self._uses.items() if uses > 1), key=lambda m: m.__name__
        )
        for model in shared:
            own += self._fields(model, f"{model.__name__}/")
        return list(dict.fromkeys(own))

    def played(self, value: Any) -> Iterator[str]:
        """The items of a decoded event, and its fields that the types do not list (with a `+`
        in front). A null plays nothing."""
        if isinstance(self._root, _Object):
            yield from self._played_fields(self._root.model, value, "")
            return
        assert isinstance(self._root, _Choice)
        label = _member(self._root.models, value)
        if label is None:
            yield f"+{_label_of(value)}"
            return
        yield label
        yield from self._played_fields(self._events[label], value, f"{label}/")

    # The types

    def _shape(self, annotation: Any) -> _Shape:
        annotation = _bare(annotation)
        origin = get_origin(annotation)
        if origin in (Union, types.UnionType):
            return self._union([a for a in get_args(annotation) if a is not type(None)])
        if origin is Literal:
            return _Leaf(tuple(map(_text, get_args(annotation))))
        if origin in (list, tuple):
            return _Many(self._shape(get_args(annotation)[0]))
        if inspect.isclass(annotation) and issubclass(annotation, enum.Enum):
            return _Leaf(tuple(_text(member) for member in annotation))
        if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
            return _Object(annotation)
        return _Leaf()

    def _union(self, members: list[Any]) -> _Shape:
        shapes = [self._shape(member) for member in members]
        if len(shapes) == 1:
            return shapes[0]
        models: list[tuple[str, Model]] = []
        others: list[_Leaf | _Many] = []
        for shape in shapes:
            match shape:
                case _Object(model=model):
                    models.append((_label(model), model))
                case _Choice():
                    models += shape.models
                    others += shape.others
                case _:
                    others.append(shape)
        if not models:
            values = [v for shape in others if isinstance(shape, _Leaf) for v in shape.values]
            lists = [shape for shape in others if isinstance(shape, _Many)]
            # Where any text is allowed, such as a model's name, the known ones are no items.
            return lists[0] if lists else _Leaf(() if _Leaf() in others else tuple(values))
        return _Choice(_distinct(models), tuple(others))

    def _of(self, model: Model) -> dict[str, _Shape]:
        """The fields of a model by their names on the wire."""
        if model not in self._shapes:
            self._shapes[model] = {
                field.serialization_alias or field.alias or name: self._shape(field.annotation)
                for name, field in model.model_fields.items()
                if not _discriminates(model, name)
            }
        return self._shapes[model]

    def _count(self, shape: _Shape) -> None:
        """Counts in how many fields each model occurs."""
        match shape:
            case _Many(element=element):
                self._count(element)
            case _Object(model=model):
                self._count_model(model)
            case _Choice(models=models, others=others):
                for _, model in models:
                    self._count_model(model)
                for other in others:
                    self._count(other)

    def _count_model(self, model: Model) -> None:
        self._uses[model] += 1
        if self._uses[model] == 1:
            for shape in self._of(model).values():
                self._count(shape)

    def _prefix(self, model: Model, path: str) -> str:
        """What the items of a model begin with, at a path."""
        return f"{model.__name__}/" if self._uses[model] > 1 else f"{path}."

    # The items of the types

    def _fields(self, model: Model, prefix: str) -> Iterator[str]:
        for name, shape in self._of(model).items():
            yield prefix + name
            yield from self._below(shape, prefix + name)

    def _below(self, shape: _Shape, path: str) -> Iterator[str]:
        match shape:
            case _Leaf(values=values) if len(values) > 1:
                yield from (f"{path}={value}" for value in values)
            case _Many(element=element):
                if isinstance(element, _Object | _Choice):
                    yield f"{path}[]"
                yield from self._below(element, f"{path}[]")
            case _Object(model=model):
                yield from self._inner(model, path)
            case _Choice(models=models, others=others):
                for label, model in models:
                    yield f"{path}[{label}]"
                    yield from self._inner(model, f"{path}[{label}]")
                for other in others:
                    yield from self._below(other, path)

    def _inner(self, model: Model, path: str) -> Iterator[str]:
        if self._uses[model] == 1:
            yield from self._fields(model, f"{path}.")

    # The items of a value

    def _played_fields(self, model: Model, value: Any, prefix: str) -> Iterator[str]:
        shapes = self._of(model)
        for name, field in value.items() if isinstance(value, Mapping) else ():
            if field is None or _discriminates(model, name):
                continue
            if name not in shapes:
                yield f"+{prefix}{name}"
                continue
            yield prefix + name
            yield from self._played(shapes[name], field, prefix + name)

    def _played(self, shape: _Shape, value: Any, path: str) -> Iterator[str]:
        match shape:
            case _Leaf(values=values) if len(values) > 1:
                known = _text(value) in values
                yield f"{'' if known else '+'}{path}={_text(value)}"
            case _Many(element=element):
                for item in value if isinstance(value, list) else ():
                    yield f"{path}[]"
                    yield from self._played(element, item, f"{path}[]")
            case _Object(model=model):
                yield from self._played_fields(model, value, self._prefix(model, path))
            case _Choice(models=models, others=others):
                yield from self._played_choice(models, others, value, path)

    def _played_choice(
        self,
        models: tuple[tuple[str, Model], ...],
        others: tuple[_Leaf | _Many, ...],
        value: Any,
        path: str,
    ) -> Iterator[str]:
        if not isinstance(value, Mapping):
            for other in others:
                yield from self._played(other, value, path)
            return
        label = _member(models, value)
        if label is None:
            yield f"+{path}[{_label_of(value)}]"
            return
        model = dict(models)[label]
        yield f"{path}[{label}]"
        yield from self._played_fields(model, value, self._prefix(model, f"{path}[{label}]"))


def _bare(annotation: Any) -> Any:
    """An annotation without `Annotated` and names of aliases."""
    while True:
        if isinstance(annotation, TypeAliasType):
            annotation = annotation.__value__
        elif get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        else:
            return annotation


def _text(value: Any) -> str:
    return str(value.value if isinstance(value, enum.Enum) else value)


# The members of unions

_DISCRIMINATORS = ("type", "role", "object", "op")


def _values(model: Model, name: str) -> tuple[str, ...]:
    """The values that a field can have; none where it can have any."""
    field = model.model_fields.get(name)
    if field is None:
        return ()
    annotation = _bare(field.annotation)
    members = [a for a in get_args(annotation) if a is not type(None)]
    if get_origin(annotation) in (Union, types.UnionType) and len(members) == 1:
        annotation = _bare(members[0])
    return tuple(map(_text, get_args(annotation))) if get_origin(annotation) is Literal else ()


def _constant(model: Model, name: str) -> str | None:
    """The only value that a field can have; None where there are several."""
    values = _values(model, name)
    return values[0] if len(values) == 1 else None


def _discriminates(model: Model, name: str) -> bool:
    """Whether a field has the same value in each object of the model."""
    return name in _DISCRIMINATORS and _constant(model, name) is not None


def _label(model: Model) -> str:
    constants = (_constant(model, name) for name in _DISCRIMINATORS)
    return next(filter(None, constants), model.__name__)


def _distinct(models: list[tuple[str, Model]]) -> tuple[tuple[str, Model], ...]:
    """Members of one label get the names of their classes, too."""
    labels = Counter(label for label, _ in models)
    return tuple(
        (label if labels[label] == 1 else f"{label}:{model.__name__}", model)
        for label, model in dict.fromkeys(models)
    )


def _member(models: tuple[tuple[str, Model], ...], value: Any) -> str | None:
    """The label of the member that a value belongs to.

    Its constants decide, and between members with the same constants the number of fields.
    """
    if not isinstance(value, Mapping):
        return None
    fitting = [
        (len(value.keys() & model.model_fields.keys()), -order, label)
        for order, (label, model) in enumerate(models)
        if all(_fits(model, name, value) for name in _DISCRIMINATORS)
    ]
    return max(fitting)[2] if fitting else None


def _fits(model: Model, name: str, value: Mapping[str, Any]) -> bool:
    """Whether a value is one of those of a model; only the type may not be missing."""
    values = _values(model, name)
    missing = name not in value and name != "type"
    return missing or not values or _text(value.get(name)) in values


def _label_of(value: Any) -> str:
    if not isinstance(value, Mapping):
        return type(value).__name__
    labels = (value.get(name) for name in _DISCRIMINATORS)
    return next((label for label in labels if isinstance(label, str)), "object")
