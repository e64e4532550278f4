"""A failure as files: a scenario that plays the very bytes, and a test of five lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.examine import Failure
from mockllm.checking.judging.running import Level
from mockllm.checking.policy import Policy
from mockllm.framing.sse import decode
from mockllm.protocols.base import dumps
from mockllm.scenario.dump import dump

__all__ = ["Reproduction", "drawn", "reproduction", "where_from"]

_MOST_LINES = 40
_MOST_WIDE = 160


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Names and contents of the two files that show a failure again."""

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
    """The files for a failure.

    Args:
        client: what makes the probe, or where it is imported from as `module:name`.
        policy: how the client was judged.
    """
    case = failure.shrunk or failure.case
    source = client if isinstance(client, str) else where_from(client)
    module, _, name = source.partition(":")
    stem = re.sub(r"[^a-z0-9]+", "-", f"{failure.invariant} {case.name}".lower()).strip("-")[:80]
    # The name stays: identifiers are derived from it.
    scenario = replace(case.scenario, apis=(case.api,))
    words = "".join(f"# {line}\n" for line in str(failure).splitlines())
    judged = _written(policy)
    names = "check, Policy" if judged else "check"
    test = (
        f"from pathlib import Path\n\n"
        f"import {module}\n"
        f"from mockllm.checking import {names}\n\n\n"
        f"def test_{stem.replace('-', '_')}():\n"
        f'    file = Path(__file__).with_name("{stem}.yaml")\n'
        f'    check({module}.{name}, file, api="{case.api}", level="{level}"{judged})\n'
    )
    test_name = f"test_{stem.replace('-', '_')}.py"
    return Reproduction(f"{stem}.yaml", words + dump(scenario), test_name, test)


def _written(policy: Policy | None) -> str:
    """A policy as an argument, as far as it is not the usual one."""
    if policy is None or policy == Policy():
        return ""
    said = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        if value != field.default:
            shown = f"frozenset({sorted(value)})" if isinstance(value, frozenset) else repr(value)
            said.append(f"{field.name}={shown}")
    return f", policy=Policy({', '.join(said)})"


def where_from(client: Callable[..., Any]) -> str:
    """Where a probe's class or function is imported from, as `module:name`."""
    return f"{client.__module__}:{client.__qualname__}"


def drawn(case: Case) -> str:
    """The stream of a case, an event a line, as far as a reader cares to read.

    Fields that are the same in all events are left out.
    """
    frames = decode(b"".join(case.chunks))
    values = [_object(frame.data) for frame in frames]
    same = _same([value for value in values if value is not None])
    lines = []
    for frame, value in zip(frames, values, strict=True):
        event = f"event: {frame.event} " if frame.event else ""
        if value is not None:
            rest = {key: item for key, item in value.items() if key not in same}
            lines.append(f"{event}data: {dumps(rest)}")
        elif frame.data is not None:
            lines.append(f"{event}data: {frame.data}")
        elif frame.comment is not None:
            lines.append(f": {frame.comment}")
    if not lines:
        lines = [repr(b"".join(case.chunks))]
    shown = [line if len(line) <= _MOST_WIDE else line[: _MOST_WIDE - 1] + "…" for line in lines]
    if len(shown) > _MOST_LINES:
        left = len(shown) - _MOST_LINES
        shown = [*shown[: _MOST_LINES - 5], f"… {left} more …", *shown[-5:]]
    return "\n".join(shown)


def _object(data: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(data or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _same(values: list[dict[str, Any]]) -> set[str]:
    """The fields that say the same in all of several objects."""
    if len(values) < 2:
        return set()
    first = values[0]
    return {
        key
        for key, item in first.items()
        if all(key in value and value[key] == item for value in values)
    }
