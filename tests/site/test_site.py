"""The site in Chromium: pages without a violation of accessibility, search that finds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

from tests.timeouts import GIVE_UP
from tools.browser import Browser

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"
LOOKED_AT = (
    "index",
    "get-started",
    "glossary",
    "scenarios",
    "check",
    "coming-from",
    "ui",
    "clients",
)
"""Pages that have everything that pages have."""

QUESTIONS = {
    "how do I test a retry": "questions",
    "how do I record": "questions",
    "why is my request not matched": "questions",
    "convert vcr cassettes": "questions",
    "cut a stream": "cuts",
    "keep secrets out": "questions",
    "javascript": "javascript",
    "parallel tool calls": "questions",
    "load test": "load-tests",
    "what is a tape": "questions",
    "test my agent": "testing",
}
"""What users ask, and the page that answers."""


LINKS = re.compile(r'<(?:a|img)\b[^>]*?\s(?:href|src)="?(?!mailto:|javascript:)([^"\s>#]+)')
LOADED = re.compile(
    r'<(?:link[^>]+rel="?stylesheet"?[^>]+href|script[^>]+src|img[^>]+src)="?([^"\s>]+)'
)


def pages_of_nav() -> list[str]:
    """The pages that a reader is led to, by their addresses."""
    settings = tomllib.loads((ROOT / "zensical.toml").read_text())

    def names(item: object) -> list[str]:
        if isinstance(item, str):
            return [item]
        inner = item.values() if isinstance(item, dict) else item
        return [name for each in inner for name in names(each)]

    return [name.removesuffix(".md") for name in names(settings["project"]["nav"])]


def address(page: str) -> str:
    return "" if page == "index" else f"{page}/"


def test_every_page_is_led_to(site: Path) -> None:
    """Each page of docs/ is in the navigation but those of maintainers, and none is there twice."""
    pages = pages_of_nav()
    assert len(pages) == len(set(pages))
    files = {file.stem for file in (ROOT / "docs").glob("*.md")}
    assert sorted(files - set(pages)) == []
    assert not [page for page in pages if page.startswith("maintainers/")]
    for page in pages:
        assert (site / address(page) / "index.html").is_file(), page


def test_what_stands_beside_the_pages(site: Path) -> None:
    """llms.txt, the schemas, and a page for each client, case and quirk."""
    for name in ("llms.txt", "scenario.schema.json", "runner.schema.json", "results/index.html"):
        assert (site / name).is_file(), name
    for kind in ("clients", "cases", "quirks"):
        assert len(list((site / "results" / kind).rglob("*.html"))) > 50, kind


def test_no_page_asks_another_host(site: Path) -> None:
    """Neither fonts nor scripts come from elsewhere."""
    for page in pages_of_nav():
        text = (site / address(page) / "index.html").read_text(encoding="utf-8")
        loaded = LOADED.findall(text)
        assert loaded
        assert [one for one in loaded if urlsplit(one).netloc] == [], page


def test_every_link_leads_to_a_file(site: Path) -> None:
    """Links of the built pages, also to what is added after the pages: tables and pictures."""
    dead = []
    for page in pages_of_nav():
        file = site / address(page) / "index.html"
        for link in LINKS.findall(file.read_text(encoding="utf-8")):
            path = urlsplit(link).path
            target = file.parent / path
            is_local = path and not urlsplit(link).netloc and not path.startswith("/")
            if is_local and not (target.is_file() or (target / "index.html").is_file()):
                dead.append((page, link))
    assert dead == []


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 360), ("light", 820), ("light", 1440), ("dark", 1440)]
)
def test_axe_finds_no_violation(url: str, chromium: Browser, scheme: str, width: int) -> None:
    """On a phone, a tablet and a desk, and in the dark; pages with text, tables, code, pictures."""
    if not AXE.is_file():
        pytest.skip("axe-core is not here; `make ready` installs it")
    found = []
    chromium.media(scheme=scheme)
    chromium.resize(width, 900)
    for page in LOOKED_AT:
        chromium.visit(f"{url}/{address(page)}")
        chromium.script(AXE.read_text(encoding="utf-8"))
        violations = chromium.driver.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then("
            "(found) => arguments[arguments.length - 1](found.violations.map((one) =>"
            " [one.id, one.nodes.length, one.nodes[0].html.slice(0, 160)])))"
        )
        found += [(width, page, *violation) for violation in violations]
        wide = chromium.script("return document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            found.append((width, page, "scrolls sideways", wide, ""))
    assert found == []


_OPEN = """
const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot);
return host && host.shadowRoot.querySelector("dialog[open] input");
"""
_ASK = """
const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot);
const input = host.shadowRoot.querySelector("input");
Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, arguments[0]);
input.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
"""
"""Enters a question at once: key by key, the hits of the keys before are there for a while."""
_HITS = """
const host = [...document.querySelectorAll("*")].find((one) => one.shadowRoot);
const input = host && host.shadowRoot.querySelector("input");
const status = host && host.shadowRoot.querySelector("[role=status]");
if (!status || !input || input.value !== arguments[0]) return null;
if (!/result/.test(status.textContent)) return null;
const links = host.shadowRoot.querySelectorAll("a[role=option]");
return [...links].map((one) => new URL(one.href).pathname);
"""


def hits(chromium: Browser, url: str, question: str) -> list[str]:
    """The pages that the search of the site finds, the first one first, as a reader sees them."""
    chromium.visit(url)
    wait = WebDriverWait(chromium.driver, GIVE_UP, 0.1)

    def type_into_search() -> bool:
        body = chromium.driver.find_element("css selector", "body")
        ActionChains(chromium.driver).send_keys_to_element(body, "/").perform()
        return bool(chromium.script(_OPEN))

    wait.until(lambda _: type_into_search())
    chromium.script(_ASK, question)
    found: list[str] = wait.until(lambda _: chromium.script(_HITS, question))
    return [path.strip("/") for path in found]


def test_questions_of_users_are_answered_by_the_first_hits(url: str, chromium: Browser) -> None:
    """The page that answers is the first or the second that the search shows."""
    chromium.resize(1440, 900)
    chromium.media()
    found = {question: hits(chromium, url, question)[:2] for question in QUESTIONS}
    assert [each for each in found.items() if QUESTIONS[each[0]] not in each[1]] == []
