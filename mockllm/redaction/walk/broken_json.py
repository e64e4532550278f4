"""JSON texts that break off, because a stream or a model's answer was cut there."""

from __future__ import annotations

import re

from mockllm.redaction.walk.json_strings import decoded

_SPACE = " \t\r\n"
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{}]', re.DOTALL)
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")


def completed(text: str) -> str | None:
    """A JSON text that breaks off, with what closes it; None where that does not make it JSON."""
    open_: list[str] = []
    inside = False
    for token in _BRACKETS.finditer(text):
        if token[0][0] == '"':
            inside = token[1] == ""
        elif token[0] in "{[":
            open_.append("}" if token[0] == "{" else "]")
        elif open_:
            open_.pop()
    if inside:
        text = _HALF_ESCAPE.sub(r"\1", text) + '"'
    elif open_:
        text = text.rstrip(_SPACE).removesuffix(",")
    else:
        return None
    for missing in ("", "null", ":null"):
        candidate = text + missing + "".join(reversed(open_))
        try:
            decoded(candidate)
        except (ValueError, RecursionError):
            continue
        return candidate
    return None
