"""Changes the HTTP libraries of this process, and what starts threads: each method once, when its
module is imported, and for good.

Such a method asks whose request it is (`ownership`), and is the library's own where no test has a
session. So tests turn a switch and no class, and it does not matter in which order they and other
fixtures undo what they did. Imported in every run of pytest: `transports`, which needs more, comes
in with the first request that is redirected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from inspect import iscoroutinefunction
from types import ModuleType
from typing import Any

from mockllm.serve.interception import ownership
from mockllm.serve.interception.libraries import LED, OWN_METHODS

_Method = Callable[..., Any]

_HTTPX = {
    "HTTPTransport.handle_request": "httpx_handle",
    "HTTPTransport.close": "httpx_close",
    "HTTPTransport.__exit__": "httpx_close",
    "AsyncHTTPTransport.handle_async_request": "httpx_handle_async",
    "AsyncHTTPTransport.aclose": "httpx_close_async",
    "AsyncHTTPTransport.__aexit__": "httpx_close_async",
}
_LEADING = {
    "http.client": {
        "HTTPConnection.connect": "http_client_connect",
        "HTTPSConnection.connect": "http_client_connect",
        "HTTPConnection.endheaders": "http_client_end_headers",
    },
    "urllib3.connectionpool": {"HTTPConnectionPool.urlopen": "urllib3_open"},
    "httpx._transports.default": _HTTPX,
    "httpx2._transports.default": _HTTPX,
    "aiohttp.connector": {
        "TCPConnector.connect": "aiohttp_connect",
        "TCPConnector._create_connection": "aiohttp_create",
        "TCPConnector._get": "aiohttp_get",
    },
    "websockets.asyncio.client": {"connect.create_connection": "websockets_connect"},
}
"""By module and method, the function of `transports` that is called in its place."""

_CARRYING: dict[str, dict[str, _Method]] = {
    "threading": {"Thread.start": ownership.start_thread},
    "concurrent.futures.thread": {"ThreadPoolExecutor.submit": ownership.submit},
    "multiprocessing.pool": dict.fromkeys(
        ("Pool.apply_async", "Pool._map_async", "Pool.imap", "Pool.imap_unordered"),
        ownership.submit_many,
    ),
}
"""By module and method, what carries the owner there."""

_KEEPING = {
    f"{package}.{module}": path
    for package in ("httpcore", "httpcore2")
    for module, path in (
        ("_sync.connection_pool", "ConnectionPool.handle_request"),
        ("_sync.connection", "HTTPConnection.handle_request"),
        ("_async.connection_pool", "AsyncConnectionPool.handle_async_request"),
        ("_async.connection", "AsyncHTTPConnection.handle_async_request"),
    )
}
"""By module, the method that respx or vcrpy replaces, and that requests to mockllm need."""

_MODULES = (*_LEADING, *_CARRYING, *_KEEPING)


def install() -> None:
    """Changes what is imported, and what will be. It may be called again: a method that was put
    back meanwhile is changed again, and none twice."""
    ownership.begin_between()
    for name in _MODULES:
        if name in sys.modules:
            _change(sys.modules[name])
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _change(module: ModuleType) -> None:
    for path, function in _LEADING.get(module.__name__, {}).items():
        _replace(module, path, partial(_leading, function))
    for path, carry in _CARRYING.get(module.__name__, {}).items():
        _replace(module, path, partial(_carrying, carry))
    if module.__name__ in _KEEPING:
        owner, name, method = _own_method(module, _KEEPING[module.__name__])
        if method is not None:
            OWN_METHODS[owner] = name, method


_changed: dict[_Method, _Method] = {}
"""The methods of the libraries, and what stands in their places."""


def _own_method(module: ModuleType, path: str) -> tuple[Any, str, _Method | None]:
    """The class of a method, its name, and the method where it is the library's own.

    Another function that stands there now is what somebody put over ours, and calls it.
    """
    class_name, _, name = path.partition(".")
    owner = getattr(module, class_name, None)  # None: while the module is being imported
    method = getattr(owner, name, None)
    code = getattr(method, "__code__", None)
    is_own = code is not None and code.co_filename == module.__file__
    return owner, name, method if is_own else None


def _replace(module: ModuleType, path: str, make: Callable[[_Method], _Method]) -> None:
    """Replaces a method where it is the library's own."""
    owner, name, method = _own_method(module, path)
    if method is not None:
        if method not in _changed:
            _changed[method] = make(method)
        setattr(owner, name, _changed[method])


def _leading(function: str, method: _Method) -> _Method:
    def find() -> _Method:
        from mockllm.serve.interception import transports

        led: _Method = getattr(transports, function)
        return led

    if iscoroutinefunction(method):

        @wraps(method)
        async def lead_async(self: Any, *args: Any, **more: Any) -> Any:
            to = ownership.find_redirect()
            if to is None and not hasattr(self, LED):
                return await method(self, *args, **more)
            return await find()(method, to, self, *args, **more)

        return lead_async

    @wraps(method)
    def lead(self: Any, *args: Any, **more: Any) -> Any:
        to = ownership.find_redirect()
        if to is None and not hasattr(self, LED):
            return method(self, *args, **more)
        return find()(method, to, self, *args, **more)

    return lead


def _carrying(carry: _Method, method: _Method) -> _Method:
    @wraps(method)
    def call(self: Any, /, *args: Any, **more: Any) -> Any:
        return carry(method, self, *args, **more)

    return call


class _Finder:
    """Finds the modules as the other finders do, and has them changed once they are there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _MODULES:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    """A loader, and what is done with its module. Everything else it is asked for, it hands on."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _change(module)
