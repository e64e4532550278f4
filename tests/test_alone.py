"""A checkout needs nothing beside it: what tests find there goes through tests/corpus.py."""

from __future__ import annotations

import re
from pathlib import Path

from tests.import_graph import TESTS, modules_that_import

CORPUS = TESTS / "corpus.py"

_BESIDE = re.compile(r"""/ ["']shared["']|["'](?:\.\./)+shared\b""")
"""A path to the folder beside the checkout, in an expression or as a text."""


def _names_the_folder(text: str) -> bool:
    return _BESIDE.search(text) is not None


def test_one_module_names_the_folder() -> None:
    """So all that it lacks skips in one way, and `pytest -m corpus` runs all that looks there."""
    others = [path for path in TESTS.rglob("*.py") if path not in (CORPUS, Path(__file__))]
    assert _names_the_folder(CORPUS.read_text())
    assert not [path for path in others if _names_the_folder(path.read_text())]


def test_other_ways_to_name_it_are_seen() -> None:
    """In an expression or as a text; a folder of that name inside of the checkout is another."""
    for line in ('ROOT / "shared" / "corpus"', "open('../shared/corpus/a')", '"../../shared"'):
        assert _names_the_folder(line)
    for line in ('["shared"]', "tests/serve/server/shared_state", '"shared/x"'):
        assert not _names_the_folder(line)


def test_modules_that_read_it_by_way_of_others_are_found() -> None:
    """The page that tests/docs makes, and chunks that stand in a module with recorded streams."""
    found = {path.relative_to(TESTS).as_posix() for path in modules_that_import(CORPUS)}
    assert {"docs/test_freshness_page.py", "wire/protocols/test_openai_chat_unread.py"} <= found
    assert "test_alone.py" not in found
