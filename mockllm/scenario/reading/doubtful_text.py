"""Texts that may not be read as they are meant, for warnings: cut by a comment, in the notation of
another language, or beyond what a reader of YAML 1.1 can load. Nothing is asked of them where
scenarios are only served."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from mockllm.scenario.reading.nodes import PARSER, Mapping, Node, Scalar, Sequence
from mockllm.scenario.reading.values import scalar

_PROSE = frozenset({"text", "reply", "reasoning", "refusal"})
_CONDITIONS = frozenset({"user", "system", "contains"})


def doubtful_texts(root: Node, lines: list[str]) -> Iterator[tuple[Scalar, str]]:
    """Texts that may be meant otherwise, each with a warning.

    They are texts without quotes that one space and `#` end (what the model says, and any other
    where no space follows, as in `issue #5`), conditions such as `/hi/i`, and replies with `{% %}`.
    """
    seen: set[int] = set()
    left: list[tuple[str, Node]] = [("", root)]
    while left:
        key, node = left.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, Mapping):
            left += node.entries.items()
        elif isinstance(node, Sequence):
            left += ((key, item) for item in node.items)
        elif key in _CONDITIONS and re.fullmatch(r"/[^/]+/[dgimsuy]*", node.value):
            yield (
                node,
                f"{node.value[:40]!r} is looked for with its slashes; a regular expression is "
                "{regex: ...}",
            )
        elif key in _PROSE and re.search(r"\{%.*%\}", node.value):
            yield node, "has '{% %}', which is sent as it stands; templates have only {{ }}"
        elif node.plain and isinstance(scalar(node), str) and node.mark.line < len(lines):
            rest = lines[node.mark.line][node.mark.column + len(node.value) :]
            if re.match(" #" if key in _PROSE else r" #\S", rest):
                yield (
                    node,
                    f"the text ends before {rest.strip()[:40]!r}, which is a comment; a text with "
                    "# needs quotes, and a comment two spaces before it",
                )


def unreadable_elsewhere(text: str) -> str | None:
    """Why a reader of YAML 1.1, as most tools are, cannot load a text; None where it can."""
    loader = yaml.CSafeLoader if PARSER is not yaml.SafeLoader else yaml.SafeLoader
    try:
        for _ in yaml.load_all(text, loader):
            pass
    except (yaml.YAMLError, ValueError, OverflowError, TypeError) as error:
        reason = getattr(error, "problem", None) or str(error)
        return (
            f"a reader of YAML 1.1, such as PyYAML, cannot load this file ({reason}); "
            "put the value in quotes"
        )
    return None
