"""The files of the live page: HTML, CSS, JavaScript modules and an icon."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from mockllm.core.http import TimedBytes
from mockllm.errors import RequestError
from mockllm.replay.compilation.http_answer import HttpAnswer, bytes_answer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page may load and run: only the files here, and nothing inline."""

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def names() -> frozenset[str]:
    """The names of the files."""
    site = files("mockllm.ui") / "site"
    return frozenset(file.name for file in site.iterdir() if file.name.rpartition(".")[2] in _TYPES)


@cache
def _read(name: str) -> tuple[bytes, str]:
    """A file, and its tag: another one for other bytes."""
    data = (files("mockllm.ui") / "site" / name).read_bytes()
    return data, f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def file_answer(name: str, headers: Mapping[str, str]) -> HttpAnswer:
    """The answer with a file, or that the browser has it already."""
    name = name or "index.html"
    if name not in names():
        raise RequestError(f"The live page has no file {name[:80]!r}.", status=404)
    data, tag = _read(name)
    fields = {
        "content-type": _TYPES[name.rpartition(".")[2]],
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
        "etag": tag,
    }
    if headers.get("if-none-match") == tag:
        return bytes_answer(304, fields.items(), (), streamed=False, bodiless=True)
    return bytes_answer(200, fields.items(), [TimedBytes(0, data)], streamed=False)
