"""The tables of mutants, each row with its class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from examples.accumulators import REFERENCES
from mockllm.checking import Policy
from mockllm.checking.cases.case import Level
from mockllm.checking.probes import ByteProbe, Probe
from mockllm.scenario.model import Api
from tests.checking.mutants import (
    agui_calls,
    agui_messages,
    anthropic_calls,
    anthropic_ends,
    anthropic_texts,
    bedrock_blocks,
    bytes_events,
    bytes_frames,
    bytes_lines,
    chat_arguments,
    chat_calls,
    chat_ends,
    chat_surfacing,
    chat_texts,
    cohere_events,
    common,
    completions_chunks,
    gemini_calls,
    gemini_parts,
    interactions_steps,
    live_messages,
    ollama_objects,
    realtime_events,
    reports,
    responses_ends,
    responses_items,
)

HERE = Path(__file__).parent

MODULES: dict[Api, tuple[ModuleType, ...]] = {
    "chat": (chat_calls, chat_arguments, chat_texts, chat_surfacing, chat_ends, reports),
    "responses": (responses_items, responses_ends, reports),
    "anthropic": (anthropic_calls, anthropic_texts, anthropic_ends, reports),
    "gemini": (gemini_calls, gemini_parts, reports),
    "interactions": (interactions_steps,),
    "agui": (agui_calls, agui_messages, reports),
    "bedrock": (bedrock_blocks,),
    "ollama": (ollama_objects,),
    "cohere": (cohere_events,),
    "completions": (completions_chunks,),
    "realtime": (realtime_events,),
    "live": (live_messages,),
}
_BYTES = (bytes_lines, bytes_events, bytes_frames)


def _table(name: str) -> Any:
    return yaml.safe_load((HERE / f"{name}.yaml").read_text(encoding="utf-8"))


FAMILIES: dict[str, str] = _table("families")
"""The kinds of mistakes, which group the mutants in tables."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """An accumulator with one mistake.

    Args:
        breaks: the invariants that the mistake breaks.
        family: the kind of mistake, one of `FAMILIES`.
        exact: whether the kit must report these invariants and no others.
        found_by: the names of the cases that catch it together; empty if none does.
        excuse: why none does.
        escapes: whether nobody judges what it does wrong; else the kit accepts its outcomes.
    """

    make: type[Probe | ByteProbe]
    breaks: frozenset[str]
    api: Api
    level: Level
    policy: Policy
    family: str = ""
    mistake: str = ""
    exact: bool = False
    found_by: tuple[str, ...] = ()
    excuse: str = ""
    escapes: bool = False

    def __str__(self) -> str:
        return f"{self.api}-{self.level}-{self.make.__name__}"

    def __reduce__(self) -> tuple[Callable[[str], Mutant], tuple[str]]:
        # Processes hand mutants to each other; classes made from a common mistake have no address.
        return _named, (str(self),)


def _class(api: Api, level: Level, name: str, like: str) -> type[Probe | ByteProbe]:
    """The class of a mutant: one of its own, or that of a common mistake with its name."""
    for module in _BYTES if level == "bytes" else MODULES[api]:
        if hasattr(module, name):
            own: type[Probe | ByteProbe] = getattr(module, name)
            return own
    return type(name, (getattr(common, like), REFERENCES[api]), {"__module__": common.__name__})


def _names(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _mutant(api: Api, level: Level, family: str, name: str, row: dict[str, Any]) -> Mutant:
    return Mutant(
        _class(api, level, name, row.get("like", name)),
        frozenset(_names(row["breaks only"] if "breaks only" in row else row["breaks"])),
        api,
        level,
        Policy(**row.get("policy", {})),
        family,
        row["mistake"],
        "breaks only" in row,
        tuple(f"{api}/{case}" for case in _names(row.get("found by", ()))),
        row.get("escapes", "") or row.get("tolerated", ""),
        "escapes" in row,
    )


def _tables(api: Api) -> Iterator[tuple[dict[str, Any], Level]]:
    """The families of an API's own table and of `reports`, each with its level."""
    for table in (_table(api), _table("reports").get(api, {})):
        for level, families in table.items():
            yield families, level


def _declared() -> Iterator[Mutant]:
    for api in MODULES:
        for families, level in _tables(api):
            for family, rows in families.items():
                for name, row in rows.items():
                    yield _mutant(api, level, family, name, row)


MUTANTS = tuple(_declared())
"""All mutants."""

_NAMED = {str(mutant): mutant for mutant in MUTANTS}


def _named(name: str) -> Mutant:
    return _NAMED[name]
