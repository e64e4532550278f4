"""Which environment variables lead the clients of each API to a server: one table.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["MOCK_KEY", "BaseURL", "client_base_urls", "client_environment", "unproxied"]

MOCK_KEY = "mock-key"
"""The API key given to clients; the server takes any."""


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable that SDKs read their base URL from.

    Args:
        apis: the APIs whose clients read it.
        without: what this variable leaves out at the end of the API's base URL.
    """

    name: str
    apis: tuple[str, ...]
    without: str = ""


# Azure's client adds the version itself. Its key variable is not set: beside OPENAI_API_KEY it
# makes the openai module refuse to choose between the two services.
_BASE_URLS = (
    _Variable("OPENAI_BASE_URL", ("chat", "responses")),
    _Variable("AZURE_OPENAI_ENDPOINT", ("chat", "responses"), without="/v1"),
    _Variable("ANTHROPIC_BASE_URL", ("anthropic",)),
    _Variable("GOOGLE_GEMINI_BASE_URL", ("gemini",)),
)
_KEYS = {
    "chat": ("OPENAI_API_KEY",),
    "responses": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
# Credentials of another kind, beside which a key of ours would be sent, too.
_OTHER_KEYS = {"anthropic": ("ANTHROPIC_AUTH_TOKEN",)}


@dataclass(frozen=True, slots=True)
class BaseURL:
    """A base URL and the APIs it serves; `variable` is "" where no SDK reads one."""

    variable: str
    url: str
    apis: tuple[str, ...]


def client_base_urls(base_urls: Mapping[str, str]) -> tuple[BaseURL, ...]:
    """The base URL to give to each kind of client.

    Args:
        base_urls: by the name of the API (`MockServer.base_urls`).
    """
    return tuple(_base_urls(base_urls))


def _base_urls(base_urls: Mapping[str, str]) -> Iterator[BaseURL]:
    known: set[str] = set()
    for variable in _BASE_URLS:
        apis = tuple(api for api in variable.apis if api in base_urls)
        if apis:
            known.update(apis)
            yield BaseURL(variable.name, base_urls[apis[0]].removesuffix(variable.without), apis)
    for api, url in base_urls.items():
        if api not in known:
            yield BaseURL("", url, (api,))


def client_environment(
    base_urls: Mapping[str, str], own: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The variables under which the SDKs find the server: their base URLs, and keys for it.

    Args:
        base_urls: by the name of the API (`MockServer.base_urls`).
        own: the environment of a client that keeps the credentials it has, for a service behind
            the server asks for them. Only where it has none for an API is the mock key set.
    """
    variables = {one.variable: one.url for one in client_base_urls(base_urls) if one.variable}
    keys = {
        key: MOCK_KEY
        for api in base_urls
        if not any(own.get(name, MOCK_KEY) not in ("", MOCK_KEY) for name in _credentials(api))
        for key in _KEYS.get(api, ())
    }
    return variables | keys


def _credentials(api: str) -> tuple[str, ...]:
    return (*_KEYS.get(api, ()), *_OTHER_KEYS.get(api, ()))


_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def unproxied(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep requests to this machine off a proxy; none where none is set.

    Args:
        environment: that of the client.
    """
    if not any(name.lower() in _PROXIES for name in environment):
        return {}
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, [given, "127.0.0.1", "localhost"]))
    return {"no_proxy": hosts, "NO_PROXY": hosts}
