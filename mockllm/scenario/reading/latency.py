"""Readers of latency: from the text of an option, and from YAML, which has the same text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mockllm.core.distributions import Distribution, ReadSamples, read_distribution
from mockllm.core.pairs import read_pairs
from mockllm.scenario.durations import read_duration
from mockllm.scenario.latency_model import Latency, LoadFactor
from mockllm.scenario.reading.nodes import Mapping, Node
from mockllm.scenario.reading.values import Findings, Reader, line

_PREFILL = re.compile(r"(.+)/token\Z")
_LOAD_FACTOR = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)@([0-9]{1,9})\Z")

_KEYS = ("ttft", "itl", "prefill", "load-factor", "from")
_EXAMPLE = "ttft=lognormal(300ms, p99=2s) itl=normal(20ms, 5ms)"


class RecordedTimes(NamedTuple):
    """The times in recorded streams, in microseconds: of each until its first beat, and all those
    between two beats."""

    ttft: Sequence[float]
    itl: Sequence[float]


ReadRecorded = Callable[[str], RecordedTimes]
"""The times that a folder or tape has; raises ValueError with a sentence."""


def _no_samples(name: str) -> Sequence[float]:
    raise ValueError(f"names the file {name!r}, and this text is in no folder")


def _no_recorded(_: str) -> RecordedTimes:
    raise ValueError("'from' is for the option --latency; a scenario has samples(FILE)")


def read_latency(
    text: str, samples: ReadSamples = _no_samples, recorded: ReadRecorded = _no_recorded
) -> Latency:
    """Latency as it is written: `ttft=lognormal(300ms, p99=2s) itl=20ms prefill=50us/token
    load-factor=1.5@64`, each key at most once; or `from=FOLDER` for the times of recordings.

    Raises:
        ValueError: what is wrong with it, as a sentence.
    """
    given = read_pairs(text, _KEYS, _EXAMPLE)
    times = recorded(given["from"]) if "from" in given else None
    return Latency(
        _distribution("ttft", given, samples, None if times is None else times.ttft),
        _distribution("itl", given, samples, None if times is None else times.itl),
        _prefill(given["prefill"]) if "prefill" in given else None,
        _load_factor(given["load-factor"]) if "load-factor" in given else None,
        text,
    )


def _distribution(
    key: str, given: dict[str, str], samples: ReadSamples, times: Sequence[float] | None
) -> Distribution | None:
    if key not in given:
        return Distribution("samples", tuple(sorted(times))) if times else None
    try:
        return read_distribution(given[key], read_duration, samples)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _prefill(text: str) -> int:
    match = _PREFILL.match(text)
    if match is None:
        raise ValueError(f"prefill must be a duration for each token, as 50us/token, got {text!r}")
    try:
        return read_duration(match[1])
    except ValueError as error:
        raise ValueError(f"prefill: {match[1]!r} must be {error}") from None


def _load_factor(text: str) -> LoadFactor:
    match = _LOAD_FACTOR.match(text)
    if match is None or float(match[1]) < 1 or not int(match[2]):
        raise ValueError(
            "load-factor must be a factor from 1, and at how many running answers it holds, as "
            f"1.5@64, got {text!r}"
        )
    return LoadFactor(float(match[1]), int(match[2]))


def read_samples(text: str, name: str) -> list[float]:
    """The durations in the text of a file, one a line.

    Raises:
        ValueError: which line is none.
    """
    samples: list[float] = []
    for number, written in enumerate(text.splitlines(), 1):
        if written.strip():
            try:
                samples.append(read_duration(written.strip()))
            except ValueError as error:
                message = f"{name}:{number}: {written.strip()[:40]!r} must be {error}"
                raise ValueError(message) from None
    return samples


def latency(node: Node, findings: Findings) -> Latency | None:
    """Latency in YAML: the text that the option has. Files of samples are beside the YAML."""
    text = line(node, findings)
    if text is None:
        return None

    def samples(name: str) -> list[float]:
        if findings.read_file is None:
            _no_samples(name)
        try:
            return read_samples(findings.read_text(name), name)
        except OSError as error:
            raise ValueError(f"{name!r} {error}; put it there") from None

    try:
        return read_latency(text, samples)
    except ValueError as error:
        findings.add(node, str(error))
        return None


_EXACT = ("ttft", "every", "jitter", "at")


def drawn_or_exact(read: Reader) -> Reader:
    """A reader of mappings with times: either all of them are drawn, or none is."""

    def read_one_kind(node: Node, findings: Findings) -> Any:
        if isinstance(node, Mapping) and "latency" in node.entries:
            for key in [key for key in _EXACT if key in node.entries]:
                message = f"'latency' draws all times, and {key!r} says one; keep one of them"
                findings.add(node, message, node.keys[key])
        return read(node, findings)

    return read_one_kind
