"""`python -m tools.coverage` writes docs/maintainers/coverage.md; `--check` only reports."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tools.coverage.page import PAGE, coverage, page
from tools.coverage.sdk import SDKS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns 1 if an item has neither case nor reason, or a reason is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.coverage", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--api", choices=SDKS, help="report one API only, and write nothing")
    options = parser.parse_args(arguments)
    found = [coverage(api) for api in ([options.api] if options.api else SDKS)]
    problems = [f"{one.api}: {problem}" for one in found for problem in one.problems]
    for one in found:
        print(f"{one.api}: {one.summary}", file=sys.stderr)
    if not options.api:
        text = page(found)
        if not options.check:
            PAGE.write_text(text, encoding="utf-8")
        elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            problems.append(f"{PAGE.name} is not up to date; run `python -m tools.coverage`")
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
