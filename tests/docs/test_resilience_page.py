"""docs/resilience-rules.md describes each rule and lists the public reports about it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from mockllm.checking import Outcome
from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.rules import RESILIENCE
from tests.cases import for_all
from tests.docs.pages import text_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = text_of("resilience", "resilience-rules")
REPORTS: dict[str, list[dict[str, str]]] = tomllib.loads(
    (DOCS / "resilience_reports.toml").read_text(encoding="utf-8")
)
URL = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")


def section(rule: str) -> str:
    """What the page says of a rule, up to the next heading."""
    return re.split(r"^##", PAGE.split(f"\n### {rule}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_the_reports_are_those_of_the_rules() -> None:
    """No rule lacks reports, and no reports belong to a rule that does not exist."""
    assert set(REPORTS) == set(RESILIENCE)


def test_the_page_has_the_rules() -> None:
    """Each rule has a section, and a line in the table that links to it."""
    assert set(re.findall(r"^### ([a-z-]+)$", PAGE, re.MULTILINE)) == set(RESILIENCE)
    assert set(re.findall(r"\| \[`([\w-]+)`\]\(resilience-rules\.md#\1\) \|", PAGE)) == set(
        RESILIENCE
    )


@for_all("rule", sorted(REPORTS))
def test_a_rule_has_two_reports(rule: str) -> None:
    """Two public reports at least, each with one sentence about it."""
    urls = [report["url"] for report in REPORTS[rule]]
    assert len(set(urls)) == len(urls) >= 2
    for report in REPORTS[rule]:
        assert set(report) == {"url", "project", "what"}
        assert URL.fullmatch(report["url"])
        assert report["what"].endswith(".")


@for_all("rule", sorted(REPORTS))
def test_the_page_has_the_reports(rule: str) -> None:
    """The section of a rule lists its reports, in their order, and says why and how."""
    text = section(rule)
    assert "**Why.**" in text
    assert "**How.**" in text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert lines == [f"- [{r['project']}]({r['url']}): {r['what']}" for r in REPORTS[rule]]


class Client:
    """A client as a user of the page has one."""

    def __init__(self, base_url: str, tries: int, idle_timeout: float) -> None:
        self.settings = (base_url, tries, idle_timeout)

    def ask(self, prompt: str) -> str:
        return f"{prompt} {self.settings}"


def test_the_suite_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class has what a `ResilienceSuite` needs, and returns the outcome of its client."""
    from mockllm_pytest import ResilienceSuite

    monkeypatch.setitem(sys.modules, "my_client", ModuleType("my_client"))
    monkeypatch.setattr(sys.modules["my_client"], "Client", Client, raising=False)
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    defined: dict[str, type[ResilienceSuite]] = {}
    exec(block, defined)  # the code of our own page
    suite = defined["TestMyClient"]()
    case = fault_cases(suite.api)[0]
    assert issubclass(type(suite), ResilienceSuite)
    outcome = suite.run("http://127.0.0.1:1/v1", case)
    settings = ("http://127.0.0.1:1/v1", case.tries, case.idle_timeout)
    assert outcome == Outcome.of(text=f"{case.prompt} {settings}")
