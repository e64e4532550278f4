"""Lists the tests that pytest-recording or pytest-vcr records, for `mockllm convert-tests`, which
loads this module with `-p`. Other runs do not load it.

Only pytest knows the name of each test, with its classes and parameters, and the marks that it gets
from its class or module.
"""

from __future__ import annotations

import argparse
import json
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from mockllm_pytest.recording import recording_folder

_FORBIDDEN = "<>?%*:|\"'/\\"
_LONGEST = 255
_SUFFIX = ".yaml"
_FOUND = pytest.StashKey[list[dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option with the file that is written."""
    parser.addoption("--mockllm-cassettes-of", metavar="FILE", help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks, in case pytest-recording is gone already."""
    for name in ("vcr", "default_cassette", "block_network", "allowed_hosts"):
        config.addinivalue_line("markers", f"{name}: of pytest-recording")
    config.stash[_FOUND] = []


def pytest_itemcollected(item: pytest.Item) -> None:
    """Notes a test, also one that is deselected later."""
    marks = list(item.iter_markers("vcr"))
    if not marks:
        return
    name = _cassette_name(item)
    item.config.stash[_FOUND].append(
        {
            "test": item.nodeid,
            "module": str(item.path),
            "cassettes": [name, *(str(cassette) for mark in marks for cassette in mark.args)],
            "folder": str(recording_folder(item)),
        }
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Writes the list."""
    Path(config.getoption("--mockllm-cassettes-of")).write_text(json.dumps(config.stash[_FOUND]))


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
