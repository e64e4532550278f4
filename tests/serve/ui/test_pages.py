"""The files of the live page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mockllm.serve.ui.page_routes import POLICY, names
from tests.conftest import Served

SCENARIO = "scenario: hello\nmatch: {user: hello}\nturns: [{reply: {text: hi}}]\n"


def test_files(serve: Callable[..., Served]) -> None:
    """Each file is there, has its type and its policy, and is not sent twice."""
    served = serve(SCENARIO)
    assert {"index.html", "main.js", "style.css", "shared.css"} <= names()
    for name in ("", *names()):
        answer = served.http.get(f"/_mockllm/ui/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        tag = {"if-none-match": answer.headers["etag"]}
        again = served.http.get(f"/_mockllm/ui/{name}", headers=tag)
        assert (again.status_code, again.content) == (304, b"")
    kinds = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg"}
    for name in names():
        answer = served.http.get(f"/_mockllm/ui/{name}")
        assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])


def test_nothing_inline_and_nothing_foreign(serve: Callable[..., Served]) -> None:
    """What the policy forbids is not there: the page would be broken."""
    served = serve(SCENARIO)
    html = served.http.get("/_mockllm/ui").text
    assert re.findall(r"<script(?![^>]*src=)", html) == []
    assert re.findall(r"\son\w+=|style=|<style", html) == []
    for name in names():
        text = served.http.get(f"/_mockllm/ui/{name}").text
        assert re.findall(r"https?://(?!www\.w3\.org/)", text) == [], name
        assert "innerHTML" not in text, name
        assert "eval(" not in text, name


@pytest.mark.parametrize(
    "path",
    [
        "/nothing.js",
        "/../routes.py",
        "/%2e%2e/routes.py",
        "/..%2froutes.py",
        "/site/main.js",
        "/a/b",
    ],
)
def test_no_other_file(serve: Callable[..., Served], path: str) -> None:
    assert serve(SCENARIO).http.get(f"/_mockllm/ui{path}").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_is_only_read(serve: Callable[..., Served], method: str) -> None:
    assert serve(SCENARIO).http.request(method, "/_mockllm/ui/events").status_code == 405


def test_small_enough_to_read() -> None:
    """All files together; the aim was 1,500 lines, and this bound keeps them from growing."""
    from importlib.resources import files

    site = files("mockllm.serve.ui") / "site"
    lines = sum(len((site / name).read_text().splitlines()) for name in names())
    assert lines < 2200
