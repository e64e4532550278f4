"""The answers that each test gets from VCR, for `mockllm convert-tests`, which loads this module
with `-p`. Other runs do not load it.

Only pytest knows the name of each test, with its classes and parameters, and only a run knows which
cassettes it opens, by marks, fixtures or code, and which of their answers it gets. While the tests
run, vcrpy neither records nor writes.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
from collections.abc import Generator, Mapping
from functools import wraps
from hashlib import md5
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from mockllm_pytest.recording import recording_folder

_FORBIDDEN = "<>?%*:|\"'/\\"
_LONGEST = 255
_SUFFIX = ".yaml"
_FOUND = pytest.StashKey[dict[str, dict[str, Any]]]()
_running: list[dict[str, Any]] = []
"""The test that runs, and nothing between tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option with the folder of the reports: each process writes one."""
    parser.addoption("--mockllm-cassettes-of", metavar="DIR", help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks, in case pytest-recording is gone already."""
    for name in ("vcr", "default_cassette", "block_network", "allowed_hosts"):
        config.addinivalue_line("markers", f"{name}: of pytest-recording")
    config.stash[_FOUND] = {}
    if find_spec("vcr") is not None:
        _watch_vcr()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests whose mark nothing reads: they would send real requests."""
    if not any(map(config.pluginmanager.has_plugin, ("recording", "vcr"))):
        items[:] = [item for item in items if item.get_closest_marker("vcr") is None]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Notes a test, also one that is deselected later."""
    marks = list(item.iter_markers("vcr"))
    for mark in marks:
        # "rewrite" removes cassettes
        cast("dict[str, Any]", mark.kwargs).pop("record_mode", None)
    name = _cassette_name(item)
    cassettes = [name, *(str(cassette) for mark in marks for cassette in mark.args)]
    classes = [parent.name for parent in item.listchain() if isinstance(parent, pytest.Class)]
    item.config.stash[_FOUND][item.nodeid] = {
        "test": item.nodeid,
        "module": str(item.path),
        "function": ".".join([*classes, getattr(item, "originalname", item.name)]),
        "marked": bool(marks),
        "recorded": item.get_closest_marker("mockllm_recorded") is not None,
        "cassettes": cassettes if marks else [],
        "folder": str(recording_folder(item)),
        "outcome": "",
        "reason": "",
        "opened": [],
        "played": [],
        "refused": 0,
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Says which test runs."""
    _running[:] = [item.config.stash[_FOUND][item.nodeid]]
    try:
        return (yield)
    finally:
        _running.clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes what became of the test: the worst of setup, call and teardown."""
    if not _running or (report.when != "call" and report.passed):
        return
    test = _running[0]
    if test["outcome"] in ("", "passed"):
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = crash.message if crash is not None else str(report.longrepr or "")
        test |= {"outcome": report.outcome, "reason": "" if report.passed else reason}


def pytest_unconfigure(config: pytest.Config) -> None:
    """Writes the report. The controller of pytest-xdist, which runs no test, has the rest."""
    if config.stash.get(_FOUND, None) is not None:
        path = Path(config.getoption("--mockllm-cassettes-of"), f"{os.getpid()}.json")
        path.write_text(json.dumps(list(config.stash[_FOUND].values())), encoding="utf-8")


def _cassette_name(item: pytest.Item) -> str:
    """The name of a test's cassette, as pytest-recording forms it (plugin.py and _vcr.py, 0.14):
    with its class, without characters that file names cannot have, and not too long."""
    given = item.get_closest_marker("default_cassette")
    if given is not None and given.args:
        name = str(given.args[0])
    else:
        cls = getattr(item, "cls", None)
        name = f"{cls.__name__}.{item.name}" if cls is not None else item.name
        name = name.translate({ord(character): "-" for character in _FORBIDDEN})
    if len(name) + len(_SUFFIX) > _LONGEST:
        checksum = md5(name.encode(), usedforsecurity=False).hexdigest()
        name = f"{name[: _LONGEST - len(_SUFFIX) - len(checksum) - 3]}...{checksum}"
    return name


# vcrpy


def _watch_vcr() -> None:
    """Notes the cassettes that are opened and the answers that are played."""
    from vcr.cassette import Cassette  # type: ignore[import-untyped]
    from vcr.errors import CannotOverwriteExistingCassetteException  # type: ignore[import-untyped]
    from vcr.record_mode import RecordMode  # type: ignore[import-untyped]

    load, play = Cassette.load, Cassette.play_response

    def path_of(cassette: Any) -> str:
        return str(cassette._path)  # noqa: SLF001 - vcrpy 4 to 7 have no other name for it

    def load_for_replay(**options: Any) -> Any:
        cassette = load(**{**options, "record_mode": RecordMode.NONE})
        if _running:
            _running[0]["opened"].append(path_of(cassette))
        return cassette

    @wraps(play)
    def note_response(cassette: Any, request: Any) -> Any:
        before = dict(cassette.play_counts)
        response = play(cassette, request)
        counts = cassette.play_counts.items()
        index = next(index for index, count in counts if count != before.get(index, 0))
        if _running:
            stored = cassette.data[index][0]
            clean = cassette.filter_request(request)
            note = {
                "cassette": path_of(cassette),
                "number": index + 1,
                "hidden": (clean.uri, _plain(clean.body)) != (request.uri, _plain(request.body)),
            }
            _running[0]["played"].append({**note, **_exchange(request, stored, response)})
        return response

    refuse = CannotOverwriteExistingCassetteException.__init__

    @wraps(refuse)
    def note_refusal(error: Any, *args: Any, **options: Any) -> None:
        if _running:
            _running[0]["refused"] += 1
        refuse(error, *args, **options)

    CannotOverwriteExistingCassetteException.__init__ = note_refusal
    Cassette.load, Cassette.play_response = staticmethod(load_for_replay), note_response
    Cassette._save = lambda *_, **__: None  # noqa: SLF001 - nothing may be written


def _exchange(request: Any, stored: Any, response: Mapping[str, Any]) -> dict[str, Any]:
    """An exchange as a cassette has it: the request that the test sends now, with the body that is
    stored where that of the library is no text."""
    body = _plain(request.body)
    return {
        "request": {
            "method": request.method,
            "uri": request.uri,
            "headers": _headers(request.headers),
            "body": _plain(stored.body) if body is None else body,
        },
        "response": {
            "status": response.get("status") or {"code": response.get("status_code")},
            "headers": _headers(response.get("headers") or {}),
            "body": _plain(_answer(response)),
        },
    }


def _answer(response: Mapping[str, Any]) -> Any:
    body = response.get("body", response.get("content"))
    return body.get("string") if isinstance(body, Mapping) else body


def _headers(headers: Any) -> list[list[Any]]:
    pairs = (
        (name, value if isinstance(value, list) else [value]) for name, value in headers.items()
    )
    return [[_text(name), [_text(each) for each in values]] for name, values in pairs]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _plain(body: Any) -> dict[str, str] | None:
    """A body as JSON; None for one that only its library can write."""
    if hasattr(body, "read"):
        body = body.read()
    elif hasattr(body, "__next__"):
        body = b"".join(body)
    if isinstance(body, dict | list):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    if body is None:
        body = b""
    if not isinstance(body, bytes | bytearray):
        return None
    return {"base64_string": base64.b64encode(body).decode()}
