"""What names promise: fields of JSON, variables, headers and parameters that hold secrets."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from math import log2
from typing import Literal

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def looks_random(value: str) -> bool:
    """Whether a key looks random after its first hyphen: words in lower case do not."""
    return bool(re.search(r"[0-9A-Z]|[a-z]{20}", value.partition("-")[2] or value))


def has_letters_and_digits(value: str) -> bool:
    """Whether a value has both."""
    return re.search(r"[0-9]", value) is not None and re.search(r"[A-Za-z]", value) is not None


def looks_generated(value: str) -> bool:
    """Whether a value has more letters and digits than a name would; a UUID is an identifier."""
    digits, letters = len(re.findall("[0-9]", value)), len(re.findall("[A-Za-z]", value))
    return digits >= 3 and letters >= 3 and _UUID.fullmatch(value) is None


def entropy(value: str) -> float:
    """How random the characters of a value are, in bits for each (Shannon's formula)."""
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
)
# Names that end like a secret's and hold none: of a place in a list, of a row, of an object in a
# store, of what a tokenizer knows. A public key is public, and an idempotency key opens nothing.
_HARMLESS = re.compile(
    r"(?:page|paging|pagination|continuation|continue|cursor|sync|next|previous|prev|start|end|first"
    r"|last|pad|padding|eos|bos|stop|special|mask|unk|sep|cls|delimiter|prompt|completion|max)token\Z"
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
    """How sure it is, from the name of a field alone, that its value is a secret."""
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
    in it. There the value must have 16 characters and look generated.
    """
    strength = field_strength(name)
    if not strength or len(value) < _SHORTEST_STRONG or any(map(str.isspace, value)):
        return False
    if strength == "strong":
        return could_be_password(value)
    return len(value) >= _SHORTEST_WEAK and looks_generated(value)


# Parts that decide wherever they are in a name. `tokens` and `tokenizer` count text, and an
# `author` is a person.
_PARTS = (
    r"token(?!s(?![a-z])|iz)|secret|passw|passphrase|credential|cookie|session|signature|bearer"
    r"|auth(?!or(?!i[sz]))"
    r"|(?:api|access|account|app|client|encryption|function|host|license|master|private|shared"
    r"|signing|subscription|user)[_.-]?key"
)
# Short ones only at the end of a word: `design` has no signature and `encoded` no code.
_ENDS = (
    r"(?:keys?|sig|code|pwd|otp|jwt|csrf|xsrf|hmac)(?![a-z])"
    r"|(?<![a-z])(?:pass|pin|sid|sas)(?![a-z])"
)
_SECRET = re.compile(f"{_PARTS}|{_ENDS}")
_CUSTOMER = re.compile(r"org|project|account|tenant|workspace|customer|email|\buser\b")


@lru_cache(maxsize=1024)
def name_is_secret(name: str) -> bool:
    """Whether a header or a parameter is, by its name, a credential."""
    name = name.lower()
    return _SECRET.search(name) is not None and not _HARMLESS.search(name.translate(_SEPARATORS))


@lru_cache(maxsize=1024)
def names_customer(name: str) -> bool:
    """Whether a header is, by its name, the id of who pays: no credential, but private."""
    return _CUSTOMER.search(name.lower()) is not None
