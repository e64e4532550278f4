"""docs/index.md, docs/get-started.md and docs/coding-agents.md work as written; docs/llms.txt leads
to the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mockllm import load
from tests.docs.running import run, write

DOCS = Path(__file__).parents[2] / "docs"
MODULES = Path(__file__).parents[1] / "clients" / "sdks" / "node_modules"


@pytest.mark.slow
def test_the_first_ten_minutes(tmp_path: Path) -> None:
    """The files of the tutorial are written, and its commands print what it says."""
    consoles = write(tmp_path, (DOCS / "get-started.md").read_text())
    assert len(consoles) == 4
    for console in consoles:
        run(tmp_path, console)


@pytest.mark.slow
def test_what_coding_agents_read(tmp_path: Path) -> None:
    """The tests of the page pass and its scenarios load; it has at most 200 lines."""
    page = (DOCS / "coding-agents.md").read_text()
    assert len(page.splitlines()) <= 200
    write(tmp_path, page)
    assert len(load([tmp_path / "scenarios"])) == 4
    run(tmp_path, "$ python -m pytest -q test_agent.py\n6 passed\n")


@pytest.mark.slow
def test_a_client_over_a_websocket(tmp_path: Path) -> None:
    """The scenario and the programs of the page do what it says."""
    page, _, _ = (DOCS / "websockets.md").read_text().partition("## Sessions of any API")
    consoles = write(tmp_path, page)
    assert len(consoles) == 2
    for console in consoles:
        run(tmp_path, console)


@pytest.mark.slow
def test_clients_that_speak(tmp_path: Path) -> None:
    """One scenario is played by the programs of both APIs of voice."""
    consoles = write(tmp_path, (DOCS / "voice.md").read_text())
    assert len(consoles) == 3
    for console in consoles:
        if "node call.mjs" in console:
            if not (MODULES / "openai").is_dir():
                continue  # tests/clients/test_openai_realtime.py says so
            (tmp_path / "node_modules").symlink_to(MODULES)
        run(tmp_path, console)


def test_the_first_page_has_the_lines_of_readme() -> None:
    """Its code is that of README, which a test executes."""
    block = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    shown = block.search((DOCS / "index.md").read_text())
    readme = block.search((DOCS.parent / "README.md").read_text())
    assert shown is not None
    assert readme is not None
    assert shown[1] == readme[1]


def test_llms_txt_leads_to_pages() -> None:
    """It has the form of llmstxt.org: a title, a summary, and lists of links that are there."""
    text = (DOCS / "llms.txt").read_text()
    assert text.startswith("# mockllm\n\n> ")
    targets = re.findall(r"^- \[.+\]\((.+)\): .+$", text, re.MULTILINE)
    assert len(targets) == text.count("\n- ")
    assert [target for target in targets if not (DOCS / target).is_file()] == []


LONGEST = 15_000
"""Bytes of a page."""

LONGER = {
    "architecture": "For contributors, who read it once.",
    "cli-serving": "A reference of options, each looked up by its name.",
    "decisions": "For contributors; a paragraph for each decision.",
    "findings": "A list; each finding is a page of its own length.",
    "gateways": "Generated.",
    "protocols": "Generated tables, one API after the other.",
    "pytest": "Generated.",
    "quirks": "Generated.",
    "resilience-clients": "Generated.",
    "resilience-rules": "A reference of rules, each looked up by its name.",
}


def test_pages_are_short_and_begin_with_text() -> None:
    """A page is read in one sitting, or its length has a reason. Title and text come first."""
    pages = {file.stem: file for file in DOCS.glob("*.md")}
    longer = {name for name, file in pages.items() if file.stat().st_size > LONGEST}
    assert longer == set(LONGER)
    for name, file in pages.items():
        title, empty, first, *_ = file.read_text(encoding="utf-8").splitlines()
        assert title.startswith("# "), name
        assert not empty, name
        assert first[0].isalnum() or first[0] in "`|*", (name, first)


def _first_sentences(text: str) -> list[set[str]]:
    """The longer words of the first sentence of each of the first two paragraphs."""
    paragraphs = [part for part in text.split("\n\n")[1:] if re.match(r"[\w`\[]", part)]
    sentences = (re.split(r"\w`?[.:;](?:\s|$)", part)[0] for part in paragraphs[:2])
    return [set(re.findall(r"\w{4,}", sentence.lower())) for sentence in sentences]


def test_no_page_says_its_first_sentence_twice() -> None:
    """Most words of one in the other are the same sentence again."""
    twice = []
    for file in sorted(DOCS.glob("*.md")):
        first, second, *_ = [*_first_sentences(file.read_text(encoding="utf-8")), set(), set()]
        if len(first & second) > max(2, 0.5 * min(len(first), len(second))):
            twice.append(file.name)
    assert twice == []
