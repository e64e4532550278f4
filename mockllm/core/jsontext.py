"""JSON text: of tool call arguments, and the bodies of requests and answers. Pure."""

from __future__ import annotations

import json
import sys
from functools import cache
from math import isfinite, isinf
from typing import TYPE_CHECKING, Any, NoReturn

from mockllm.core.errors import RequestError
from mockllm.core.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""A value as JSON text without spaces, in the order given, without needless escapes."""


def parse(text: str) -> Any:
    """The value of JSON text.

    `json.loads` also accepts NaN, which is not in RFC 8259. Here it is an error, and so is nesting
    that is too deep for Python. Half of a surrogate pair is read: RFC 8259 (8.2) allows its escape.

    Raises:
        ValueError: it is not JSON; the message states why and where.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg.lower()} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_object(text: str) -> bool:
    """Whether a text is a JSON object that `parse` accepts."""
    try:
        return isinstance(parse(text), dict)
    except ValueError:
        return False


def is_in_json(value: object) -> bool:
    """Whether JSON has a value: clients send NaN, too, as Python writes it."""
    return not isinstance(value, float) or isfinite(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


@cache
def _fast_reader() -> tuple[Callable[[bytes], Any], tuple[type[Exception], ...]] | None:
    """msgspec's reader of JSON, and its errors; None where msgspec is not installed.

    It takes a quarter to a half of the time of `json`. All that it reads it reads as `json` does:
    integers of any size, the last of equal names. (orjson rounds large integers.) It refuses more:
    NaN, half of a surrogate pair, other encodings than UTF-8.
    """
    try:
        import msgspec
    except ImportError:
        return None
    return msgspec.json.decode, (msgspec.MsgspecError, ValueError, RecursionError)


def _read_fast(body: bytes) -> object:
    """The value of a body; None for what only `json` can judge."""
    fast = _fast_reader()
    if fast is None:
        return None
    read, refusals = fast
    try:
        return read(body)
    except refusals:
        return None


class _NumberError(ValueError):
    """A number that JSON does not have, or that no service reads."""


def _float(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise _NumberError(f"the number {shorten(text, 20)} is out of range")
    return value


def _constant(name: str) -> float:
    raise _NumberError(f"{name} is not JSON")


decode = json.JSONDecoder(parse_float=_float, parse_constant=_constant).decode
"""The value of JSON text; a `ValueError` also for NaN, and for a number beyond a double."""


MOST_VALUES = 300_000
"""The most values that a body may have: a million take seconds to read, check and keep, for which
no other request is answered. The largest requests of real clients, arrays of 300,000 tokens to
embed (the limit of OpenAI), have no more."""


def has_too_many_values(body: bytes) -> bool:
    """Whether JSON text has more than `MOST_VALUES` values, by its commas outside of strings."""
    if len(body) <= MOST_VALUES or body.count(b",") <= MOST_VALUES:
        return False
    # Without escapes every second piece between quotes is a string. A pattern takes three times as
    # long for many strings, and fifty times for a few long ones.
    pieces = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
    return b"".join(pieces[::2]).count(b",") > MOST_VALUES


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        RequestError: it is not JSON, with the location in the message; it is not an object, or has
            too many values.
    """
    if has_too_many_values(body):
        raise RequestError(
            f"The JSON body of your request has more than {MOST_VALUES:,} values, which mockllm "
            "does not read. Send fewer.",
            code="too_many_values",
        )
    value: Any = _read_fast(body)
    if type(value) is dict:
        return value
    try:
        value = decode(body.decode(json.detect_encoding(body), "surrogatepass"))
        if isinstance(value, dict):
            return value
        where = f"it is {type(value).__name__!r}, not an object"
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}: {error.msg}"
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
    except RecursionError:
        where = "it is nested too deeply"
    except _NumberError as error:
        where = str(error)
    except ValueError:  # Python reads no longer ones
        where = f"an integer has more than {sys.get_int_max_str_digits()} digits"
    raise RequestError(
        f"We could not parse the JSON body of your request ({where}). The API expects a JSON "
        "object, sent as application/json.",
        code="invalid_json",
    )


def json_bytes(text: str) -> bytes:
    r"""A JSON text in UTF-8. Half of a surrogate pair, which UTF-8 cannot hold, is written as the
    escape that JSON has for it (`\ud83c`), as by services that write JSON in ASCII."""
    return text.encode("utf-8", "backslashreplace")
