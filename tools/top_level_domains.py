"""Writes mockllm/record/redaction/find/top_level_domains.txt from IANA's list of top-level domains.

    python -m tools.top_level_domains tlds-alpha-by-domain.txt

The list is https://data.iana.org/TLD/tlds-alpha-by-domain.txt; its first line has the version.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

TARGET = (
    Path(__file__).parents[1]
    / "mockllm"
    / "record"
    / "redaction"
    / "find"
    / "top_level_domains.txt"
)
_WIDTH = 98
_HEAD = "# https://data.iana.org/TLD/tlds-alpha-by-domain.txt, version {version}, by {tool}\n"


def main(arguments: list[str]) -> None:
    """Writes the file: names in lower case, those of other scripts in ASCII (`xn--p1ai`)."""
    head, *names = Path(arguments[0]).read_text(encoding="ascii").split("\n")
    version = head.split()[2].rstrip(",")
    text = " ".join(sorted(name.lower() for name in names if name))
    lines = [_HEAD.format(version=version, tool="tools/top_level_domains.py")]
    lines += [f"{line}\n" for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False)]
    TARGET.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
