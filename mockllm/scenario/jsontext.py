"""JSON text: how values are written in scenarios' calls, and how it is read strictly."""

from __future__ import annotations

import json
from typing import Any, NoReturn

__all__ = ["compact", "parse"]

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as JSON text without spaces, in the order given, not escaped beyond need."""


def parse(text: str) -> Any:
    """The value of JSON text, by the standard and fit to be sent on: no NaN, no half of a
    surrogate pair, no bottomless nesting.

    Raises:
        ValueError: it is not JSON; the message says why and where.
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


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
