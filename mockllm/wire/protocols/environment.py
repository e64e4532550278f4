"""The environment variables that point the SDKs of each API to a server, from `PROTOCOLS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType

from mockllm.core.record import record
from mockllm.wire.protocols import PROTOCOLS

MOCK_KEY = "mock-key"
"""The API key for clients; the server accepts any."""


@record
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
    urls: dict[str, str] = {}
    readers: dict[str, list[str]] = {}
    for api, url in base_urls.items():
        for variable, without in PROTOCOLS.addresses[api].env.base_urls:
            urls.setdefault(variable, url.removesuffix(without))
            readers.setdefault(variable, []).append(api)
    others = {api: url for api, url in base_urls.items() if api not in chain(*readers.values())}
    return (
        *(BaseURL(variable, url, tuple(readers[variable])) for variable, url in urls.items()),
        *(BaseURL("", url, (api,)) for api, url in others.items()),
    )


def client_environment(
    base_urls: Mapping[str, str], own: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The variables by which the SDKs find the server: base URLs, keys, and what else they need.

    Args:
        base_urls: by the name of the API (`MockServer.base_urls`).
        own: the environment of a client that must keep its credentials, because the service behind
            the server needs them. The mock key is set only for APIs without any.
    """
    variables = {url.variable: url.url for url in client_base_urls(base_urls) if url.variable}
    return variables | client_keys(base_urls, own)


def environment_on_request(service: str, base_urls: Mapping[str, str]) -> dict[str, str]:
    """The variables by which the SDKs find a service that has variables of its own: its base URL,
    its key, and what else they need.

    Args:
        service: such as `azure`.
        base_urls: by the name of the API (`MockServer.base_urls`).
    """
    variables: dict[str, str] = {}
    for api, url in base_urls.items():
        env = PROTOCOLS.addresses[api].env.on_request.get(service)
        if env is not None:
            urls = {name: url.removesuffix(without) for name, without in env.base_urls}
            variables = {**urls, **dict.fromkeys(env.keys, MOCK_KEY), **dict(env.fixed)} | variables
    return variables


def services_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The base URLs that an environment names for SDKs, and for libraries around them."""
    names: list[str] = []
    for address in PROTOCOLS.addresses.values():
        for env in (address.env, *address.env.on_request.values()):
            names += [*(name for name, _ in env.base_urls), *env.other_base_urls]
    values = dict.fromkeys(environment.get(name, "") for name in names)
    return tuple(value if "://" in value else f"http://{value}" for value in values if value)


def credentials_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The keys and other credentials for SDKs that an environment has."""
    names = chain.from_iterable(map(_credentials, PROTOCOLS.addresses))
    return {name: environment[name] for name in names if name in environment}


def dummy_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """The mock key for those variables with keys that are set only on request, and that an
    environment has all the same."""
    every = (address.env.on_request.values() for address in PROTOCOLS.addresses.values())
    return {key: MOCK_KEY for env in chain(*every) for key in env.keys if key in environment}


def client_keys(
    apis: Iterable[str], own: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The variables without which SDKs do not start, keys above all; see `client_environment`."""
    named = tuple(apis)
    keys = {
        key: MOCK_KEY
        for api in named
        if not any(own.get(name, MOCK_KEY) not in ("", MOCK_KEY) for name in _credentials(api))
        for key in PROTOCOLS.addresses[api].env.keys
    }
    fixed = [pair for api in named for pair in PROTOCOLS.addresses[api].env.fixed]
    return keys | {name: value for name, value in fixed if not own.get(name)}


def _credentials(api: str) -> tuple[str, ...]:
    return (*PROTOCOLS.addresses[api].env.keys, *PROTOCOLS.addresses[api].env.other_keys)


_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def proxy_exemptions(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that exempt this machine from a proxy; {} where no proxy is set.

    Args:
        environment: of the client.
    """
    if not any(name.lower() in _PROXIES for name in environment):
        return {}
    exempt = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, [exempt, "127.0.0.1", "localhost"]))
    return {"no_proxy": hosts, "NO_PROXY": hosts}
