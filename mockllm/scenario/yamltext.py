"""Plain values as canonical YAML text: block style, readable, exact.

It is written by PyYAML's emitter in Python, never by the faster one in C: the text must be the
same on every machine.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from mockllm.scenario.nodes import Scalar
from mockllm.scenario.reading import scalar

__all__ = ["Flow", "write"]

_NO_WIDTH = 2**31
_BREAKS = frozenset("\n\r\x85\u2028\u2029")
_LINE = 70
_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\x85": "\\N",
    "\u2028": "\\L",
    "\u2029": "\\P",
}
_ESCAPED = re.compile(
    '["\\\\\\x85\u2028\u2029\ufeff]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010fffe]'
)


def write(value: Any) -> str:
    """The YAML text of a JSON value; keys stay in their order."""
    return yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_NO_WIDTH,
    )


class Flow(list[Any]):
    """A list to be written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes strings in the most readable style that is exact."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        # PyYAML escapes all characters above U+FFFF, such as emoji.
        self.write_indicator('"', True)
        written = _ESCAPED.sub(_escape, text)
        self.column += len(written)
        self.stream.write(written)
        self.write_indicator('"', False)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if not _BREAKS.isdisjoint(text):
        style = "|" if _is_block(text) else '"'
    elif not isinstance(scalar(Scalar(text, True, None)), str):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


def _is_block(text: str) -> bool:
    """Whether a literal block has exactly this text, even after an editor trims line ends."""
    lines = text.split("\n")
    return (
        not text[0].isspace()
        and not text.endswith("\n\n")
        and all(line == line.rstrip() and _BREAKS.isdisjoint(line) for line in lines)
    )


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    short = sum(
        len(item) + 4 if isinstance(item, str) else _LINE if isinstance(item, (list, dict)) else 8
        for item in items
    )
    flow = isinstance(items, Flow) or short < _LINE
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow)


_Dumper.add_representer(str, _string)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(Flow, _list)
