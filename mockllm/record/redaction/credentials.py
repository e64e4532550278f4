"""Credentials in headers and URLs, what a recording keeps of them, and the `***` that the journal
and the logs show in their place.

A header is secret by its name, or because its value looks like a credential. A parameter of a URL
needs a proof in its value: services call a key `key`, `sig`, `code`, `t` or whatever they like, and
so they call the words that tell one request from another.

The journal shows more than a recording keeps: it stays in one process, and who debugs a client
wants to see the headers that it sends. A recording is committed and published, so that its list of
request headers is short. Of the answer's headers, which clients read, only the secret ones go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mockllm.record.redaction.find.patterns import credentials_in, part_at_end
from mockllm.record.redaction.find.personal import emails
from mockllm.record.redaction.find.secret_names import (
    NAMES,
    field_strength,
    has_letters_and_digits,
    is_drawn_by_chance,
    made_of_words,
    name_is_secret,
    names_customer,
    parameter_names_secret,
)
from mockllm.record.redaction.find.spans import KnownSecrets

if TYPE_CHECKING:
    from mockllm.play.tapes.captured import Captured

_HARMLESS_HEADERS = frozenset(NAMES["harmless headers"])
# `x-mockllm-session` is the name of a test.
_HARMLESS_PREFIXES = tuple(NAMES["harmless header prefixes"])


@lru_cache(maxsize=1024)
def header_is_secret_by_name(name: str) -> bool:
    """Whether a header must not be shown or kept whatever its value is."""
    name = name.lower()
    if name in _HARMLESS_HEADERS or name.startswith(_HARMLESS_PREFIXES):
        return False
    return name_is_secret(name)


# Requests of one client have the same headers but for a few, so that most values are known.
@lru_cache(maxsize=1024)
def holds_credential(value: str) -> bool:
    """Whether something in a value looks like a credential, be it cut at the end."""
    return any(credentials_in(value)) or part_at_end(value) is not None


def header_is_secret(name: str, value: str) -> bool:
    """Whether a header must not be shown or kept: because of its name or its value."""
    return header_is_secret_by_name(name) or holds_credential(value)


_HARMLESS_PARAMETERS = frozenset(NAMES["harmless parameters"])
# No separators: a value with `;` or `=` in it may hold parameters of its own.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/*$\[\] +-]{0,128}")
_INNER = re.compile(r"[;&]")


def parameter_is_secret(name: str, value: str) -> bool:
    """Whether a recording must not keep a parameter of a query: its value looks like a credential,
    or is drawn by chance, or its name is that of a secret and the value may be one.

    Args:
        name: without escapes, as `value`.
    """
    if holds_credential(value) or parameter_names_secret(name, value):
        return True
    if "=" in value:  # parameters of its own: `alt=sse;key=...`
        pairs = (pair.partition("=") for pair in _INNER.split(value))
        if any(parameter_is_secret(inner, written) for inner, _, written in pairs):
            return True
    identifies = name.lower() in _HARMLESS_PARAMETERS or _IS_ID.search(name) is not None
    return not identifies and is_drawn_by_chance(value)


def parameter_is_private(name: str, value: str) -> bool:
    """Whether the journal and the logs must not show a parameter: it is not known to be harmless.

    Args:
        name: without escapes, as `value`.
    """
    if not value:
        return False
    harmless = name.lower() in _HARMLESS_PARAMETERS and _PLAIN.fullmatch(value) is not None
    return not harmless or holds_credential(value)


def parameters(query: str) -> Iterator[tuple[str, str]]:
    """Names and values of a query, without escapes; no value is the empty one."""
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        yield unquote(name), unquote(value)


def with_parameters(
    query: str, is_hidden: Callable[[str, str], bool], replace: Callable[[str], str]
) -> str:
    """A query in which some values are replaced; all else stays as it was written.

    Args:
        is_hidden: whether the value of a name is replaced; both without escapes.
        replace: gets the value without escapes; gives what is written instead.
    """
    return "&".join(_with_parameter(pair, is_hidden, replace) for pair in query.split("&"))


def _with_parameter(
    pair: str, is_hidden: Callable[[str, str], bool], replace: Callable[[str], str]
) -> str:
    name, equals, value = pair.partition("=")
    if holds_credential(unquote(name)):
        return replace(unquote(pair))
    if is_hidden(unquote(name), unquote(value)):
        return name + equals + replace(unquote(value))
    return pair


_BETWEEN_WORDS = re.compile(r"[\s;,=:\"]+")


def secret_words(value: str, *, first: bool = False) -> Iterator[str]:
    """The words of a secret value that are hidden elsewhere too, each once.

    Args:
        first: only those before the first semicolon: what follows in `set-cookie` is no secret.
    """
    value = _SCOPE.sub("", value.partition(";")[0] if first else value)
    for word in dict.fromkeys((value, *_BETWEEN_WORDS.split(value))):
        is_long = len(word) >= 20 or (len(word) >= 8 and has_letters_and_digits(word))
        if is_long and not _NO_WORD.search(word):
            yield word


_SCOPE = re.compile(r"/[^/,\s]*/[^/,\s]*/[^/,\s]*/aws4_request")
"""Date, region and service behind the id of a key (Signature Version 4 of AWS): hosts have them."""

_NO_WORD = re.compile(r" |//|%2[fF]%2[fF]")
"""A blank, or the beginning of a host: what is secret in an address is found by its own rules."""


def _secret_parts(name: str, value: str) -> Iterator[str]:
    """The parts of the value of a header or parameter that must not be in the bodies either: the
    words of a credential, and what looks like one."""
    if header_is_secret_by_name(name):
        # `x-model-key: gpt-5.2-chat` is a secret by its name only, and a word of the answer.
        vague = not (_IS_CREDENTIAL.search(name) or field_strength(name) == "strong")
        words = secret_words(value, first=name.lower() == "set-cookie")
        yield from (word for word in words if not (vague and made_of_words(word)))
    elif not names_customer(name):
        spans = [span for _, span in credentials_in(value)]
        part = part_at_end(value)
        spans += [] if part is None else [part]
        found = (word for span in spans for word in secret_words(value[slice(*span)]))
        yield from dict.fromkeys(found)


_IS_ID = re.compile(r"(?:\A|[_-])ids?\Z|Ids?\Z")
"""Names of identifiers, which are in the bodies as such."""

_IS_CREDENTIAL = re.compile("authorization|cookie", re.IGNORECASE)


OMITTED = "REDACTED"
"""The value of a response header that is not kept."""

_Pairs = tuple[tuple[str, str], ...]
_Replace = Callable[[str], str]

_KEPT = frozenset(NAMES["kept request headers"])


class HeaderAllowlist:
    """Which headers are kept.

    Args:
        more: names, in lower case, of further ones.
    """

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._more = frozenset(more)

    def of_request(
        self, pairs: Iterable[tuple[str, str]], name: _Replace, redact: _Replace
    ) -> _Pairs:
        """The request headers that are kept; the others are left out.

        Args:
            name: gives a value its placeholder.
            redact: takes the secrets out of any text.
        """
        kept = self._more | _KEPT
        return tuple(
            (
                key,
                _clean_subprotocols(value, name) if key.lower() == _SUBPROTOCOL else redact(value),
            )
            for key, value in pairs
            if key.lower() in kept
        )

    def of_response(
        self, pairs: Iterable[tuple[str, str]], name: _Replace, redact: _Replace
    ) -> _Pairs:
        """The headers, or the trailer fields, of a response. Those whose names say that they are
        secret, or the id of who pays, have the value `REDACTED`, to show that they were there.

        Args:
            name: gives a value its placeholder.
            redact: takes the secrets out of any text.
        """
        return tuple((key, self._of_response(key, value, name, redact)) for key, value in pairs)

    def _of_response(self, key: str, value: str, name: _Replace, redact: _Replace) -> str:
        if key.lower() == _SUBPROTOCOL:
            return _clean_subprotocols(value, name)
        if key.lower() not in self._more and _is_private_by_name(key):
            return OMITTED
        return clean_url(value, name, redact) if _ADDRESS.fullmatch(value) else redact(value)


_SUBPROTOCOL = "sec-websocket-protocol"
"""Names of protocols, among which a page in a browser puts its key, as it sends no headers."""


def _clean_subprotocols(value: str, name: _Replace) -> str:
    return ", ".join(_clean_subprotocol(item.strip(), name) for item in value.split(","))


def _clean_subprotocol(item: str, name: _Replace) -> str:
    """A protocol that reads like a name, such as `realtime`, or the label before a secret with its
    placeholder, such as `openai-insecure-api-key.REDACTED-1`; any other one is a secret."""
    label, secret = _split_label(item)
    if secret:
        return label + name(secret)
    return item if made_of_words(item) and not holds_credential(item) else name(item)


def _split_label(item: str) -> tuple[str, str]:
    """The label of a secret among the protocols, with its dot, and the secret; "" for none."""
    label, dot, secret = item.partition(".")
    is_private = bool(secret) and _is_private_by_name(label)
    return (label + dot, secret) if is_private else (item, "")


_ADDRESS = re.compile(r"(?:https?:/)?/[^\s\"<>,]*", re.IGNORECASE)
"""A header that is a URL, as `location` is. It may be signed."""


def credentials_of(captured: Captured) -> Iterator[str]:
    """The credentials in headers and URL, which must not be in the bodies either."""
    for name, value in (*captured.request_headers, *captured.headers):
        if name.lower() == _SUBPROTOCOL:
            labelled = (_split_label(item.strip())[1] for item in value.split(","))
            yield from (word for secret in labelled for word in secret_words(secret))
        elif name.lower() not in _KEPT:
            yield from _secret_parts(name, value)
    parts = urlsplit(captured.url)
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    yield from secret_words(unquote(password if colon else user))
    for name, value in parameters(parts.query):
        if parameter_is_secret(name, value):
            yield from _secret_parts(name, value)
            if is_drawn_by_chance(value) and not _IS_ID.search(name):
                yield value


def account_names(captured: Captured) -> frozenset[str]:
    """The ids and names of who pays, which headers give; they must not be in the bodies either."""
    headers = (*captured.request_headers, *captured.headers)
    return frozenset(
        word
        for name, value in headers
        if names_customer(name) and not header_is_secret_by_name(name)
        for word in secret_words(value)
    )


def _is_private_by_name(name: str) -> bool:
    return header_is_secret_by_name(name) or names_customer(name)


_OWNERS = "accounts|projects|organizations|tenants|workspaces|subscriptions"
# `/organizations/workspaces/ID` has no id of an organization: the next collection follows.
_OWNER = re.compile(
    rf"(?<=/)((?:{_OWNERS})/)(?!(?:{_OWNERS}|{'|'.join(NAMES['collections'])})(?:[/?#]|\Z))([^/?#]+)"
)


def clean_url(url: str, name: _Replace, redact: _Replace) -> str:
    """A URL without user and password, without the ids of accounts in its path, without the
    secrets of its query, and without its fragment.

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
    query = with_parameters(query, parameter_is_secret, name)
    clean = f"{before}{slashes}{host}{path}{question}{query}{mark}"
    return redact(clean + (fragment and name(unquote(fragment))))


# What the journal and the logs show. Every request passes here, so what depends on a name, a value
# or a target alone is cached. Bodies are not masked: tests read them from the journal, and the logs
# leave them out.

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
    shown = _masked_path(path) + question + with_parameters(query, parameter_is_private, _mask)
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
    return (value for name, value in parameters(query) if parameter_is_private(name, value))


def _masked_message(message: str, values: Iterable[str], known: KnownSecrets) -> str:
    for value in values:
        message = message.replace(repr(value), repr(MASK))
    parts, last = [], 0
    for _, (start, end) in sorted(known.find(message), key=lambda match: match[1]):
        if start >= last:
            parts += [message[last:start], MASK]
            last = end
    return "".join([*parts, message[last:]])
