"""`python -m tests.fuzz --count 14000 --seed 1`: sends hostile requests and prints the figures.

The exit code is 1 if a rule was broken.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections import defaultdict

from mockllm.wire.protocols import PROTOCOLS
from tests.fuzz.playing import Figures, play
from tests.sixth_protocol.echo.protocol import PROTOCOL

KINDS = ("5xx", "failed", "traceback", "logged", "plain text", "not in the form of an API")
KINDS += ("not UTF-8", "not JSON", "no answer", "not readable")


def main() -> int:
    parser = argparse.ArgumentParser(description="Sends hostile requests to mockllm.")
    parser.add_argument("--count", type=int, default=14000, help="how many requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", default="", help="the store that the servers share")
    parser.add_argument("--echo", action="store_true", help="only the API that only tests have")
    parser.add_argument("--show", type=int, default=3, help="how many examples of each problem")
    options = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())  # else they are printed
    began = time.monotonic()
    if options.echo:
        PROTOCOLS[PROTOCOL.name] = PROTOCOL
    apis = [PROTOCOL.name] if options.echo else []
    more = {"state": options.state} if options.state else {}
    figures = play(options.count, options.seed, apis=apis, **more)
    print(f"{figures.requests} requests in {time.monotonic() - began:.0f} s, seed {options.seed}")
    print(
        "answers:", ", ".join(f"{n} x {status}" for status, n in sorted(figures.statuses.items()))
    )
    for kind in KINDS:
        print(f"{figures.count(kind):6} {kind}")
        for example in _examples(figures, kind, options.show):
            print(f"         {example}")
    return 1 if figures.problems else 0


def _examples(figures: Figures, kind: str, most: int) -> list[str]:
    """Some of the problems of a kind that differ, each with how often it was seen."""
    found: dict[str, list[str]] = defaultdict(list)
    for what in figures.problems.get(kind, ()):
        message = re.sub(r"\d+", "0", what.partition(" for ")[0].partition(" after ")[0])
        found[message[:90]].append(what)
    often = sorted(found.values(), key=len, reverse=True)
    return [f"{len(these)} x {these[0][:420]}" for these in often[:most]]


if __name__ == "__main__":
    sys.exit(main())
