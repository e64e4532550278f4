"""Takes the pictures of docs/report.md: `python -m tools.report_pictures [RESULTS...]`.

They show the published results, in Chromium. Without it the pictures stay as they are.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mockllm.conformance.results.file import read_results
from mockllm.conformance.site import build_site
from tools.browser import Browser, missing, started

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
CASE = "chat-index-all-zero"
"""The quirk whose cell is shown."""


def main(paths: list[str]) -> int:
    """Builds the site of results, and takes the pictures."""
    files = [Path(path) for path in paths] or sorted((ROOT / "measurements" / "results").glob("*"))
    if missing() or not files:
        print(f"no pictures: {missing() or 'there are no results'}", file=sys.stderr)
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        build_site([read_results(file) for file in files if file.suffix == ".json"], site)
        with started() as browser:
            take(browser, site)
    return 0


def take(browser: Browser, site: Path) -> None:
    """All pictures of a site."""
    index = site / "index.html"
    browser.media()
    browser.open(index, width=1280, height=940)
    browser.picture(IMAGES / "report-first-page.png")
    browser.media(scheme="dark")
    browser.open(index, "#language=python&order=-place", width=1280, height=900)
    browser.picture(IMAGES / "report-dark.png")
    browser.media()
    browser.open(index, width=360, height=1100)
    browser.picture(IMAGES / "report-phone.png")
    cells = sorted(site.glob(f"cells/openai-chat*/*{CASE}.html")) or sorted(
        site.glob("cells/*/*.html")
    )
    browser.open(cells[0], width=1100, height=1250)
    browser.picture(IMAGES / "report-cell.png")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
