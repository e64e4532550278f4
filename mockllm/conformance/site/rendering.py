"""Templates, addresses and values: every value is escaped, and what HTML cannot hold is shown."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockllm.core.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


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


FOLDER = Path(__file__).parent

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Controls, which HTML drops or replaces, characters that turn the direction of the text around
them, and lone surrogates, which no encoding has."""

_SOURCE = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")


@lru_cache
def environment() -> Environment:
    """The templates."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise UsageError(
            "reports in HTML need Jinja2, which is not installed: "
            "pip install 'mockllm-harness[report]'"
        ) from None
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    made.filters["slug"] = slug
    made.filters["ticks"] = _ticks
    made.filters["source_url"] = source_url
    return made


def _visible(value: Any) -> Any:
    """The value, with what HTML cannot hold as escapes."""
    if not isinstance(value, str) or not _UNPRINTABLE.search(value):
        return value
    # `type(value)`: markup that is escaped already stays so.
    return type(value)(_UNPRINTABLE.sub(_escape, value))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] == "\r":
        return "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _ticks(text: str) -> Markup:
    """The text, escaped, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


_CODE = re.compile("`([^`]+)`")


def source_url(source: str) -> str:
    """The address of a report: `owner/repository#number`, or an address itself; "" for others."""
    reference = _SOURCE.fullmatch(source)
    if reference is not None:
        return f"https://github.com/{reference[1]}/issues/{reference[2]}"
    return source if source.startswith("https://") else ""
