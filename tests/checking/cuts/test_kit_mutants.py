"""The kit's mutants: a mistake about something else is not taken for one about cuts."""

from __future__ import annotations

import pytest

from mockllm.checking.rules import CUT_RULES
from mockllm.conformance.cuts import examine_cuts
from tests.checking.mutants import MUTANTS

REPORTED, CALLS = CUT_RULES

ACCUSED = {
    "chat-payloads-EndOfInputIsTheEnd": {REPORTED, CALLS},
    "chat-payloads-NextCallEndsTheLast": {CALLS},
    "chat-payloads-CutIsSilent": {REPORTED},
    "chat-payloads-CutIsStop": {REPORTED},
    # Where arguments happen to be whole, no other part of the kit catches it.
    "chat-payloads-CutSurfacesCalls": {CALLS},
    "agui-payloads-EndOfInputIsTheEnd": {REPORTED, CALLS},
    "agui-payloads-CutRunsOpenCalls": {CALLS},
    "agui-payloads-EndOfAMessageIsTheEnd": {REPORTED},
    "agui-payloads-FailsInSilence": {REPORTED},
    "agui-payloads-SurfacesAtTheStart": {CALLS},
}
"""The mutants of two APIs that treat a cut wrongly, with the rules that they break."""


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "agui"])
def test_only_mistakes_about_cuts_are_accused(api):
    """Of some 350 mutants, exactly those that break a rule on cuts are accused of it."""
    found = {}
    for mutant in MUTANTS:
        if mutant.api == api and mutant.level == "payloads":
            results = examine_cuts(mutant.make, api=api)
            rules = {case.group for case in results.cases if case.failed}
            if rules:
                found[str(mutant)] = rules
    assert found == {name: rules for name, rules in ACCUSED.items() if name.startswith(api)}
