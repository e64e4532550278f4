"""The live page of a server in a browser, as its reader uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from selenium.common.exceptions import (
    JavascriptException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.wait import WebDriverWait

from tests.timeouts import GIVE_UP
from tools.browser import Browser

ROWS = ".rows li"


class Page:
    """The page of one server.

    Args:
        url: of the server.
    """

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url

    def open(self, fragment: str = "", *, width: int = 1280, height: int = 800) -> None:
        """Loads the page anew, in a window of a size, and waits until it is connected."""
        self.browser.resize(width, height)
        self.browser.visit(f"{self.url}/_mockllm/ui{fragment}")
        self.wait("#connection.live")

    def go(self, fragment: str) -> None:
        """Changes the address of the open page."""
        self.browser.script("location.hash = arguments[0]", fragment)

    def until(self, condition: Callable[[], Any]) -> Any:
        """Waits until a condition holds, and returns what it returned."""
        ignored = (JavascriptException, StaleElementReferenceException)
        wait = WebDriverWait(self.browser.driver, GIVE_UP, 0.05, ignored_exceptions=ignored)
        try:
            return wait.until(lambda _: condition())
        except TimeoutException:
            shown = self.browser.script("return document.body.innerText")
            pytest.fail(
                f"never so; the page {self.address} shows:\n{shown[:3000]}\n{self.errors()}"
            )

    def wait(self, query: str, text: str = "") -> list[str]:
        """Waits until an element is visible that has a text; the texts of all such elements."""

        def found() -> list[str]:
            return [one for one in self.browser.texts(query) if text in one]

        result: list[str] = self.until(found)
        return result

    def gone(self, query: str) -> None:
        """Waits until no such element is visible."""
        self.until(lambda: not self.browser.texts(query))

    def click(self, query: str) -> None:
        """Waits for an element, and clicks on it."""
        self.wait_for(query)
        self.browser.driver.find_element("css selector", query).click()

    def wait_for(self, query: str) -> None:
        """Waits for an element, which need not have a text."""
        count = "return document.querySelectorAll(arguments[0]).length"
        self.until(lambda: self.browser.script(count, query))

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other."""
        ActionChains(self.browser.driver).send_keys(*keys).perform()

    @property
    def address(self) -> str:
        """The part after `#`."""
        found: str = self.browser.script("return location.hash")
        return found

    @property
    def focused(self) -> str:
        """The text of the element that has the focus."""
        found: str = self.browser.script("return document.activeElement.innerText")
        return found

    def errors(self) -> list[str]:
        """What the console reports of this server's pages since the last call, but for a route that
        answers 404. A page that was open before misses its own server."""
        return [
            entry["message"]
            for entry in self.browser.driver.get_log("browser")
            if self.url in entry["message"] and "status of 404" not in entry["message"]
        ]
