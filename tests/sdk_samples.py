"""The smallest JSON value of a type of an SDK."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel


def members(union: Any) -> Iterator[type[BaseModel]]:
    """The models of a union, those of unions in it too."""
    if isinstance(union, type) and issubclass(union, BaseModel):
        yield union
    else:
        for argument in get_args(union):
            yield from members(argument)


def sample(annotation: Any) -> Any:
    """A value with the fields that a type requires; of a union, of its first member."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        return {
            field.alias or name: sample(field.annotation)
            for name, field in fields
            if field.is_required() or name == "type"
        }
    if origin is Literal:
        return arguments[0]
    if origin is Annotated:
        return sample(arguments[0])
    if origin in (Union, types.UnionType):
        return sample(next(one for one in arguments if one is not type(None)))
    if origin is list:
        return [sample(arguments[0])]
    if origin is dict or annotation is object:
        return {}
    return {int: 1, float: 1.0, bool: True}.get(annotation, "text")
