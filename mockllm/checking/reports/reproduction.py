"""The files that reproduce a failure: a scenario that plays the same bytes, and a short test.

Only their text is made here; nothing is written. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.examine import Failure
from mockllm.checking.judging.running import Level
from mockllm.checking.policy import Policy
from mockllm.checking.reports.stream_text import format_reads
from mockllm.scenario.dump import dump

_MOST_READS = 2000


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The names and contents of the two files that reproduce a failure."""

    scenario_name: str
    scenario: str
    test_name: str
    test: str


def reproduction(
    failure: Failure,
    client: Callable[..., Any] | str,
    *,
    level: Level = "payloads",
    policy: Policy | None = None,
) -> Reproduction:
    """The files that reproduce a failure.

    Args:
        client: the function or class that makes the probe, or its import path `module:name`.
    """
    case = failure.shrunk or failure.case
    source = client if isinstance(client, str) else import_path(client)
    module, _, name = source.partition(":")
    stem = re.sub(r"[^a-z0-9]+", "-", f"{failure.invariant} {case.name}".lower()).strip("-")[:80]
    # The scenario keeps its name: the ids in the stream are derived from it.
    scenario = replace(case.scenario, apis=(case.api,))
    comment = "".join(f"# {line}\n" for line in [*str(failure).splitlines(), *_reads(case, level)])
    argument = _policy_argument(policy)
    names = "check, Policy" if argument else "check"
    test = (
        f"from pathlib import Path\n\n"
        f"import {module}\n"
        f"from mockllm.checking import {names}\n\n\n"
        f"def test_{stem.replace('-', '_')}():\n"
        f'    file = Path(__file__).with_name("{stem}.yaml")\n'
        f'    check({module}.{name}, file, api="{case.api}", level="{level}"{argument})\n'
    )
    test_name = f"test_{stem.replace('-', '_')}.py"
    return Reproduction(f"{stem}.yaml", comment + dump(scenario), test_name, test)


def _reads(case: Case, level: Level) -> list[str]:
    """What each read of the client returns, whole, at the level of bytes."""
    if level != "bytes":
        return []
    lines = format_reads(case)
    more = len(lines) - _MOST_READS
    return [
        "",
        "What each read returns:",
        *lines[:_MOST_READS],
        *([f"{more} more"] if more > 0 else []),
    ]


def _policy_argument(policy: Policy | None) -> str:
    """The policy as source code of an argument; empty for the default policy."""
    if policy is None or policy == Policy():
        return ""
    arguments = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        if value != getattr(Policy(), field.name):
            source = f"frozenset({sorted(value)})" if isinstance(value, frozenset) else repr(value)
            arguments.append(f"{field.name}={source}")
    return f", policy=Policy({', '.join(arguments)})"


def import_path(client: Callable[..., Any]) -> str:
    """The import path of a class or function, as `module:name`."""
    return f"{client.__module__}:{client.__qualname__}"
