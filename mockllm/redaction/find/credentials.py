"""What is a credential in headers and URLs: the one opinion that recorder, journal and logs share.

A header is secret by its name, or because its value looks like a credential. A parameter is secret
unless it is known to be harmless, because the names of parameters are not standardised: services
call a key `key`, `sig`, `code`, `t` or whatever they like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from mockllm.redaction.find.names import NAMES
from mockllm.redaction.find.patterns import credentials_in, part_at_end
from mockllm.redaction.find.secret_names import has_letters_and_digits, name_is_secret

# `x-mockllm-session` is the name of a test.
_HARMLESS_HEADERS = frozenset(NAMES["harmless headers"])
_OURS = "x-mockllm-"


@lru_cache(maxsize=1024)
def header_is_secret_by_name(name: str) -> bool:
    """Whether a header must not be shown or kept whatever its value is."""
    name = name.lower()
    if name in _HARMLESS_HEADERS or name.startswith(_OURS):
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


def parameter_is_secret(name: str, value: str) -> bool:
    """Whether a parameter of a query must not be shown or kept.

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


def with_parameters(query: str, replace: Callable[[str], str]) -> str:
    """A query in which each value that is secret is replaced; all else stays as it was written.

    Args:
        replace: gets the value without escapes; gives what is written instead.
    """
    return "&".join(_with_parameter(pair, replace) for pair in query.split("&"))


def _with_parameter(pair: str, replace: Callable[[str], str]) -> str:
    name, equals, value = pair.partition("=")
    if holds_credential(unquote(name)):
        return replace(unquote(pair))
    if parameter_is_secret(unquote(name), unquote(value)):
        return name + equals + replace(unquote(value))
    return pair


_BETWEEN_WORDS = re.compile(r"[\s;,=:\"]+")


def secret_words(value: str, *, first: bool = False) -> Iterator[str]:
    """The words of a secret value that are hidden elsewhere too, each once.

    Args:
        first: only those before the first semicolon: what follows in `set-cookie` is no secret.
    """
    value = value.partition(";")[0] if first else value
    for word in dict.fromkeys((value, *_BETWEEN_WORDS.split(value))):
        if len(word) >= 8 and " " not in word and (has_letters_and_digits(word) or len(word) >= 20):
            yield word
