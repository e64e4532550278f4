"""Runs every mutant, prints what was found, and writes docs/maintainers/resilience-mutants.md.

Exit code 1: a mutant was not found, or something was accused falsely; the page is not written then.
"""

from __future__ import annotations

import sys
import time

from mockllm.checking.resilience.cases import fault_cases
from mockllm.wire.protocols import PROTOCOLS
from tests.checking.resilience_mutants.declared import MUTANTS
from tests.checking.resilience_mutants.page import PAGE, page
from tests.checking.resilience_mutants.playing import API, clients


def main() -> int:
    """Runs the mutants whose names are given, or all of them."""
    begun = time.monotonic()
    chosen = [one for one in MUTANTS if not sys.argv[1:] or one.name in sys.argv[1:]]
    with clients() as make:
        correct = {api: make(None) for api in PROTOCOLS}
        for api, client in correct.items():
            client.begin(fault_cases(api))
        mutants = {one: make(one) for one in chosen}
        for client in mutants.values():
            client.begin(fault_cases(API))
        for client in (*correct.values(), *mutants.values()):
            client.wait()
        results = {api: client.found() for api, client in correct.items()}
        found = {one.name: client.found() for one, client in mutants.items()}
    mistakes = [f"the client, {api}: {one.texts}" for api, one in results.items() if one.wrong]
    for mutant in chosen:
        one = found[mutant.name]
        texts = [one.texts[mutant.rule, name] for name in one.wrong.get(mutant.rule, ())]
        print(f"{mutant.rule:24} {mutant.name:36} {texts[0] if texts else 'NOT FOUND'}")
        falsely = {key: one.texts[key, one.wrong[key][0]] for key in one.wrong}
        falsely = {
            key: text for key, text in falsely.items() if key not in {mutant.rule, *mutant.also}
        }
        if not texts or falsely:
            mistakes.append(f"{mutant.name}: {falsely or 'not found'}")
    print(f"{len(chosen)} mutants in {time.monotonic() - begun:.0f} s")
    print("\n".join(mistakes), file=sys.stderr)
    if not mistakes and len(chosen) == len(MUTANTS):
        PAGE.write_text(page(found, results))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
