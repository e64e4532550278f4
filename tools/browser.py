"""A real Chromium, without windows and without network."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)

_LOADED_WITHIN = 60.0
"""Seconds after which a page that does not load is an error."""
_IS_LOADED = """
const styles = [...document.querySelectorAll("link[rel=stylesheet]")];
return location.href !== "about:blank" && document.readyState === "complete"
  && styles.every((one) => one.sheet);
"""


def missing() -> str:
    """Why there is no browser; "" if there is one."""
    found = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    lacking = [name for name, path in found.items() if path is None]
    return f"{' and '.join(lacking)} not found; Debian: chromium-driver" if lacking else ""


class Browser:
    """One page at a time.

    Args:
        driver: of selenium.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, file: Path, fragment: str = "", *, width: int = 1280, height: int = 800) -> None:
        """Loads a page from its file, in a window of a size."""
        self.resize(width, height)
        self.visit(f"{file.resolve().as_uri()}{fragment}")

    def resize(self, width: int, height: int) -> None:
        """Gives the window a size in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def visit(self, address: str) -> None:
        """Loads a page anew, and waits for it and all its styles.

        The blank page between makes Chromium load again where only the fragment is another. Its
        end can be taken for that of the page, whose last style sheet is not there yet.
        """
        from selenium.webdriver.support.wait import WebDriverWait

        self.driver.get("about:blank")
        self.driver.get(address)
        wait = WebDriverWait(self.driver, _LOADED_WITHIN, 0.05)
        wait.until(lambda _: self.script(_IS_LOADED), f"{address} or a style of it did not load")

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Prints to `print`, or shows in a colour scheme."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": kind, "features": features}
        )

    def script(self, text: str, *arguments: Any) -> Any:
        """The result of a function's body in JavaScript."""
        return self.driver.execute_script(text, *arguments)

    def texts(self, query: str) -> list[str]:
        """The visible texts of the elements that a selector finds."""
        found: list[str] = self.script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((one) => one.offsetParent !== null).map((one) => one.innerText.trim())",
            query,
        )
        return found

    def picture(self, file: Path, *, whole: bool = False, most: int = 4000) -> None:
        """Writes what is shown, or the whole page, as a PNG."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.script("return [innerWidth, document.documentElement.scrollHeight]")
            clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], most), "scale": 1}
            options |= {"captureBeyondViewport": True, "clip": clip}
        found = self.driver.execute_cdp_cmd("Page.captureScreenshot", options)
        file.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def started() -> Iterator[Browser]:
    """A browser, which ends with the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    with TemporaryDirectory() as folder:
        for flag in (*_FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        try:
            yield Browser(driver)
        finally:
            driver.quit()
