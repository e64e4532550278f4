"""The scenarios that are served, as the live page lists and shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mockllm.core.text import shorten
from mockllm.errors import MockLLMError
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.dump import dump
from mockllm.scenario.model import AnyPart, Scenario, TextPart, ToolPart, TurnSpec
from mockllm.scenario.reading import nodes
from mockllm.scenario.reading.files import MAX_FILE
from mockllm.server.control.routes import described
from mockllm.ui.copying_texts import curl_texts, test_text

_LONGEST_TITLE = 120
_LONGEST_TEXT = 1_000_000
"""Characters of a scenario's text that are sent."""


def scenario_entry(scenario: Scenario, played: Mapping[int, int]) -> dict[str, Any]:
    """The entry of a scenario in the list."""
    return {
        **described(scenario, PROTOCOLS),
        "file": scenario.file,
        "line": scenario.line or None,
        "tags": _tags(scenario),
        "turns": [
            {"index": index, "title": _title(turn), "attempts": len(turn.attempts) + 1}
            for index, turn in enumerate(scenario.turns)
        ],
        "played": {str(index): times for index, times in sorted(played.items())},
    }


def _tags(scenario: Scenario) -> list[str]:
    """What a scenario has that few have."""
    forms = [(turn, *(variant for _, variant in turn.variants)) for turn in scenario.turns]
    every = [turn for turns in forms for turn in turns]
    tags = {
        "recorded": any(True for turn in every for _ in turn.recordings()),
        "fault": any(turn.fault for turn in every),
        "quirk": any(turn.wire is not None and turn.wire.quirks for turn in every),
        "error": any(turn.http is not None for turn in every),
        "retry": any(turn.attempts for turn in every),
        "fallback": scenario.match is not None and scenario.match.anything,
        "only by name": scenario.match is None and scenario.route is None,
    }
    return [name for name, holds in tags.items() if holds]


def _title(turn: TurnSpec) -> str:
    """What a turn does, in one line."""
    if turn.http is not None:
        title = f"HTTP {turn.http.status}"
    elif turn.answer is not None:
        title = f"HTTP {turn.answer.status} {turn.answer.kind}".strip()
    else:
        title = ", ".join(filter(None, map(_part_title, turn.reply))) or "an empty answer"
    if turn.fault:
        title += "; fault " + ", ".join(fault.name for fault in turn.fault)
    return shorten(" ".join(title.split()), _LONGEST_TITLE)


def _part_title(part: AnyPart) -> str:
    match part:
        case TextPart(text=text):
            return shorten(str(text), _LONGEST_TITLE)
        case ToolPart(name=name):
            return f"{name}()"
    parts = getattr(part, "calls", getattr(part, "parts", None))
    if parts is not None:
        return " + ".join(map(_part_title, parts))
    return type(part).__name__.removesuffix("Part").lower()


def scenario_json(
    scenario: Scenario,
    entry: Mapping[str, Any],
    problems: Sequence[Mapping[str, Any]],
    url: str,
) -> dict[str, Any]:
    """All about one scenario. It reads the file of the scenario."""
    text, line, why = _text(scenario)
    own = [problem for problem in problems if scenario.file and problem["file"] == scenario.file]
    return {
        **entry,
        "text": text,
        "first_line": line,
        "text_why": why,
        "problems": own,
        "curl": curl_texts(scenario, url),
        "test": test_text(scenario),
    }


def _text(scenario: Scenario) -> tuple[str, int, str]:
    """The text of a scenario, its first line in its file, and why it is not that of the file."""
    if not scenario.file:
        why = "It was not loaded from a file that the server knows, so this is written anew."
        return _shortened(dump(scenario), 1, why)
    try:
        with Path(scenario.file).open("rb") as file:
            text = file.read(MAX_FILE + 1).decode()
        document = _document(text, scenario)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    except UnicodeDecodeError:
        reason = "is not UTF-8"
    except MockLLMError:
        reason = "is broken now"
    else:
        if document is not None:
            return _shortened(*document, "")
        reason = "does not have it any more"
    why = f"{scenario.file} {reason}, so this is written anew from what is served."
    return _shortened(dump(scenario), 1, why)


def _shortened(text: str, line: int, why: str) -> tuple[str, int, str]:
    if len(text) <= _LONGEST_TEXT:
        return text, line, why
    note = f"Only the first {_LONGEST_TEXT:,} of its {len(text):,} characters are shown."
    return text[:_LONGEST_TEXT], line, f"{why} {note}".strip()


_MARK = re.compile(r"^---[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)|^(?=---\s)", re.MULTILINE)
"""Where a YAML document begins: after its mark, or at one that has the document beside it."""


def _document(text: str, scenario: Scenario) -> tuple[str, int] | None:
    """The document of a scenario in the text of its file, and its first line; None where it is not
    there."""
    marks = [mark.span() for mark in _MARK.finditer(text)]
    for (_, begin), (end, _) in pairwise([(0, 0), *marks, (len(text), len(text))]):
        for document in nodes.documents(text[begin:end], scenario.file):
            root = document.root
            name = root.entries.get("scenario") if isinstance(root, nodes.Mapping) else None
            if isinstance(name, nodes.Scalar) and name.value == scenario.name:
                line = text.count("\n", 0, begin) + 1
                return text[begin:end].rstrip("\n") + "\n", line
    return None
