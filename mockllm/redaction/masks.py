"""What the journal and the logs show of a request: `***` in place of each secret value.

Every request passes here, so what depends on a name, a value or a target alone is cached. Bodies
are not masked: tests read them from the journal, and the logs leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from urllib.parse import unquote

from mockllm.redaction.credentials import (
    header_is_secret_by_name,
    holds_credential,
    parameter_is_secret,
    parameters,
    with_parameters,
)
from mockllm.redaction.find.addresses import emails
from mockllm.redaction.find.known_secrets import KnownSecrets

MASK = "***"

# User and password, before the host: of an absolute URL, of one without its scheme, and of a
# target that is a host only.
_USER = re.compile(r"\A((?:[A-Za-z][A-Za-z0-9+.-]*:)?//|(?!/))[^/]*@")
# What of a header is to be read as a URL: a path with a query, and a host with a user before it.
_URL = re.compile(r"/.*\?|//[^/]*@|\A[^\s/@]*:[^\s/@]*@")


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers whose secret values are `***`; of a URL in another value only its secret parts."""
    return {
        name: MASK if header_is_secret_by_name(name) else _masked_value(value)
        for name, value in headers.items()
    }


@lru_cache(maxsize=1024)
def _masked_value(value: str) -> str:
    """The value of a header that is not secret by its name."""
    if holds_credential(value):
        return MASK
    return masked_url(value) if _URL.search(value) else value


@lru_cache(maxsize=1024)
def masked_url(url: str) -> str:
    """A URL, or the target of a request, without its secrets.

    Masked are user and password, every value in the query that is not known to be harmless, the
    fragment, and what looks like a credential or an e-mail address in the path. Names and their
    order stay.
    """
    address, fragment, _ = url.partition("#")
    path, question, query = address.partition("?")
    shown = _masked_path(path) + question + with_parameters(query, _mask)
    return shown + (fragment and fragment + MASK)


def _mask(_: str) -> str:
    return MASK


def _masked_path(path: str) -> str:
    path = _USER.sub(rf"\g<1>{MASK}@", path)
    steps = [MASK if _is_private(unquote(step)) else step for step in path.split("/")]
    path = "/".join(steps)
    # Of an absolute URL also the host and several steps together can be a credential.
    return MASK if "//" in path and holds_credential(path) else path


def _is_private(step: str) -> bool:
    return holds_credential(step) or next(emails(step), None) is not None


def masked_messages(
    messages: Iterable[str], headers: Mapping[str, str], target: str
) -> tuple[str, ...]:
    """Messages about a request, without what is masked in its headers and in its target.

    A message quotes a value as `repr` writes it, and may have cut it.
    """
    values = tuple(dict.fromkeys(_secret_values(headers, target)))
    path = target.partition("?")[0]
    known = KnownSecrets(values)
    return tuple(
        _masked_message(message.replace(path, masked_url(path)), values, known)
        for message in messages
    )


def _secret_values(headers: Mapping[str, str], target: str) -> Iterator[str]:
    for name, value in headers.items():
        if header_is_secret_by_name(name) or _masked_value(value) == MASK:
            yield value
        elif _masked_value(value) != value:
            yield from _secret_parameters(value)
    yield from _secret_parameters(target)


def _secret_parameters(url: str) -> Iterator[str]:
    query = url.partition("?")[2]
    return (value for name, value in parameters(query) if parameter_is_secret(name, value))


def _masked_message(message: str, values: Iterable[str], known: KnownSecrets) -> str:
    for value in values:
        message = message.replace(repr(value), repr(MASK))
    parts, last = [], 0
    for _, (start, end) in sorted(known.find(message), key=lambda one: one[1]):
        if start >= last:
            parts += [message[last:start], MASK]
            last = end
    return "".join([*parts, message[last:]])
