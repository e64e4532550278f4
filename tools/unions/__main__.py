"""`python -m tools.unions` compares the SDKs' types with the encoders and lists what is missing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tools.unions.comparison import comparison
from tools.unions.roots import UNIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns 1 if an item is neither sent nor explained."""
    parser = argparse.ArgumentParser(prog="python -m tools.unions", description=__doc__)
    parser.add_argument("--api", choices=UNIONS, help="compare one API only")
    options = parser.parse_args(arguments)
    results = [comparison(api) for api in ([options.api] if options.api else UNIONS)]
    for result in results:
        print(*result.problems, sep="\n", end="\n" if result.problems else "")
        print(result.summary, file=sys.stderr)
    return int(any(result.problems for result in results))


if __name__ == "__main__":
    sys.exit(main())
