"""Whether a value looks like what a machine drew at random, not like a word that someone wrote."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

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
