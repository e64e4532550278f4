"""The code of a code interpreter: JSON text `{"code": ...}` in a neutral call, plain text on the
wire.

The fragments of the neutral text and the deltas of the wire correspond. Only pure functions may
live here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from mockllm.protocols.base import dumps

__all__ = ["END", "code_deltas", "code_of", "code_text", "escaped", "opened"]

_BEGIN = '{"code":"'
END = '"}'
"""The text after the last fragment."""

_TOKENS = re.compile(
    r'(?:[^"\\]|\\["\\/bfnrt]'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*"
)


def escaped(code: str) -> str:
    """Code inside the neutral text, after the beginning and before the end."""
    return dumps(code)[1:-1]


def opened(code: str) -> str:
    """The first code in the neutral text."""
    return _BEGIN + escaped(code)


def code_text(code: str) -> str:
    """The whole neutral text."""
    return opened(code) + END


def code_deltas(fragments: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The deltas on the wire: for each fragment those that it completes, none of them empty.

    A text of another form cannot be read before its end, so that its code is one delta of the last
    fragment: the field `code` of an object, or the text itself.
    """
    reading = _Reading()
    deltas = [reading.add(fragment) for fragment in fragments]
    if fragments and not reading.begun:
        deltas[-1] = _code_in("".join(fragments))
    return tuple((delta,) if delta else () for delta in deltas)


def code_of(fragments: Sequence[str]) -> str | None:
    """The code of a neutral text in fragments; None without any."""
    if not fragments:
        return None
    return "".join(delta for deltas in code_deltas(fragments) for delta in deltas)


def _code_in(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    code = value.get("code") if isinstance(value, dict) else None
    return code.encode("utf-8", "replace").decode() if isinstance(code, str) else text


class _Reading:
    """Reads the code while fragments of the neutral text arrive."""

    def __init__(self) -> None:
        self.begun = False
        self._left = ""
        self._over = False

    def add(self, fragment: str) -> str:
        """The code that this fragment completes."""
        if self._over:
            return ""
        self._left += fragment
        if not self.begun:
            if not self._left.startswith(_BEGIN):
                return ""
            self.begun = True
            self._left = self._left.removeprefix(_BEGIN)
        found = _TOKENS.match(self._left)
        whole = found[0] if found else ""
        self._left = self._left[len(whole) :]
        # The end of the string, or no JSON: neither is code.
        self._over = self._left[:1] == '"' or len(self._left) > len(r"\ud83d\ude0")
        code: str = json.loads(f'"{whole}"', strict=False)
        return code
