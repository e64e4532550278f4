"""`mockllm list quirks`: what real servers get wrong, and what is right then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.table import print_table
from mockllm.scenario.model import Api
from mockllm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from mockllm.checking.cases.case import Case
    from mockllm.play.quirks import Quirk, Variant

_HEAD = ("NAME", "RIGHT", "APIS", "TITLE")
_RIGHT = {
    "same": "the same as without it",
    "error": "a clear error",
    "either": "the same as without it, or a clear error",
}


def print_quirks(names: Sequence[str], api: Api | None, as_json: bool) -> None:
    """Prints a table of the quirks of real servers, or those of the names in full.

    Args:
        api: only those that are met in this API.
    """
    from mockllm.play.quirks import QUIRKS, find

    listed = [find(name)[0] for name in names] or list(QUIRKS.values())
    if api is not None:
        listed = [quirk for quirk in listed if quirk.applies_to(api)]
    if as_json:
        echo(json.dumps([*map(_as_json, listed)], indent=2, ensure_ascii=False))
    elif names:
        for quirk in listed:
            for line in _details(quirk, api or quirk.apis[0]):
                echo(line)
    else:
        print_table([_HEAD, *map(_row, listed)])


def _row(quirk: Quirk) -> tuple[str, ...]:
    apis = "all" if set(quirk.apis) == set(PROTOCOLS) else ",".join(quirk.apis)
    return quirk.name, quirk.prose.right, apis, quirk.prose.title


def _as_json(quirk: Quirk) -> dict[str, Any]:
    return {
        "name": quirk.name,
        "title": quirk.prose.title,
        "apis": list(quirk.apis),
        "servers": quirk.prose.servers,
        "right": quirk.prose.right,
        "correct": quirk.prose.correct,
        "faults": quirk.prose.faults,
        "invariant": quirk.prose.invariant,
        "sample": quirk.sample.name,
        "variants": [
            {
                "name": variant.name,
                "says": quirk.prose.variants[variant.name],
                "right": variant.right or quirk.prose.right,
                "sample": quirk.sample_of(variant).name,
            }
            for variant in quirk.variants
        ],
        "sources": list(quirk.prose.sources),
    }


def _details(quirk: Quirk, api: Api) -> Iterator[str]:
    yield f"{quirk.name}: {quirk.prose.title}"
    facts = {
        "seen": quirk.prose.servers,
        "right": f"{_RIGHT[quirk.prose.right]}: {quirk.prose.correct}",
        "faults": quirk.prose.faults,
        "breaks": quirk.prose.invariant,
        "apis": ", ".join(quirk.apis),
        "sources": ", ".join(quirk.prose.sources),
    }
    for name, fact in facts.items():
        lines = wrap(fact, 82, break_on_hyphens=False) or ["-"]
        yield f"  {name:8} {lines[0]}"
        yield from (f"           {line}" for line in lines[1:])
    for variant in quirk.variants:
        name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
        yield f"  {name}: {quirk.prose.variants[variant.name]}"
        yield from (f"    {line}" for line in _changes(quirk, variant, api))
    yield ""


_WIDE = 200
_MOST_LINES = 12
_JSON_SHOWN = 40


def _changes(quirk: Quirk, variant: Variant, api: Api) -> Iterator[str]:
    """The changes of a variant in the stream of its sample, as a diff of lines."""
    from mockllm.checking.cases.build import case
    from mockllm.checking.reports.stream_text import format_stream

    name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
    odd = case(quirk.sample_of(variant), api, quirk=name)
    assert odd.plain is not None
    show = format_stream if odd.events is not None else _raw
    unmarked = replace(odd, plain=None)  # the report of a failure marks what differs from `plain`
    before, after = (show(played).split("\n") for played in (odd.plain, unmarked))
    changes = list(unified_diff(before, after, n=0, lineterm=""))[2:]
    lines = [line for line in changes if not line.startswith("@@")]
    for line in lines[:_MOST_LINES]:
        yield line if len(line) <= _WIDE else f"{line[:_WIDE]}…"
    if len(lines) > _MOST_LINES:
        yield f"… {len(lines) - _MOST_LINES} more lines"


def _raw(case: Case) -> str:
    """The chunks of a stream, one a line, with everything unprintable escaped, and of
    long ones the ends."""
    chunks = [chunk.decode(errors="backslashreplace") for chunk in case.chunks]
    escaped = (repr(chunk)[1:-1] for chunk in chunks)
    return "\n".join(
        line if len(line) < 2 * _JSON_SHOWN else f"{line[:_JSON_SHOWN]}…{line[-_JSON_SHOWN:]}"
        for line in escaped
    )
