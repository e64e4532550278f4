"""`mockllm docs` and `mockllm report-bug`."""

from pathlib import Path

import mockllm as package
from mockllm.core import documentation
from tests.cases import for_all

DOCS = Path(__file__).parents[2] / "docs"


def test_pages_are_listed_with_their_titles(mockllm):
    """Without a name, each page has a line with its title."""
    listed = mockllm("docs").stdout.splitlines()
    for file in DOCS.glob("*.md"):
        (line,) = [line for line in listed if line.split()[0] == file.stem]
        title = file.read_text().split("\n", 1)[0].removeprefix("# ")
        assert line.endswith(title)


def test_a_page_is_printed_by_any_of_its_names(mockllm):
    """Messages and links name a page in three ways."""
    page = (DOCS / "faults.md").read_text()
    for name in ("faults", "faults.md", "docs/faults.md", "docs/faults.md#rates"):
        assert mockllm("docs", name).stdout.strip() == page.strip()


def test_words_are_searched_in_the_pages(mockllm, monkeypatch, tmp_path):
    """Sections with all words are listed: names and headings first, then where they stand often."""
    monkeypatch.setattr("mockllm.cli.docs._folder", lambda: tmp_path)
    (tmp_path / "faults.md").write_text("# Faults\nThe stream ends.\n## Rates\nSome retry.\n")
    code = "```sh\n# no heading of a retry\n```\n"
    (tmp_path / "other.md").write_text(f"# Other\nRetry, retry.\n{code}## A retry\nA stream.\n")
    found = mockllm("docs", "retry")
    assert found.exit_code == 0
    assert [line.split() for line in found.stdout.splitlines()[1:4]] == [
        ["other", "A", "retry"],
        ["other", "Other"],
        ["faults", "Rates"],
    ]
    assert "`mockllm docs other` prints the page" in found.stdout
    both = mockllm("docs", "RETRY", "stream").stdout
    assert "A retry" in both
    assert "Rates" not in both
    assert mockllm("docs", "fault").stdout.splitlines()[1].split() == ["faults", "Faults"]


@for_all(
    ("words", "page"),
    [
        ("delay", "questions"),
        ("thinking", "questions"),
        ("structured output", "questions"),
        ("JSON mode", "questions"),
        ("response_format", "questions"),
        ("embeddings", "questions"),
        ("random", "questions"),
        ("timeout", "questions"),
        ("cancel", "questions"),
        ("azure", "questions"),
        ("exit code", "questions"),
        ("parallel", "questions"),
        ("requests of a test", "questions"),
        ("usage", "turns"),
        ("finish", "turns"),
        ("proxy", "interception"),
        ("docker", "deployment"),
        ("websocket", "websockets"),
        ("gate", "gates"),
        ("image", "parts"),
    ],
)
def test_words_of_users_lead_to_an_answer(mockllm, words, page):
    """What people look for is in the first three sections: no page of measurements is before it."""
    found = mockllm("docs", *words.split()).stdout.splitlines()[1:4]
    assert page in {line.split()[0] for line in found if line}


def test_what_no_page_has_is_an_error_with_near_names(mockllm):
    """The exit code is 1, and what is mistyped is recognised."""
    missing = mockllm("docs", "quikrs")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "did you mean 'quirks'" in missing.stderr
    nothing = mockllm("docs", "zzzqq")
    assert nothing.exit_code == 1
    assert "`mockllm docs` lists them" in nothing.stderr


def test_many_sections_are_cut_and_counted(mockllm):
    """The best sections are shown; how many are left out is said."""
    listed = mockllm("docs", "stream").stdout.splitlines()
    assert len(listed) == 1 + 20 + 2
    assert "further sections left out: add a word" in listed[-1]


def test_messages_name_the_site_where_there_is_one(mockllm, monkeypatch):
    """The one setting leads messages, the schema and the list of pages to the site."""
    assert documentation.page("server", "sessions") == "`mockllm docs server`"
    monkeypatch.setattr(documentation, "SITE", "https://docs.example")
    assert documentation.page("server", "sessions") == "https://docs.example/server/#sessions"
    assert "https://docs.example/scenario.schema.json" in mockllm("schema").stdout
    assert "https://docs.example/" in mockllm("docs").stdout


def test_a_report_has_versions_the_scenario_and_its_bytes(mockllm, folder):
    """It is Markdown for an issue; with a case of `check` it has the bytes of the case."""
    alone = mockllm("report-bug")
    assert alone.exit_code == 0
    assert f"mockllm {package.__version__}" in alone.stdout
    assert "aiohttp " in alone.stdout
    report = mockllm("report-bug", "hello", "--scenarios", folder, "--api", "anthropic").stdout
    assert "```yaml\nscenario: hello\n" in report
    assert "event: message_start" in report
    assert report.count("```") == 4
    assert "chatcmpl-" in mockllm("report-bug", "chat/sample-call+chat-index-missing").stdout
    wrong = mockllm("report-bug", "helo", "--scenarios", folder)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
