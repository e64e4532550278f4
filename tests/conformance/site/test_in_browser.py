"""The pages in a real Chromium, opened from files: what a reader sees, presses and copies."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from mockllm.conformance.results import Results
from mockllm.conformance.site import build_site, overview_page
from tests.checking.mutants import MUTANTS
from tests.conformance.clients.faults.made import fault_results
from tests.conformance.site.results import SMALL, STREAM, WRONG, failed, results
from tests.conformance.site.sample import mutant_results
from tests.timeouts import GIVE_UP
from tools.browser import Browser, missing, started

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

REAL = ("MergesSameIndex", "FirstEntryOnly", "EmitsWhatParses")
ROOT = Path(__file__).parents[3]
BODY = b"".join(STREAM.writes)
CELL = "cells/by-hand-chat/chat-sample-two-calls-chat-index-all-zero.html"


def sample() -> list[Results]:
    """Accumulators with mistakes, run through real cases, and a client made by hand."""
    mutants = [
        mutant for mutant in MUTANTS if mutant.make.__name__ in REAL and mutant.level == "payloads"
    ]
    return [
        *map(mutant_results, mutants),
        results(
            "by hand",
            replace(WRONG, smallest=SMALL),
            failed("chat/z", "ids", "wrong metadata"),
            language="rust",
        ),
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    found = [*sample(), fault_results()]
    build_site(found, folder)
    (folder / "alone.html").write_text(overview_page(found), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    chromium.media()
    chromium.driver.get_log("browser")
    return chromium


def one_of_each(site: Path) -> list[Path]:
    """The first page, and one page of each kind."""
    kinds = ("index.html", "alone.html", "clients/*", "quirks/*", "cases/*", CELL)
    return [min(site.glob(kind)) for kind in kinds]


def test_every_kind_of_page_loads_without_an_error(site: Path, browser: Browser):
    """From a file, the console stays empty and the style applies."""
    for file in one_of_each(site):
        browser.open(file)
        assert browser.driver.get_log("browser") == [], file
        assert browser.script("return document.documentElement.classList.contains('js')"), file
        assert browser.script("return getComputedStyle(document.body).margin") == "0px", file


def select(browser: Browser, name: str, value: str) -> None:
    browser.script(
        "const field = document.querySelector(`[name=${arguments[0]}]`);"
        "field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', { bubbles: true }))",
        name,
        value,
    )


def names(browser: Browser) -> list[str]:
    return browser.texts("#matrix thead .name")


def test_filters_hide_clients_and_the_address_restores_them(site: Path, browser: Browser):
    """The state is in the address: the same page with it shows the same rows."""
    index = site / "index.html"
    browser.open(index)
    every = names(browser)
    assert len(every) == len(browser.texts("#ranking tbody tr"))
    select(browser, "language", "rust")
    some = names(browser)
    assert "by hand" in some
    assert len(some) < len(every)
    assert browser.texts("output") == [f"{len(some)} of {len(every)} clients shown"]
    select(browser, "severity", "wrong-metadata")
    assert names(browser) == ["by hand"]
    assert browser.texts("#matrix tbody th") == ["ids"]
    address = browser.driver.current_url
    assert "language=rust" in address
    browser.open(index, "#" + address.partition("#")[2])
    assert names(browser) == ["by hand"]
    assert browser.script("return document.querySelector('[name=language]').value") == "rust"
    browser.driver.find_element("css selector", "button[type=reset]").click()
    assert names(browser) == every
    assert browser.driver.current_url == index.resolve().as_uri()


def test_a_text_filters_the_table_that_has_it(site: Path, browser: Browser):
    """The name of a client hides other clients, that of a quirk other quirks alone."""
    browser.open(site / "index.html", "#text=hand")
    assert names(browser) == ["by hand"]
    browser.open(site / "index.html", "#text=chat-index-all-zero")
    assert len(names(browser)) > 1
    assert len(browser.texts("#quirks tbody tr")) == 1
    browser.open(site / "index.html", "#text=occurs-nowhere")
    assert names(browser) == []


def test_tables_are_sorted_by_their_heads(site: Path, browser: Browser):
    """`aria-sort` names the order, and the address keeps it."""
    browser.open(site / "index.html")
    head = browser.driver.find_element("css selector", "#ranking th[data-sort=name] button")
    first = browser.texts("#ranking tbody th a")
    head.click()
    assert browser.texts("#ranking tbody th a") == sorted(first, key=str.lower)
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    head.click()
    assert browser.texts("#ranking tbody th a") == sorted(first, key=str.lower, reverse=True)
    assert browser.driver.current_url.endswith("#ranking=-name")
    head.click()
    assert browser.texts("#ranking tbody th a") == first
    browser.open(site / "index.html", "#order=name")
    assert names(browser) == sorted(first, key=str.lower)


def test_a_row_of_the_matrix_sorts_its_columns(site: Path, browser: Browser):
    """The worst in a topic come first; cells move with their heads."""
    browser.open(site / "index.html")
    browser.driver.find_element("css selector", "#matrix th[data-row=index] button").click()
    assert names(browser)[0] == "by hand"
    links = browser.script(
        "return [...document.querySelectorAll('#matrix tbody tr')].map("
        "(row) => row.cells[1].querySelector('a')?.getAttribute('href'))"
    )
    assert all("by-hand" in link for link in links if link)


def test_the_keyboard_alone_is_enough(site: Path, browser: Browser):
    """Tab reaches the skip link first; arrows move between cells; Enter opens one, then a case."""
    browser.open(site / "index.html")

    def press(*keys: str) -> None:
        ActionChains(browser.driver).send_keys(*keys).perform()

    press(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to the content"
    browser.driver.find_element("css selector", "#matrix td a").send_keys(Keys.ARROW_RIGHT)
    active = browser.driver.switch_to.active_element
    assert browser.script("return arguments[0].closest('td').cellIndex", active) > 1
    outline = browser.script("return getComputedStyle(arguments[0]).outlineStyle", active)
    assert outline == "solid"
    cell = browser.driver.find_element("css selector", "#matrix a[href*=by-hand][href*='=index']")
    cell.send_keys(Keys.ENTER)
    assert browser.driver.current_url.endswith("#group=index")
    assert browser.texts("#cases tbody td:first-child") == ["index"]
    browser.driver.find_element("css selector", "#cases tbody a").send_keys(Keys.ENTER)
    assert browser.driver.current_url.endswith(CELL)
    assert browser.texts(".lead")[0].startswith("1 calls, not 2: get_weatherget_time")


def copied(browser: Browser, button: str) -> str:
    """What a button puts into the clipboard."""
    browser.script(
        "window.copied = null;"
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    browser.driver.find_element("css selector", button).click()
    wait = WebDriverWait(browser.driver, GIVE_UP)
    text: str = wait.until(lambda _: browser.script("return window.copied"))
    said = "return document.getElementById('status').textContent"
    assert wait.until(lambda _: browser.script(said)).startswith("Copied")
    return text


def test_the_exact_bytes_are_copied(site: Path, browser: Browser):
    """As text, and as a command of the shell, which gives the same bytes."""
    browser.open(site / CELL)
    assert copied(browser, "[data-copy=text]").encode() == BODY
    command = copied(browser, "[data-copy=printf]")
    assert subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout == BODY
    assert copied(browser, "[aria-labelledby=again] button") == WRONG.reproduce[0]


def test_copying_without_the_clipboard_interface_keeps_carriage_returns(
    site: Path, browser: Browser
):
    """Where a browser refuses it, the event of copying gets the same text."""
    browser.open(site / CELL)
    browser.script(
        "navigator.clipboard.writeText = async () => { throw new Error('refused'); };"
        "document.addEventListener('copy', (event) => setTimeout(() => {}));"
        "const set = DataTransfer.prototype.setData; window.copied = null;"
        "DataTransfer.prototype.setData = function (type, text) {"
        " window.copied = text; set.call(this, type, text); }"
    )
    browser.driver.find_element("css selector", "[data-copy=text]").click()
    wait = WebDriverWait(browser.driver, GIVE_UP)
    text: str = wait.until(lambda _: browser.script("return window.copied"))
    assert text.encode() == BODY


WIDE = """
const style = (one) => getComputedStyle(one);
const cut = (one) => one.scrollWidth > one.clientWidth + 1
  && style(one).overflowX !== "visible" && style(one).textOverflow !== "ellipsis";
return [...document.body.querySelectorAll("*")]
  .filter((one) => one.offsetParent !== null && !one.closest(".hidden, .skip")
    && style(one).clipPath === "none")
  .filter((one) => one.getBoundingClientRect().right > innerWidth || (one.clientWidth && cut(one)))
  .map((one) => one.tagName + "." + one.className);
"""


def test_all_fits_in_360_pixels(site: Path, browser: Browser):
    """Nothing is wider than a phone, and no table has to be scrolled sideways or is cut off."""
    logged = min(site.glob("cells/mine-chat/*"))
    for file in [*one_of_each(site), logged, ROOT / "docs" / "conformance.html"]:
        browser.open(file, width=360, height=740)
        assert browser.script("return document.documentElement.scrollWidth") <= 360, file
        assert browser.script(WIDE) == [], file


def test_a_phone_shows_a_client_above_its_marks(site: Path, browser: Browser):
    """Each mark of a narrow matrix stands below the name of its client and below its topic."""
    browser.open(site / "index.html", width=360, height=740)
    for table in ("#matrix", "#rules"):
        places = browser.script(
            "const table = document.querySelector(arguments[0]);"
            "const box = (one) => one.getBoundingClientRect();"
            "return [...table.querySelectorAll('tbody td')].map((cell) => ["
            " box(cell).top"
            " - box(table.tHead.rows[0].cells[cell.cellIndex].querySelector('a')).bottom,"
            " box(cell).left - box(cell.parentElement.cells[0]).left,"
            " box(cell).height])",
            table,
        )
        assert places
        for below, beside, height in places:
            assert abs(below) < 2, table
            assert abs(beside) < 2, table
            assert height > 20, table


CONTRAST = """
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
  .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, n) => sum + one * [0.2126, 0.7152, 0.0722][n], 0);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const found = numbers(getComputedStyle(one).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const low = {};
while (walker.nextNode()) {
  const one = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || one.offsetParent === null) continue;
  if (one.closest(".hidden, script, style, option, :disabled")) continue;
  const colours = [numbers(getComputedStyle(one).color), behind(one)];
  const pair = colours.map(light).sort((a, b) => b - a);
  const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
  if (ratio < 4.5) low[one.tagName + "." + one.className] = ratio;
}
return low;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_enough_contrast(site: Path, browser: Browser, scheme: str):
    """4.5 to 1, as WCAG 2.2 requires (1.4.3), in both colour schemes."""
    browser.media(scheme=scheme)
    for file in one_of_each(site):
        browser.open(file)
        assert browser.script(CONTRAST) == {}, file
    dark = browser.script("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") == (scheme == "light")


def test_print_shows_everything_and_no_controls(site: Path, browser: Browser):
    """What is folded is printed, too; a PDF comes out."""
    browser.open(site / CELL)
    browser.media("print")
    assert browser.texts(".copy, nav, form") == []
    browser.script("dispatchEvent(new Event('beforeprint'))")
    assert browser.script("return document.querySelectorAll('details:not([open])').length") == 0
    assert any("content-type" in text for text in browser.texts(".head pre"))
    browser.script("dispatchEvent(new Event('afterprint'))")
    assert browser.script("return document.querySelectorAll('details:not([open])').length") > 0
    assert browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]


def test_tables_have_heads_and_captions(site: Path, browser: Browser):
    """Screen readers name the row and the column of each cell; live regions report changes."""
    for file in one_of_each(site):
        browser.open(file)
        assert browser.script(
            "return [...document.querySelectorAll('table')].every((one) => one.caption"
            " && [...one.querySelectorAll('th')].every((head) => head.scope))"
        ), file
        assert browser.script("return document.querySelectorAll('[role=status]').length") == 1
        assert browser.script("return document.documentElement.lang") == "en"
        empty = "return [...document.querySelectorAll('a, button')].filter(one => !one.textContent"
        ignored = " && !one.closest('[aria-hidden]')).length"
        assert browser.script(empty + ignored) == 0, file
