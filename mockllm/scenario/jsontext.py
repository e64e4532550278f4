"""JSON text of tool call arguments: written compactly, read strictly."""

from __future__ import annotations

import json
from typing import Any, NoReturn

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as JSON text without spaces, in the order given, without needless escapes."""


def parse(text: str) -> Any:
    """The value of JSON text.

    `json.loads` also accepts NaN, which is not in RFC 8259, and half of a surrogate pair, which
    cannot be sent as UTF-8. Here both are errors, and so is nesting that is too deep for Python.

    Raises:
        ValueError: it is not JSON; the message states why and where.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
        if "\\u" in text:
            compact(value).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg.lower()} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair, which is no character") from None
    return value


def is_object(text: str) -> bool:
    """Whether a text is a JSON object that `parse` accepts."""
    try:
        return isinstance(parse(text), dict)
    except ValueError:
        return False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
