"""One benchmark in two checkouts, in turn, within one run: so that the commit that makes something
slower is seen.

    python measurements/benchmarks/compare.py OTHER ENTRY [--rounds 3] [-- ARGUMENTS OF THE ENTRY]
    python measurements/benchmarks/compare.py ../before instant --rounds 3 -- --rounds 1

OTHER is a checkout whose interpreter `.venv/bin/python` runs its own code, as this one's does. The
entry is a file beside this one without its ending; each checkout runs its own. Every figure that
the entry prints is compared with the one in the same place of the same line (of lines that differ
in figures only, the first with the first): the medians over the rounds, and the median of the
ratios of the rounds (this checkout by the other one), which counts: the machine's speed drifts, and
both checkouts have each round's. Figures that only one prints are left out, and counted.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.])")

Place = tuple[str, int, int]
"""A line without its figures, how many such lines came before, and the place of a figure in it."""

Figures = dict[Place, float]


def figures_of(printed: str) -> Figures:
    """The figures in what an entry printed."""
    figures: Figures = {}
    lines: Counter[str] = Counter()
    for line in printed.splitlines():
        label = FIGURE.sub("#", line.strip())
        for place, text in enumerate(FIGURE.findall(line)):
            figures[label, lines[label], place] = float(text.replace(",", ""))
        lines[label] += 1
    return figures


def measured(checkout: Path, entry: str, arguments: list[str]) -> Figures:
    """The figures of one run in a checkout; ends the program where it fails."""
    python = checkout / ".venv/bin/python"
    files = [*checkout.glob(f"benchmarks/{entry}.py"), *checkout.glob(f"*/benchmarks/{entry}.py")]
    if not files:
        sys.exit(f"{checkout} has no benchmark {entry}")
    command = [str(python), str(files[0]), *arguments]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} in {checkout} fails:\n{done.stderr or done.stdout}")
    return figures_of(done.stdout)


def compare(rounds: list[tuple[Figures, Figures]]) -> list[str]:
    """A line for each figure that both checkouts print in every round."""
    own: dict[Place, list[float]] = defaultdict(list)
    other: dict[Place, list[float]] = defaultdict(list)
    for mine, theirs in rounds:
        for key in mine.keys() & theirs.keys():
            own[key].append(mine[key])
            other[key].append(theirs[key])
    every = {key for pair in rounds for figures in pair for key in figures}
    common = [key for key in rounds[0][0] if len(own[key]) == len(rounds)]
    lines = []
    for key in common:
        label, number, place = key
        pairs = zip(own[key], other[key], strict=True)
        ratios = [mine / theirs for mine, theirs in pairs if theirs]
        ratio = f"{statistics.median(ratios):.2f}" if ratios else "-"
        middle = [f"{statistics.median(side[key]):,.4g}" for side in (own, other)]
        where = f"{place + 1} of {label}" + (f" (line {number + 1} of these)" if number else "")
        lines.append(f"{ratio:>6}  {middle[0]:>10} {middle[1]:>10}  {where}")
    if unmatched := len(every) - len(common):
        lines.append(f"{unmatched} figures are not printed by both in every round")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, metavar="OTHER")
    parser.add_argument("entry", metavar="ENTRY")
    parser.add_argument("--rounds", type=int, default=3)
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = sys.argv[split + 1 :]
    options = parser.parse_args(sys.argv[1:split])
    rounds = []
    for _ in range(options.rounds):
        mine = measured(ROOT, options.entry, arguments)
        rounds.append((mine, measured(options.other.resolve(), options.entry, arguments)))
    print(f" ratio  {'this':>10} {'other':>10}  figure")
    print("\n".join(compare(rounds)))


if __name__ == "__main__":
    main()
