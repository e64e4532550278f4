"""The files that reproduce a failure: a scenario that plays the same bytes, and a short test.

Only their text is made here; nothing is written. Pure.
"""

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
from mockllm.core.text import shorten
from mockllm.framing.sse import decode
from mockllm.protocols.base import dumps
from mockllm.scenario.dump import dump

__all__ = ["Reproduction", "format_stream", "import_path", "reproduction"]

_MOST_LINES = 40
_WIDEST = 160


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
        level, policy: how the client was examined.
    """
    case = failure.shrunk or failure.case
    source = client if isinstance(client, str) else import_path(client)
    module, _, name = source.partition(":")
    stem = re.sub(r"[^a-z0-9]+", "-", f"{failure.invariant} {case.name}".lower()).strip("-")[:80]
    # The scenario keeps its name: the ids in the stream are derived from it.
    scenario = replace(case.scenario, apis=(case.api,))
    comment = "".join(f"# {line}\n" for line in str(failure).splitlines())
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


def _policy_argument(policy: Policy | None) -> str:
    """The policy as source code of an argument; empty for the default policy."""
    if policy is None or policy == Policy():
        return ""
    arguments = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        if value != field.default:
            source = f"frozenset({sorted(value)})" if isinstance(value, frozenset) else repr(value)
            arguments.append(f"{field.name}={source}")
    return f", policy=Policy({', '.join(arguments)})"


def import_path(client: Callable[..., Any]) -> str:
    """The import path of a class or function, as `module:name`."""
    return f"{client.__module__}:{client.__qualname__}"


def format_stream(case: Case) -> str:
    """The stream of a case, one line for each event, shortened if it is long.

    Fields that are the same in all events are left out.
    """
    frames = decode(b"".join(case.chunks))
    values = [_object(frame.data) for frame in frames]
    constant = _constant_fields([value for value in values if value is not None])
    lines = []
    for frame, value in zip(frames, values, strict=True):
        event = f"event: {frame.event} " if frame.event else ""
        if value is not None:
            rest = {key: item for key, item in value.items() if key not in constant}
            lines.append(f"{event}data: {dumps(rest)}")
        elif frame.data is not None:
            lines.append(f"{event}data: {frame.data}")
        elif frame.comment is not None:
            lines.append(f": {frame.comment}")
    if not lines:
        lines = [repr(b"".join(case.chunks))]
    lines = [shorten(line, _WIDEST, keep=_WIDEST - 1) for line in lines]
    if len(lines) > _MOST_LINES:
        count = len(lines) - _MOST_LINES
        lines = [*lines[: _MOST_LINES - 5], f"… {count} more …", *lines[-5:]]
    return "\n".join(lines)


def _object(data: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(data or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _constant_fields(values: list[dict[str, Any]]) -> set[str]:
    """The fields that have the same value in all objects; none for a single object."""
    if len(values) < 2:
        return set()
    first = values[0]
    return {
        key
        for key, item in first.items()
        if all(key in value and value[key] == item for value in values)
    }
