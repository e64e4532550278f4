"""The ages of recordings, and those that are too old."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mockllm.core.errors import ScenarioError
from mockllm.core.record import record
from mockllm.core.text import quantity
from mockllm.play.tapes.captured import load_head, load_tape, recorded_at
from mockllm.play.tapes.socket_tape import is_socket_tape, load_session_head
from mockllm.scenario.model import Scenario

_AGE = re.compile(r"(?P<number>[0-9]{1,5})(?P<unit>[dw])(?P<error>:error)?")
_DAYS = {"d": 1, "w": 7}
_DAY = 86400.0


@record
class MaxAge:
    """The age that recordings may have.

    Args:
        is_error: whether an older one is an error, and not a warning.
    """

    days: int
    is_error: bool = False


def read_max_age(text: str) -> MaxAge:
    """The age in a text, such as `30d`, `4w` or `30d:error`.

    Raises:
        ValueError: it is none.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no age such as 30d or 4w, or 30d:error")
    return MaxAge(int(found["number"]) * _DAYS[found["unit"]], found["error"] is not None)


@record
class Ages:
    """The known ages of recordings.

    Args:
        too_old: the file of each that is too old, and a sentence about it.
        undated: the files whose date nothing says.
    """

    too_old: tuple[tuple[str, str], ...]
    undated: tuple[str, ...]


def ages(scenarios: Iterable[Scenario], most: MaxAge, now: float) -> Ages:
    """The recordings of scenarios that are too old, and those without a date. Those that cannot be
    read are neither.

    Args:
        now: in seconds since 1970.
    """
    old: list[tuple[str, str]] = []
    undated: list[str] = []
    turns = (turn for scenario in scenarios for turn in scenario.turns)
    for file in dict.fromkeys(
        recorded.path for turn in turns for recorded in turn.recordings() if recorded.path
    ):
        try:
            at = _date(Path(file))
        except (OSError, ScenarioError):
            continue
        if at is None:
            undated.append(file)
        elif now - at > most.days * _DAY:
            old.append((file, _sentence(at, most, now)))
    return Ages(tuple(old), tuple(undated))


def _date(file: Path) -> float | None:
    """When a tape was recorded. Mostly its first line says so; the rest is read only where not."""
    with file.open("rb") as opened:
        first = opened.readline()
    if is_socket_tape(first):
        return load_session_head(first, str(file))[0].at or None
    head, _ = load_head(first, str(file))
    known = recorded_at(replace(head.exchange, chunks=()))
    return recorded_at(load_tape(file.read_bytes(), str(file)).exchange) if known is None else known


def _sentence(at: float, most: MaxAge, now: float) -> str:
    days = quantity(int((now - at) // _DAY), "day")
    return (
        f"was recorded on {datetime.fromtimestamp(at, UTC):%Y-%m-%d}, {days} ago; at most "
        f"{most.days} are allowed. Compare it with the service (mockllm drift), or record it again"
    )
