"""Which cases `mockllm check` chooses, from its options alone; no client runs."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.rules import RESILIENCE
from mockllm.cli.check.options import CheckOptions
from mockllm.cli.check.plan import Plan
from mockllm.cli.check.sources import plan_of
from mockllm.core.errors import UsageError

COMMAND = ("client",)


def plan(**options: Any) -> Plan:
    return plan_of(CheckOptions(api="chat", command=COMMAND, **options))


def test_faults_are_chosen_by_their_rules() -> None:
    """The names are those of all lines, so that a list of known mistakes may have them."""
    every = {f"{case.name}:{rule}" for case in fault_cases("chat") for rule in case.rules}
    names = plan(http=True, faults=True, rules=("no-duplicate-output",)).names
    assert set(names) == every
    assert {name.rpartition(":")[2] for name in names} == set(RESILIENCE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": ("no-duplicate-outpt",)}, "did you mean 'no-duplicate-output'"),
        (
            {"rules": ("recovers", "backoff-grows"), "only": ("next-*",)},
            "--rule backoff-grows: none of the cases that --only names can judge it",
        ),
        ({"only": ("nothing",)}, "--only nothing: there is no such case among"),
    ],
)
def test_rules_and_cases_that_are_not_there_are_refused(
    options: dict[str, Any], message: str
) -> None:
    """With what may have been meant."""
    with pytest.raises(UsageError, match=message):
        plan(http=True, faults=True, **options)
