"""The pages: all that a reader needs is there, links lead somewhere, and values are escaped."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.conformance.results import CaseResult, Client, QuirkInfo, Stream
from mockllm.conformance.results.file import write_results
from mockllm.conformance.site import build_site, overview_page
from mockllm.core.errors import UsageError
from tests.conformance.site.results import RIGHT, SMALL, STREAM, WRONG, failed, results

EVIL = "<script>alert(1)</script>\"'&</textarea>\0\r\ud800\u202e"


class Links(HTMLParser):
    """The addresses and ids of a page, and what would run or be fetched."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.scripts: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.ids.add(values.get("id") or "")
        self.links += [values[name] or "" for name in ("href", "src") if name in values]
        if tag == "script":
            self.scripts.append(values.get("src") or "inline")


def check_links(folder: Path) -> int:
    """Every address within the pages leads to a page and, in it, to an anchor."""
    pages = {file.resolve(): Links(file) for file in folder.rglob("*.html")}
    for file, page in pages.items():
        for link in page.links:
            if link.startswith("https://"):
                continue
            path, _, anchor = link.partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            assert target.is_file(), f"{file}: {link}"
            if anchor and "=" not in anchor:
                assert anchor in pages[target].ids, f"{file}: {link}"
        assert len(page.scripts) == 1
        assert page.scripts[0].endswith("script.js")
    return len(pages)


def test_all_pages_are_linked_and_complete(tmp_path: Path):
    """A cell page has the error, the outcomes, the bytes, the quirk and the commands."""
    broken = replace(WRONG, exception="TypeError: x (a.py:1 in feed)", smallest=SMALL)
    excused = replace(failed("chat/y", "ids", "data lost"), baseline="chat/sample-text")
    build_site([results("one", broken, RIGHT, excused), results("two", RIGHT)], tmp_path)
    assert check_links(tmp_path) == 1 + 2 + 1 + 3 + 2
    page = next(tmp_path.glob("cells/one-chat/*all-zero.html")).read_text()
    for text in (
        "TypeError: x (a.py:1 in feed)",
        "get_weatherget_time",
        "https://github.com/ollama/ollama/issues/15457",
        'href="https://example.test/report"',
        "a book",
        "mockllm check --only x -- node runner.mjs",
        "name: small",
        "✂2",
        "content-type: text/event-stream",
        "within 1.25 s",
        "Every call has <code>index</code> 0",
    ):
        assert text in page, text
    assert page.index("TypeError") < page.index("Expected and actual")


def test_the_report_of_one_client_is_a_table_of_topics(tmp_path: Path):
    """It has no matrix with one column, no ranking of one, and no filters; topics have words."""
    build_site([results("mine", WRONG, failed("chat/z", "ids", "wrong metadata"))], tmp_path)
    text = (tmp_path / "index.html").read_text()
    assert "Does mine read LLM streams correctly?" in text
    assert "wrong metadata" in text.partition('id="topics"')[2].partition("</table>")[0]
    for absent in ('id="matrix"', 'id="ranking"', "data-for=", "#ranking-title"):
        assert absent not in text


def test_the_report_of_one_client_has_pages_of_its_mistakes_alone(tmp_path: Path):
    """What is right, or was tolerated, is a line of the client's page, which says what `tolerated`
    means; no link leads to a page that is not there."""
    tolerated = replace(RIGHT, case="chat/b", verdict="tolerated", reason="accepted: a clear error")
    build_site([results("one", WRONG, RIGHT, tolerated)], tmp_path)
    assert check_links(tmp_path) == 1 + 1 + 1
    page = next(tmp_path.glob("clients/*.html")).read_text()
    assert "not the expected outcome, but an acceptable one" in page
    for case in (WRONG, RIGHT, tolerated):
        assert case.case in page
    assert "mockllm show CASE" in page


def test_no_value_of_results_becomes_markup(tmp_path: Path):
    """Names, errors, values and bytes are shown as they are, with what HTML cannot hold escaped."""
    evil = CaseResult(
        f"chat/{EVIL}",
        EVIL,
        "wrong",
        quirk=EVIL,
        cost="data lost",
        invariant=EVIL,
        differences=(EVIL,),
        exception=EVIL,
        reason=EVIL,
        not_judged=(EVIL,),
        expected={"text": EVIL, "tool_calls": [{"name": EVIL, "arguments": {EVIL: EVIL}}]},
        actual={"text": EVIL * 2, "tool_calls": [EVIL, 5], "crash": EVIL, "errors": [EVIL]},
        stream=Stream((EVIL.encode("utf-8", "replace"),), headers=((EVIL, EVIL),), ending=EVIL),
        smallest=replace(SMALL, scenario=EVIL),
        reproduce=(EVIL,),
    )
    info = QuirkInfo(EVIL, EVIL, EVIL, (EVIL, f"javascript:{EVIL}"), EVIL, EVIL)
    client = Client(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL)
    one = replace(
        results("x", evil, RIGHT),
        client=client,
        quirks={EVIL: info},
        arguments={EVIL: [EVIL]},
        stopped=EVIL,
        unsupported=(EVIL,),
        level=EVIL,
        date=EVIL,
    )
    build_site([one], tmp_path)
    check_links(tmp_path)
    texts = [file.read_text(encoding="utf-8") for file in tmp_path.rglob("*.html")]
    overview = overview_page([one])
    for text in [*texts, re.sub("(?s)<(style|script)>.*?</\\1>", "", overview)]:
        assert "<script>" not in text
        assert "</textarea" not in text
        assert not re.search("[\x00\r\u202e]", text)
    overview.encode()
    cell = next(tmp_path.glob("cells/**/*.html")).read_text()
    assert "\\x00" in cell
    assert "\\ud800" in cell


@pytest.mark.slow
def test_a_page_that_stands_alone_is_at_most_one_megabyte():
    """Mistakes are left out, the worst last, and counted."""
    cases = [
        failed(f"chat/{n}", f"group {n % 14}", "data lost", differences=("x" * 900,))
        for n in range(300)
    ]
    many = [results(f"client {n}", *cases) for n in range(12)]
    page = overview_page(many)
    assert len(page.encode()) <= 1_000_000
    assert "more; <code>mockllm report</code> makes a page for each" in page
    assert "src=" not in page
    assert 'rel="stylesheet"' not in page


def test_a_client_that_gets_other_bytes_has_a_page_of_its_own(tmp_path: Path):
    """A right cell leads to the page of the case, but only where its stream is the one there."""
    other = replace(RIGHT, stream=replace(STREAM, writes=(b"data: other\n\n",)))
    build_site([results("one", RIGHT), results("two", other)], tmp_path)
    assert len(list(tmp_path.glob("cells/*/*.html"))) == 1


def test_a_new_report_removes_the_pages_of_the_old_one(tmp_path: Path):
    """Only those that a report wrote."""
    (tmp_path / "notes.txt").write_text("mine")
    build_site([results("old", WRONG)], tmp_path)
    build_site([results("new", RIGHT)], tmp_path)
    assert [file.name for file in tmp_path.glob("clients/*")] == ["new-chat.html"]
    assert not list(tmp_path.glob("cells/*"))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_folders_of_others_are_not_removed(tmp_path: Path):
    """A folder `cases` in a folder that holds no report is somebody's own."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "mine.txt").write_text("mine")
    build_site([results("new", RIGHT)], tmp_path)
    assert (tmp_path / "cases" / "mine.txt").exists()


def test_errors_name_what_to_do(tmp_path: Path):
    """No results, and a folder that cannot be written."""
    with pytest.raises(UsageError, match="there are no results"):
        build_site([], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        build_site([results("one", RIGHT)], tmp_path / "file")


def test_the_command_writes_pages(tmp_path: Path):
    """From files and folders."""
    write_results(results("one", WRONG), tmp_path / "in" / "one.json")
    write_results(results("two", RIGHT), tmp_path / "in" / "two.json")
    for output in ("site", "one.html"):
        arguments = ["report", str(tmp_path / "in"), "-o", str(tmp_path / output)]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        assert "2 clients" in done.output
    assert (tmp_path / "site" / "index.html").is_file()
    assert "get_weatherget_time" in (tmp_path / "one.html").read_text()
    assert CliRunner().invoke(main, ["report", str(tmp_path / "in")]).exit_code == 2


def test_pages_without_jinja2_fail_before_the_first_case(tmp_path: Path):
    """`check --html` says what to install before it starts the runner."""
    started = tmp_path / "started"
    script = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from mockllm.cli import main\n"
        f"main(['check', '--api', 'chat', '--html', {str(tmp_path / 'report')!r},"
        f" '--', 'touch', {str(started)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "pip install 'mockllm-harness[report]'" in done.stderr
    assert not started.exists()
