"""The names of secrets: fields of JSON, variables, headers and parameters that hold secrets; and
where a text gives such a name a value."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from math import log2
from typing import Any, Literal

NAMES: dict[str, Any] = json.loads(
    (files(__package__ or "") / "names.json").read_text(encoding="utf-8")
)
"""The names in `names.json`, which says what they mean."""


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


_FIRST_WORD = re.compile(r"\A[A-Za-z]+[-_.]")


def looks_random(value: str) -> bool:
    """Whether a key looks random after the word that it begins with: words in lower case do not."""
    return bool(re.search(r"[0-9A-Z]|[a-z]{20}", _FIRST_WORD.sub("", value) or value))


def has_letters_and_digits(value: str) -> bool:
    """Whether a value has both."""
    return re.search(r"[0-9]", value) is not None and re.search(r"[A-Za-z]", value) is not None


def looks_generated(value: str) -> bool:
    """Whether a value has more letters and digits than a name would; a UUID is an identifier."""
    digits, letters = len(re.findall("[0-9]", value)), len(re.findall("[A-Za-z]", value))
    return digits >= 3 and letters >= 3 and _UUID.fullmatch(value) is None


_PIECES = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_WORD, _LONGEST_NUMBER, _LONGEST_MARK = 15, 8, 3
_SHORTEST_DRAWN, _LEAST_ODD = 20, 12


def made_of_words(value: str) -> bool:
    """Whether a value reads like a name, as `gpt-5.2-chat` does: words, also in camel case, numbers
    and marks such as `4o` between separators. Of a random one a piece has letters and digits."""
    return all(map(_is_word, _PIECES.split(value)))


def is_drawn_by_chance(value: str) -> bool:
    """Whether a value whose name says nothing is drawn by chance, as keys are: of 20 characters, 12
    together are letters and digits and no word. A UUID is an identifier."""
    if len(value) < _SHORTEST_DRAWN or _UUID.fullmatch(value):
        return False
    return any(len(part) >= _LEAST_ODD and not _is_word(part) for part in _PIECES.split(value))


def _is_word(piece: str) -> bool:
    if len(piece) <= _LONGEST_MARK or piece.isdecimal():
        return len(piece) <= _LONGEST_NUMBER
    words = re.findall("[A-Z]?[a-z]+|[A-Z]+", piece)
    return (
        sum(map(len, words)) == len(piece) >= 3 * len(words)
        and max(map(len, words)) <= _LONGEST_WORD
    )


def is_user_and_password(value: str) -> bool:
    """Whether a value is user and password in base64, as Docker keeps them."""
    try:
        return re.fullmatch(rb"[!-9;-~]+:[!-~]+", b64decode(value, validate=True)) is not None
    except ValueError:
        return False


def entropy(value: str) -> float:
    """The entropy of the characters of a value, in bits for each (Shannon's formula)."""
    counts = Counter(value).values()
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)


def could_be_password(value: str) -> bool:
    """Whether a value could be a password, and not the name of a type or of a variable."""
    return not value.startswith(("$", "<", "{")) and (not value.isalpha() or len(value) >= 10)


_STRONG = re.compile(
    r"(?:api|subscription|access|secret|account|private|auth|master|encryption)key\Z"
    r"|(?:client|app|consumer|shared)secret\Z|(?:access|refresh|auth|session|id|bearer)token\Z"
    r"|passw(?:or)?d\Z|passphrase\Z|pwd\Z|\A(?:x?api|pass)code\Z"
)
_WEAK = re.compile(
    r"(?:secret|token|credentials?|authorization|cookie|connectionstring|key|auth)\Z"
    r"|\A(?:new)?handle\Z"  # with which a client resumes a session of Gemini Live
)
# Names that end like a secret's and hold none: of a place in a list, of a row, of an object in a
# store, of what a tokenizer knows. A public key is public, and an idempotency key opens nothing.
_HARMLESS = re.compile(
    r"(?:page|paging|pagination|continuation|continue|cursor|sync|next|previous|prev|start|end|first"
    r"|last|pad|padding|eos|bos|stop|special|mask|unk|sep|cls|delimiter|prompt|completion|max)token\Z"
    r"|tokencount\Z|(?:error|status|response|result|reason|exit|country|language|region)code\Z"
    r"|(?:sort|primary|foreign|partition|row|hash|range|index|group|idempotency|public|publishable"
    r"|cache|object|s3|dedup|deduplication|lookup|routing|shard|unique|composite|natural|surrogate"
    r"|translation|i18n|message|sorting|order|parent|child|dict|map|json|config|setting"
    r"|blob|file|document|hot|shortcut|issue|project)key\Z"
)
_OBJECT_NAME = "Key"
"""How the storage services name an object in their answers; a secret is called `key`."""

_SEPARATORS = str.maketrans("", "", "_-. ")
_SHORTEST_STRONG = 6
_SHORTEST_WEAK = 16


@lru_cache(maxsize=1024)
def field_strength(name: str) -> Literal["strong", "weak", ""]:
    """The certainty, from the name of a field alone, that its value is a secret."""
    plain = name.translate(_SEPARATORS).lower()
    if name == _OBJECT_NAME or _HARMLESS.search(plain):
        return ""
    if _STRONG.search(plain):
        return "strong"
    return "weak" if _WEAK.search(plain) else ""


_PASSWORD = re.compile(r"(?:passw(?:or)?d|passphrase|pwd)\Z")


@lru_cache(maxsize=1024)
def is_password_name(name: str) -> bool:
    """Whether a name is that of a password, which a person chose: it may be a word."""
    return _PASSWORD.search(name.translate(_SEPARATORS).lower()) is not None


def field_is_secret(name: str, value: str) -> bool:
    """Whether a value is a secret because of the name of its field.

    A weak name (`token`, `key`) is not enough: log probabilities have a field `token` with a word
    in it. There the value must have 16 characters and look generated, not like a name.
    """
    if name == "auth" and is_user_and_password(value):
        return True
    strength = field_strength(name)
    if not strength or len(value) < _SHORTEST_STRONG or any(map(str.isspace, value)):
        return False
    if strength == "strong":
        return could_be_password(value) or (is_password_name(name) and _could_be_word(value))
    return len(value) >= _SHORTEST_WEAK and looks_generated(value) and not made_of_words(value)


# Parts that decide wherever they are in a name. `tokens` and `tokenizer` count text, and an
# `author` is a person.
_PARTS = (
    r"token(?!s(?![a-z])|iz|[_-]?(?:len|length|count|limit|type)\b)|secret|passw|passphrase"
    r"|credential|cookie|session|signature|bearer"
    r"|auth(?!or(?!i[sz]))"
    r"|(?:api|access|account|app|client|encryption|function|host|license|master|private|shared"
    r"|signing|subscription|user)[_.-]?key"
    r"|\Aupload_?id\Z"
    r"|\Asec-websocket-protocol\Z"  # a page in a browser has no other place for its key
)
# Short ones only at the end of a word: `design` has no signature and `encoded` no code.
_ENDS = (
    r"(?:keys?|sig|code|pwd|otp|jwt|csrf|xsrf|hmac)(?![a-z])"
    r"|(?<![a-z])(?:pass|pin|sid|sas)(?![a-z])"
)
_SECRET = re.compile(f"{_PARTS}|{_ENDS}")
_CUSTOMER = re.compile(
    r"org|project|account|tenant|workspace|customer|email|\buser\b(?!-agent)"
    r"|\A(?:x-)?forwarded(?:-for)?\Z|(?:client|real|remote|connecting)-ip"
)


@lru_cache(maxsize=1024)
def name_is_secret(name: str) -> bool:
    """Whether a header or a parameter is, by its name, a credential."""
    name = name.lower()
    return _SECRET.search(name) is not None and not _HARMLESS.search(name.translate(_SEPARATORS))


_SHORTEST_NAMED = 8
_CODE = re.compile(r"(?:pin|otp|passcode)\Z")


def parameter_names_secret(name: str, value: str) -> bool:
    """Whether a value is a secret because of the name of its parameter, which alone is no proof:
    `key=pear` is none."""
    if field_is_secret(name, value):
        return True
    plain = name.translate(_SEPARATORS).lower()
    if _CODE.search(plain):
        return len(value) >= 4 and value.isalnum() and not value.isalpha()
    return name_is_secret(name) and (
        is_drawn_by_chance(value)
        or (
            len(value) >= _SHORTEST_NAMED
            and has_letters_and_digits(value)
            and not made_of_words(value)
        )
    )


@lru_cache(maxsize=1024)
def names_customer(name: str) -> bool:
    """Whether a header is, by its name, the id or the address of who pays or asks: no credential,
    but private."""
    return _CUSTOMER.search(name.lower()) is not None


# Values after their names

_NAMES = ("key", "secret", "token", "pass", "pwd", "credential", "authorization", "cookie")


def find_assignments(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Places where a text gives a name a value that is a secret for such a name, with its kind."""
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
_ASSIGNED = tuple(NAMES["ends of names with secret values"])
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_LONGEST_NAME = 36
_MOST_SPACE = 4
# Only the beginning of a long value is judged, because each value may begin inside another.
_QUOTED = re.compile(r"[\"']([^\"'\s]{6,})[\"']")
_BARE = re.compile(r"[A-Za-z0-9+/_=.~!@#%^&*-]{7,256}(?<=[A-Za-z0-9+/_=~!-])")
_REST_OF_BARE = re.compile(
    r"(?:(?:(?!&[\w.%\[\]-]{1,36}=)[A-Za-z0-9+/_=.~!@#%^&*-])*(?<=[A-Za-z0-9+/_=~!-]))?"
)
# In the body of a form `&` ends a value.
_NEXT_FIELD = re.compile(r"&[\w.%\[\]-]{1,36}=")
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
    return at - len(before) + len(name) if name.endswith(_ASSIGNED) else 0


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
    if bare is not None:
        next_field = _NEXT_FIELD.search(text, bare.start(), bare.end() + _LONGEST_NAME)
        end = bare.end() if next_field is None else next_field.start()
        value = text[bare.start() : end]
        if field_is_secret(name[0], value) and has_letters_and_digits(value):
            return bare.start(), end if next_field else _end(_REST_OF_BARE, text, end)
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
    return value.span(group) if is_written_password(value[group]) else None


_CALL = re.compile(r"[\w.]*\(")


def is_written_password(value: str) -> bool:
    """Whether a password is written out, not computed or hidden."""
    hidden = value.startswith(("$", "{", "<", "%", "*")) or value.lower() in _NO_PASSWORD
    return not hidden and _CALL.match(value) is None


_NO_PASSWORD = frozenset(NAMES["no passwords"])
_WORD = re.compile(r"[\"']?([^\s\"'<>,;&(){}\[\]$]{6,256})")
_REST_OF_WORD = re.compile(r"[^\s\"'<>,;&(){}\[\]$]*")
_LINE_END = re.compile(r"[\"']?[.,;!)]?[ \t]*(?:\r|\n|\Z)")


def _password(text: str, sign: re.Match[str]) -> tuple[int, int] | None:
    """A password that could be a word: right after `=`, or after `:` as the last of its line."""
    found = _WORD.match(text, sign.end())
    if found is None or not _could_be_word(found[1]) or text[found.end() : found.end() + 1] == "(":
        return None
    if sign[0] != "=" and _LINE_END.match(text, found.end()) is None:
        return None
    value = text[found.start(1) : _end(_REST_OF_WORD, text, found.end(1))]
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
