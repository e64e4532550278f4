"""Records: as `dataclass(frozen=True, slots=True)`, quicker to define and quicker to make.

A frozen dataclass sets each field through `object.__setattr__`: five times the time of a plain one,
and a request has dozens of records. A dataclass also compiles six methods for each class, which was
a third of what starting a server took; here all classes share the methods but `__init__`. Only type
checkers refuse to change a field.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_Class]) -> type[_Class]:
    """Makes a class a dataclass with slots that can be hashed; nothing may change its objects."""
    made: Any = dataclass(slots=True, repr=False, eq=False)(cls)
    compared = [field.name for field in fields(made) if field.compare]
    key: Any = attrgetter(*compared) if compared else _nothing

    def is_equal(self: Any, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(key(self))

    made.__eq__, made.__hash__, made.__repr__ = is_equal, hash_of, _repr
    typed: type[_Class] = made
    return typed


def _nothing(_: Any) -> tuple[()]:
    return ()


def _repr(self: Any) -> str:
    shown = [f"{slot.name}={getattr(self, slot.name)!r}" for slot in fields(self) if slot.repr]
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
