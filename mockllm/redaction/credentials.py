"""What may be kept of headers and URLs: a short list; all else is taken for a credential."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote, urlsplit

from mockllm.redaction.patterns import header_is_secret, secret_tokens
from mockllm.tapes.captured import Captured

__all__ = ["HIDDEN", "Headers", "clean_url", "credentials", "resized"]

HIDDEN = "REDACTED"
"""What stands for the value of a header that may not be kept."""

_Pairs = tuple[tuple[str, str], ...]
_Hide = Callable[[str], str]

_BOTH = frozenset(
    (
        "content-type",
        "content-length",
        "content-encoding",
        "transfer-encoding",
    )
)
_ASKED = _BOTH | frozenset(
    [
        "accept",
        "accept-encoding",
        "user-agent",
        "openai-beta",
        "anthropic-version",
        "anthropic-beta",
        "x-mockllm-scenario",
        "x-mockllm-session",
    ]
)
_ANSWERED = _BOTH | frozenset(
    [
        "date",
        "server",
        "connection",
        "keep-alive",
        "cache-control",
        "vary",
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
        "x-request-id",
        "request-id",
        "openai-version",
        "openai-processing-ms",
        "openai-model",
        "anthropic-version",
        "x-accel-buffering",
        "content-language",
        "trailer",
        "x-mockllm-scenario",
        "x-mockllm-turn",
    ]
)
_ANSWERED_PREFIXES = (
    "x-ratelimit-",
    "anthropic-ratelimit-",
    "ratelimit-",
    "access-control-",
)


class Headers:
    """Which headers are kept.

    Args:
        more: names, in lower case, of further ones.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = frozenset(more)

    def asked(self, pairs: Iterable[tuple[str, str]], hide: _Hide) -> _Pairs:
        """Those of a request that are kept; the others are left out."""
        return tuple((name, hide(value)) for name, value in pairs if self._keeps(name, _ASKED))

    def answered(self, pairs: Iterable[tuple[str, str]], hide: _Hide) -> _Pairs:
        """Those of an answer; the others say `REDACTED`, to show that they were there."""
        return tuple(
            (name, hide(value) if self._keeps_answered(name) else HIDDEN) for name, value in pairs
        )

    def _keeps(self, name: str, allowed: frozenset[str]) -> bool:
        return name.lower() in allowed or name.lower() in self._more

    def _keeps_answered(self, name: str) -> bool:
        return self._keeps(name, _ANSWERED) or name.lower().startswith(_ANSWERED_PREFIXES)


def credentials(captured: Captured) -> Iterator[str]:
    """What headers and URL hold that must not be in the bodies either."""
    for name, value in captured.request_headers:
        if name.lower() not in _ASKED and header_is_secret(name.lower()):
            yield from secret_tokens(value)
    for name, value in captured.headers:
        if name.lower() not in _ANSWERED and header_is_secret(name.lower()):
            yield from secret_tokens(value, first=name.lower() == "set-cookie")
    user, colon, password = urlsplit(captured.url).netloc.rpartition("@")[0].partition(":")
    yield from secret_tokens(unquote(password if colon else user))
    for name, value in _query(captured.url):
        if _is_secret_parameter(name, value):
            yield from secret_tokens(value)


_PARAMETERS = frozenset(
    [
        "alt",
        "$alt",
        "api-version",
        "beta",
        "stream",
        "model",
        "version",
        "limit",
        "after",
        "before",
        "order",
        "include",
        "include[]",
        "purpose",
        "pretty",
        "prettyprint",
        "pagesize",
        "page",
        "deployment",
    ]
)
_HARMLESS = re.compile(r"[A-Za-z]{0,12}|\d{1,6}|\d{4}-\d\d-\d\d|v\d{1,3}")
_NAMED_SECRET = re.compile(
    r"key|token|secret|auth|sig|passw|code|credential|session", re.IGNORECASE
)
_OWNER = re.compile(
    r"(?<=/)(?:accounts|projects|organizations|tenants|workspaces|subscriptions)/([^/?#]+)"
)


def _query(url: str) -> Iterator[tuple[str, str]]:
    for pair in urlsplit(url).query.split("&"):
        name, _, value = pair.partition("=")
        yield unquote(name), unquote(value)


def _is_secret_parameter(name: str, value: str) -> bool:
    if name.lower() in _PARAMETERS or not value:
        return False
    return bool(_NAMED_SECRET.search(name)) or _HARMLESS.fullmatch(value) is None


def clean_url(url: str, name: _Hide, hide: _Hide) -> str:
    """A URL without user and password, without the ids of accounts in its path, and without
    values in the query but those known to be harmless.

    Args:
        name: gives a value its placeholder.
        hide: takes the secrets out of any text.
    """
    rest, mark, fragment = url.partition("#")
    address, question, query = rest.partition("?")
    before, slashes, after = address.partition("://")
    host, slash, path = after.partition("/")
    host = host.rpartition("@")[2]
    path = _OWNER.sub(lambda found: found[0].replace(found[1], name(found[1])), slash + path)
    pairs = [_clean_pair(pair, name) for pair in query.split("&")]
    clean = before + slashes + host + path + question + "&".join(pairs)
    return hide(clean + mark + fragment)


def _clean_pair(pair: str, name: _Hide) -> str:
    key, equals, value = pair.partition("=")
    if _is_secret_parameter(unquote(key), unquote(value)):
        return key + equals + name(unquote(value))
    return pair


def resized(headers: _Pairs, size: int | None, change: int | None = None) -> _Pairs:
    """Headers with `content-length` put right, where there is one.

    Args:
        size: the new one, in bytes.
        change: by how many bytes it changes instead, for a body that was cut; without either it
            is left out.
    """
    made = []
    for name, value in headers:
        if name.lower() == "content-length":
            if size is None and (change is None or not value.isdigit()):
                continue
            value = str(size if size is not None else int(value) + (change or 0))
        made.append((name, value))
    return tuple(made)
