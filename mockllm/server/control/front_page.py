"""The page at `/`: what this server is, what it serves, and where the documentation is.

It is for people, who open the address of the server in a browser or with curl. Clients that accept
no page get the error of an unknown route, as for any other path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape

from aiohttp import web

from mockllm.core.timed_bytes import TimedBytes
from mockllm.protocols.base import WireProtocol
from mockllm.protocols.environment import client_base_urls
from mockllm.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer
from mockllm.server.control.routes import base_urls
from mockllm.server.http.addresses import url_of

__all__ = ["front_page", "wants_page"]

_Routes = tuple[tuple[str, str], ...]

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_FILES = (
    ("server", "docs/server.md"),
    ("scenarios", "docs/scenarios.md"),
    ("command line", "docs/cli.md"),
)
_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether the client of a request for `/` takes a page or a text."""
    accepted = headers.get("accept", "*/*").lower()
    return any(one in accepted for one in ("text/html", "text/plain", "text/*", "*/*"))


def front_page(
    request: web.BaseRequest,
    headers: Mapping[str, str],
    session: str,
    protocols: Mapping[str, WireProtocol],
    count: int,
    *,
    ui: bool = True,
) -> HttpAnswer:
    """The page as HTML for browsers, which name `text/html`, and as text for anything else.

    Args:
        headers: of the request, their names in lower case.
        session: the prefix of the session's paths, such as `/s/one`, or "".
        protocols: what is served, by name.
        count: how many scenarios are served.
        ui: whether there is a live page.
    """
    host = headers.get("host", "")
    root = f"http://{host}" if _HOST.fullmatch(host) else _address(request)
    urls = base_urls(protocols, root + session)
    html = "text/html" in headers.get("accept", "").lower()
    routes = _ROUTES if ui else _ROUTES[1:]
    text = _html(urls, count, routes) if html else _text(root, urls, count, routes)
    kind = "text/html" if html else "text/plain"
    fields = {
        "content-type": f"{kind}; charset=utf-8",
        "content-security-policy": f"default-src 'none'; style-src '{_style_hash()}'",
        "vary": "accept",
        **CORS,
    }
    return bytes_answer(200, fields.items(), [TimedBytes(0, text.encode())], streamed=False)


def _address(request: web.BaseRequest) -> str:
    """The URL of the server, for a request whose `Host` is none."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return "http://127.0.0.1" if name is None else url_of(*name[:2])


def _what(count: int) -> str:
    played = f"It plays {count} scenario{'s' * (count != 1)}"
    return (
        f"This is mockllm, a mock server for LLM clients. {played} as the streams of these APIs. "
        "No model is called; any API key will do."
    )


def _base_urls(urls: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """APIs and their base URL, as clients get it."""
    for base in client_base_urls(urls):
        setting = f"{base.variable}={base.url}" if base.variable else base.url
        yield ", ".join(base.apis), setting


_ROUTES = (
    ("/_mockllm/ui", "a live page: requests, answers and scenarios"),
    ("/_mockllm/scenarios", "the scenarios"),
    ("/_mockllm/journal", "the requests so far"),
    ("/_mockllm/health", "whether the server answers"),
)


def _text(root: str, urls: Mapping[str, str], count: int, routes: _Routes) -> str:
    lines = [_what(count), "", "Base URLs for clients:"]
    lines += [f"  {setting}  # {apis}" for apis, setting in _base_urls(urls)]
    lines += ["", "About this server:"]
    lines += [f"  {root}{path}  # {what}" for path, what in routes]
    lines += ["", "Documentation:"]
    lines += [f"  {where}" for _, where in _documentation()]
    return "\n".join([*lines, ""])


def _html(urls: Mapping[str, str], count: int, routes: _Routes) -> str:
    rows = "".join(
        f"<tr><td>{escape(apis)}</td><td><code>{escape(setting)}</code></td></tr>\n"
        for apis, setting in _base_urls(urls)
    )
    about = "".join(
        f'<li><a href="{path}">{path}</a>: {escape(what)}</li>\n' for path, what in routes
    )
    docs = "".join(f"<li>{_link(name, where)}</li>\n" for name, where in _documentation())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<title>mockllm</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>mockllm</h1>\n<p>{escape(_what(count))}</p>\n"
        "<h2>Base URLs for clients</h2>\n<table>\n<tr><th>API</th><th>setting</th></tr>\n"
        f"{rows}</table>\n<h2>About this server</h2>\n<ul>\n{about}</ul>\n"
        f"<h2>Documentation</h2>\n<ul>\n{docs}</ul>\n</body>\n</html>\n"
    )


def _link(name: str, where: str) -> str:
    if where.startswith(("https://", "http://")):
        return f'<a href="{escape(where)}">{escape(name)}</a>'
    return f"{escape(name)}: <code>{escape(where)}</code>"


@cache
def _style_hash() -> str:
    import base64
    import hashlib

    return f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"


@cache
def _documentation() -> tuple[tuple[str, str], ...]:
    """Name and address of each page: the URLs of the package, else the files of its source."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("mockllm-harness").get_all("Project-URL") or ()
    except PackageNotFoundError:
        named = ()
    found = [tuple(one.split(", ", 1)) for one in named]
    urls = tuple((one[0], one[1]) for one in found if len(one) == 2 and "://" in one[1])
    return urls or _FILES
