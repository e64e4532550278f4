"""Reads the events of a live page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.timeouts import GIVE_UP

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnirts\u202c",
    "{{7*7}}${7*7}",
    "half \ud83c",
    "\x00\x1b[31m\x7f",
    "</textarea><svg onload=alert(1)>",
)
"""Texts that a page must show as they are."""


class Events:
    """The events of one page, in their order."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def next(self) -> tuple[str, Any]:
        """The next event, comments left out."""
        name, data = "", []
        for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data.append(line.removeprefix("data: "))
            elif not line and data:
                return name, json.loads("\n".join(data))
        raise EOFError

    def until(self, name: str) -> Any:
        """The next event of a name."""
        while True:
            found, data = self.next()
            if found == name:
                return data

    def row(self, **wanted: object) -> dict[str, Any]:
        """The next row with these values."""
        while True:
            name, data = self.next()
            for one in data if name == "requests" else ():
                if all(one[key] == value for key, value in wanted.items()):
                    return one


@contextmanager
def page(url: str) -> Iterator[Events]:
    """An open page."""
    with (
        httpx.Client(base_url=url, timeout=GIVE_UP) as client,
        client.stream("GET", "/_mockllm/ui/events") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        yield Events(answer.iter_lines())
