"""Records that are made for each request: as `dataclass(frozen=True)`, and quicker to make.

A frozen dataclass sets each field through `object.__setattr__`: five times the time of a plain one,
and a request has dozens of records. Here only type checkers refuse to change a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True)
def record(cls: type[_Class]) -> type[_Class]:
    """Makes a class a dataclass with slots that can be hashed; nothing may change its objects."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
