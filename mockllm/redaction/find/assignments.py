"""Secrets that a text announces: a value after its name, a password in a connection string, the
headers `authorization` and `cookie` as someone quotes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mockllm.redaction.find.secret_names import (
    field_is_secret,
    has_letters_and_digits,
    is_password_name,
)

_NAMES = ("key", "secret", "token", "pass", "pwd", "credential", "authorization", "cookie")


def assigned(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Where a text gives a name a value that is a secret for such a name, and its kind."""
    if ":" not in text and "=" not in text:
        return
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_LOWER)
    if not any(name in lower for name in _NAMES):
        return
    for span in _values(text, lower):
        yield "password or key", span
    if "authorization" in lower:
        for found in _AUTHORIZATION.finditer(text):
            if _is_credential(found[1]):
                yield "token", found.span(1)
    if "cookie" in lower:
        for found in _COOKIE.finditer(text):
            yield "cookie", found.span(1)


# `lower` makes some letters longer, and then positions differ.
_LOWER = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

# The sign between name and value is found first, because a text has few of them.
_SIGN = re.compile(r"[:=]\s{0,4}")
_ENDS = (
    "key",
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "authorization",
)
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_LONGEST_NAME = 36
_MOST_SPACE = 4
# Only the beginning of a long value is judged, because each value may begin inside another.
_QUOTED = re.compile(r"[\"']([^\"'\s]{6,})[\"']")
_BARE = re.compile(r"[A-Za-z0-9+/_=.~!@#%^&*-]{7,256}(?<=[A-Za-z0-9+/_=~!-])")
_REST_OF_BARE = re.compile(r"(?:[A-Za-z0-9+/_=.~!@#%^&*-]*[A-Za-z0-9+/_=~!-])?")
_IN_CONNECTION = re.compile(r"\"([^\"\r\n]{1,200})\"|'([^'\r\n]{1,200})'|([^\s;\"'<>{}$]{1,200})")


def _values(text: str, lower: str) -> Iterator[tuple[int, int]]:
    past = 0
    for sign in _SIGN.finditer(text):
        if sign.start() >= past:
            end = _end_of_name(lower, sign.start())
            name = _NAME.search(text, max(0, end - _LONGEST_NAME), end) if end else None
            span = _value(text, name, sign) if name is not None else None
            if span is not None:
                yield span
                past = span[1]


def _end_of_name(lower: str, at: int) -> int:
    """Where a name that may be a secret's ends, before the sign at `at`; 0 where there is none."""
    before = lower[max(0, at - _LONGEST_NAME) : at]
    name = before.rstrip()
    if len(before) - len(name) > _MOST_SPACE:
        return 0
    if name[-1:] in ("'", '"'):
        name = name[:-1]
    return at - len(before) + len(name) if name.endswith(_ENDS) else 0


def _value(text: str, name: re.Match[str], sign: re.Match[str]) -> tuple[int, int] | None:
    own = is_password_name(name[0])
    if own and sign[0] == "=" and name.end() == sign.start():
        span = _of_connection(text, name.start(), sign.end())
        if span is not None:
            return span
    quoted = _QUOTED.match(text, sign.end())
    if quoted is not None:
        return quoted.span(1) if field_is_secret(name[0], quoted[1]) else None
    bare = _BARE.match(text, sign.end())
    if bare is not None and field_is_secret(name[0], bare[0]) and has_letters_and_digits(bare[0]):
        return bare.start(), _end(_REST_OF_BARE, text, bare.end())
    return _password(text, sign) if own else None


def _of_connection(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The password of `Server=db;Uid=app;Pwd=hunter;`: any value beside a semicolon.

    Args:
        start: of the name.
        end: of the sign.
    """
    value = _IN_CONNECTION.match(text, end)
    before = text[max(0, start - 2) : start].rstrip(" ")[-1:]
    if value is None or ";" not in (before, text[value.end() : value.end() + 1]):
        return None
    group = next(index for index in (1, 2, 3) if value[index] is not None)
    return value.span(group) if _is_written(value[group]) else None


_CALL = re.compile(r"[\w.]*\(")


def _is_written(value: str) -> bool:
    """Whether a value is written out, not computed or hidden."""
    hidden = value.startswith(("$", "{", "<", "%", "*")) or value.lower() in _NO_PASSWORD
    return not hidden and _CALL.match(value) is None


_PASSWORD = re.compile(r"[\"']?([^\s\"'<>,;&(){}\[\]$]{6,256})")
_REST_OF_PASSWORD = re.compile(r"[^\s\"'<>,;&(){}\[\]$]*")
_LINE_END = re.compile(r"[\"']?[.,;!)]?[ \t]*(?:\r|\n|\Z)")
_NO_PASSWORD = frozenset(
    [
        "allowed",
        "boolean",
        "changed",
        "correct",
        "default",
        "disabled",
        "enabled",
        "expired",
        "hashed",
        "hidden",
        "incorrect",
        "integer",
        "invalid",
        "masked",
        "missing",
        "needed",
        "number",
        "object",
        "optional",
        "password",
        "placeholder",
        "protected",
        "provided",
        "redacted",
        "removed",
        "required",
        "secret",
        "string",
        "undefined",
        "unknown",
        "username",
        "wrong",
    ]
)


def _password(text: str, sign: re.Match[str]) -> tuple[int, int] | None:
    """A password that could be a word: right after `=`, or after `:` as the last of its line."""
    found = _PASSWORD.match(text, sign.end())
    if found is None or not _could_be_word(found[1]) or text[found.end() : found.end() + 1] == "(":
        return None
    if sign[0] != "=" and _LINE_END.match(text, found.end()) is None:
        return None
    value = text[found.start(1) : _end(_REST_OF_PASSWORD, text, found.end(1))]
    return found.start(1), found.start(1) + len(value.rstrip(".!?:"))


def _end(rest: re.Pattern[str], text: str, start: int) -> int:
    found = rest.match(text, start)
    return start if found is None else found.end()


def _could_be_word(value: str) -> bool:
    plain = value.rstrip(".!?:").lower()
    return len(plain) >= _SHORTEST_PASSWORD and not (
        plain in _NO_PASSWORD or set(plain) <= {"*", "x", "."} or _TEMPLATE.search(plain)
    )


_SHORTEST_PASSWORD = 6
_TEMPLATE = re.compile(r"password|^your|^my[-_]|\(|^%|^\*|^redacted-")

_AUTHORIZATION = re.compile(
    r"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    r"(?i:(?:bearer|basic|token|api-?key|key|digest|negotiate|bot|oauth|aws4-hmac-sha256)"
    r"(?:\s{1,4}|=))([^\s\"',;<>{}$]{8,4000})"
)
_COOKIE = re.compile(
    r"(?i:\bcookie)[\"']?\s{0,4}:\s{0,4}[\"']?"
    r"([\w.-]{1,64}=[^\s;,\"'<>{}]{1,4000}(?:; ?[\w.-]{1,64}=[^\s;,\"'<>{}]{0,4000}){0,50})"
)
_CAPITALS = re.compile(r"[A-Z_-]+|[a-z_-]+")


def _is_credential(value: str) -> bool:
    """Whether a value is no name of a variable, as in `Authorization: Bearer YOUR_API_KEY`."""
    return has_letters_and_digits(value) or (len(value) >= 16 and not _CAPITALS.fullmatch(value))
