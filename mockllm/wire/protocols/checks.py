"""Checks of requests as data: the types of fields, the ranges of numbers, the fields of objects.

Each API words a refusal in its own way, so its `Checks` are made from its errors. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.core.errors import RequestError

Check = Callable[[str, Any], None]
"""Raises `RequestError` if the value (second) is not valid at its path (first)."""

_NONE: Mapping[str, Check] = {}


def _no_wording(*about: object) -> RequestError:
    raise AssertionError(f"the API has no words for this refusal: {about}")


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of one API.

    Args:
        wrong_type: the error for a value of another type, from its path, the name of the type, the
            value.
        a_string, an_object, an_array, an_integer, a_decimal: the names of the types.
        missing: for a field that is missing, from its path.
        unknown: for a string that is none of the known ones, from its path, the string, these.
        outside: for a number out of range, from its path, the number, the least and the greatest
            one (None: there is none), and whether it is an integer.
        item: the path of an item of a list, from that of the list and the index.
        null_is_missing: whether a required field that is null is missing, or of the wrong type.
    """

    wrong_type: Callable[[str, str, object], RequestError]
    a_string: str
    an_object: str
    an_array: str
    an_integer: str = ""
    a_decimal: str = ""
    missing: Callable[[str], RequestError] = _no_wording
    unknown: Callable[[str, str, tuple[str, ...]], RequestError] = _no_wording
    outside: Callable[[str, float, float, float | None, bool], RequestError] = _no_wording
    item: str = "{}[{}]"
    null_is_missing: bool = True

    def of_kind(self, kinds: type | tuple[type, ...], expected: str) -> Check:
        """A check for the type only; `expected` is its name in messages."""

        def check(where: str, value: object) -> None:
            if not isinstance(value, kinds):
                raise self.wrong_type(where, expected, value)

        return check

    def text(self, where: str, value: object) -> None:
        """A check for a string."""
        if not isinstance(value, str):
            raise self.wrong_type(where, self.a_string, value)

    def mapping(self, where: str, value: object) -> None:
        """A check for an object."""
        if not isinstance(value, (dict, Mapping)):  # dict first: the ABC's check is slow
            raise self.wrong_type(where, self.an_object, value)

    def number(self, low: float, high: float | None = None, *, whole: bool = False) -> Check:
        """A check for a number between two bounds, both included; `whole` allows integers only."""
        kinds = int if whole else (int, float)
        expected = self.an_integer if whole else self.a_decimal

        def check(where: str, value: Any) -> None:
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise self.wrong_type(where, expected, value)
            if value < low or (high is not None and not value <= high):
                raise self.outside(where, value, low, high, whole)

        return check

    def one_of(self, *known: str) -> Check:
        """A check for one of some strings."""

        def check(where: str, value: object) -> None:
            if not isinstance(value, str):
                raise self.wrong_type(where, self.a_string, value)
            if value not in known:
                raise self.unknown(where, value, known)

        return check

    def list_of(self, check: Check, expected: str = "") -> Check:
        """A check for an array whose items pass another check.

        Args:
            expected: the name of such an array in messages, if it has one of its own.
        """

        def check_items(where: str, value: object) -> None:
            if not isinstance(value, list):
                raise self.wrong_type(where, expected or self.an_array, value)
            for i, item in enumerate(value):
                check(self.item.format(where, i), item)

        return check_items

    def fields(self, required: Mapping[str, Check], others: Mapping[str, Check] = _NONE) -> Check:
        """A check for an object with valid fields; unknown fields are allowed.

        Args:
            required: the checks of fields that must be present.
            others: the checks of fields that may be missing or null.
        """

        # Every request comes here: a text that is right costs no call and no path. A bound method
        # is a new object at each access, so that `is` would find none.
        needed = [(name, field, field == self.text) for name, field in required.items()]

        def check(where: str, value: Any) -> None:
            if type(value) is not dict:
                self.mapping(where, value)
            prefix = f"{where}." if where else ""
            for name, field, is_text in needed:
                inner = value.get(name)
                if is_text and type(inner) is str:
                    continue
                if inner is None and (self.null_is_missing or name not in value):
                    raise self.missing(prefix + name)
                field(prefix + name, inner)
            for name, field in others.items():
                if value.get(name) is not None:
                    field(prefix + name, value[name])

        return check
