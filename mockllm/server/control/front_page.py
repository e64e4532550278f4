"""The page at `/`: what this server is, what it serves, and where the documentation is.

It is for people, who open the address of the server in a browser or with curl. Clients that accept
no page get the error of an unknown route, as for any other path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aiohttp import web

from mockllm.core.http import TimedBytes
from mockllm.protocols import Protocols
from mockllm.protocols.environment import client_base_urls
from mockllm.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer
from mockllm.server.control.routes import base_urls
from mockllm.server.http.addresses import url_of

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_FILES = ("docs/server.md", "docs/scenarios.md", "docs/cli.md")


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether the client of a request for `/` takes a page or a text."""
    accepted = headers.get("accept", "*/*").lower()
    return any(kind in accepted for kind in ("text/html", "text/plain", "text/*", "*/*"))


def front_page(
    request: web.BaseRequest,
    headers: Mapping[str, str],
    session: str,
    protocols: Protocols,
    count: int,
    *,
    ui: bool = True,
) -> HttpAnswer:
    """The page, as text."""
    host = headers.get("host", "")
    root = f"http://{host}" if _HOST.fullmatch(host) else _address(request)
    played = f"It plays {count} scenario{'s' * (count != 1)}"
    lines = [
        f"This is mockllm, a mock server for LLM clients. {played} as the streams of these APIs.",
        "No model is called; any API key will do.",
        "",
        "Base URLs for clients:",
    ]
    for base in client_base_urls(base_urls(protocols, root + session)):
        setting = f"{base.variable}={base.url}" if base.variable else base.url
        lines.append(f"  {setting}  # {', '.join(base.apis)}")
    lines += ["", "About this server:"]
    lines += [f"  {root}{path}  # {what}" for path, what in (_ROUTES if ui else _ROUTES[1:])]
    lines += ["", "Documentation:", *(f"  {file}" for file in _FILES), ""]
    fields = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
    data = "\n".join(lines).encode()
    return bytes_answer(200, {**fields, **CORS}.items(), [TimedBytes(0, data)], streamed=False)


def _address(request: web.BaseRequest) -> str:
    """The URL of the server, for a request whose `Host` is none."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return "http://127.0.0.1" if name is None else url_of(*name[:2])


_ROUTES = (
    ("/_mockllm/ui", "a live page: requests, answers and scenarios"),
    ("/_mockllm/scenarios", "the scenarios"),
    ("/_mockllm/journal", "the requests so far"),
    ("/_mockllm/health", "whether the server answers"),
)
