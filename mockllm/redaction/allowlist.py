"""What a recording keeps of headers and URLs: a short list; all else may be a credential.

The journal shows more than this: it stays in one process, and who debugs a client wants to see the
headers that it sends. A recording is committed and published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote, urlsplit

from mockllm.redaction.find.credentials import (
    header_is_secret,
    parameter_is_secret,
    parameters,
    secret_words,
    with_parameters,
)
from mockllm.redaction.find.names import NAMES
from mockllm.redaction.find.secret_names import names_customer
from mockllm.tapes.captured import Captured

OMITTED = "REDACTED"
"""The value of a response header that is not kept."""

_Pairs = tuple[tuple[str, str], ...]
_Replace = Callable[[str], str]

_REQUEST = frozenset((*NAMES["kept"]["both"], *NAMES["kept"]["request"]))
_RESPONSE = frozenset((*NAMES["kept"]["both"], *NAMES["kept"]["response"]))
_RESPONSE_PREFIXES = tuple(NAMES["kept"]["response prefixes"])


class HeaderAllowlist:
    """Which headers are kept.

    Args:
        more: names, in lower case, of further ones.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = frozenset(more)

    def of_request(self, pairs: Iterable[tuple[str, str]], redact: _Replace) -> _Pairs:
        """The request headers that are kept; the others are left out.

        Args:
            redact: takes the secrets out of any text.
        """
        return tuple((name, redact(value)) for name, value in pairs if self._keeps(name, _REQUEST))

    def of_response(self, pairs: Iterable[tuple[str, str]], redact: _Replace) -> _Pairs:
        """The response headers; those that are not kept have the value `REDACTED`, to show that
        they were there."""
        return tuple(
            (name, redact(value) if self._keeps_of_response(name) else OMITTED)
            for name, value in pairs
        )

    def of_trailers(self, pairs: Iterable[tuple[str, str]], redact: _Replace) -> _Pairs:
        """The trailer fields of a response. Fields for authentication cannot be trailers (RFC 9110,
        section 6.5.1), so that all are kept but those whose names say that they are secret."""
        return tuple(
            (name, OMITTED if _must_go(name, value) else redact(value)) for name, value in pairs
        )

    def _keeps(self, name: str, allowed: frozenset[str]) -> bool:
        return name.lower() in allowed or name.lower() in self._more

    def _keeps_of_response(self, name: str) -> bool:
        return self._keeps(name, _RESPONSE) or name.lower().startswith(_RESPONSE_PREFIXES)


def credentials_of(captured: Captured) -> Iterator[str]:
    """What headers and URL hold that must not be in the bodies either."""
    for name, value in captured.request_headers:
        if name.lower() not in _REQUEST and _must_go(name, value):
            yield from secret_words(value)
    for name, value in captured.headers:
        if name.lower() not in _RESPONSE and _must_go(name, value):
            yield from secret_words(value, first=name.lower() == "set-cookie")
    parts = urlsplit(captured.url)
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    yield from secret_words(unquote(password if colon else user))
    for name, value in parameters(parts.query):
        if parameter_is_secret(name, value):
            yield from secret_words(value)


def _must_go(name: str, value: str) -> bool:
    return header_is_secret(name, value) or names_customer(name)


_OWNER = re.compile(
    r"(?<=/)((?:accounts|projects|organizations|tenants|workspaces|subscriptions)/)([^/?#]+)"
)


def clean_url(url: str, name: _Replace, redact: _Replace) -> str:
    """A URL without user and password, without the ids of accounts in its path, without
    values in the query but those known to be harmless, and without its fragment.

    Args:
        name: gives a value its placeholder.
        redact: takes the secrets out of any text.
    """
    rest, mark, fragment = url.partition("#")
    address, question, query = rest.partition("?")
    before, slashes, after = address.partition("://")
    host, slash, path = after.partition("/")
    host = host.rpartition("@")[2]
    path = _OWNER.sub(lambda found: found[1] + name(found[2]), slash + path)
    clean = before + slashes + host + path + question + with_parameters(query, name)
    return redact(clean + mark + (fragment and name(unquote(fragment))))
