"""The answers that each test gets from VCR, for `mockllm convert-tests`, which loads this module
with `-p`. Other runs do not load it.

Only pytest knows the name of each test, with its classes and parameters, and only a run knows which
cassettes it opens, by marks, fixtures or code, and which of their answers it gets. While the tests
run, vcrpy neither records nor writes.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Generator
from hashlib import md5
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mockllm_pytest.recording import recording_folder
from mockllm_pytest.vcr_watch import (
    Watcher,
    body_bytes,
    path_of,
    request_as_stored,
    response_as_stored,
    watch_vcr,
)

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
        watch_vcr(Watcher(_note_cassette, _note_response, _note_refusal))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests whose mark nothing reads: they would send real requests."""
    if not any(map(config.pluginmanager.has_plugin, ("recording", "vcr"))):
        items[:] = [item for item in items if item.get_closest_marker("vcr") is None]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Notes a test, also one that is deselected later."""
    marks = list(item.iter_markers("vcr"))
    name = cassette_name(item)
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
    if _running[0]["outcome"] in ("", "passed"):
        _running[0] |= {"outcome": report.outcome, "reason": reason_of(report)}


def reason_of(report: pytest.TestReport) -> str:
    """Why a test did not pass; "" if it did."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return "" if report.passed else crash.message if crash else str(report.longrepr or "")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Writes the report. The controller of pytest-xdist, which runs no test, has the rest."""
    if config.stash.get(_FOUND, None) is not None:
        path = Path(config.getoption("--mockllm-cassettes-of"), f"{os.getpid()}.json")
        path.write_text(json.dumps(list(config.stash[_FOUND].values())), encoding="utf-8")


def cassette_name(item: pytest.Item) -> str:
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


def _note_cassette(cassette: Any) -> None:
    if _running:
        _running[0]["opened"].append(path_of(cassette))


def _note_response(cassette: Any, index: int, request: Any, response: Any) -> None:
    if not _running:
        return
    stored, clean = cassette.data[index][0], cassette.filter_request(request)
    body, clean_body = body_bytes(request.body), body_bytes(clean.body)
    note = {
        "cassette": path_of(cassette),
        "number": index + 1,
        "hidden": (clean.uri, clean_body) != (request.uri, body),
        # That is stored where that of the library is no text.
        "request": request_as_stored(request, body_bytes(stored.body) if body is None else body),
        "response": response_as_stored(response),
    }
    _running[0]["played"].append(note)


def _note_refusal(_: Any, __: Any) -> None:
    if _running:
        _running[0]["refused"] += 1
