"""The addresses of pages: short, readable, the same at every build, no two equal. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

_LONGEST = 90


def slug(text: str) -> str:
    """A name in lower-case ASCII letters, digits and hyphens, for a file or an anchor."""
    short = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return short if 0 < len(short) <= _LONGEST else f"{short[:_LONGEST]}-{_digest(text)}"


def addresses(names: Iterable[str]) -> dict[str, str]:
    """A different slug for each name. Those that would be equal get a digest of the name."""
    unique = list(dict.fromkeys(names))
    count = Counter(map(slug, unique))
    return {
        name: slug(name) if count[slug(name)] == 1 else f"{slug(name)}-{_digest(name)}"
        for name in unique
    }


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
