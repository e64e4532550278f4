"""What PyYAML's emitter in Python writes: the reference for `mockllm.scenario.yamltext`."""

from __future__ import annotations

import re
from typing import Any

import yaml

from mockllm.scenario.reading.nodes import Scalar
from mockllm.scenario.reading.values import scalar
from mockllm.scenario.yamltext import Flow, FlowMap, TextFile

_BREAKS = frozenset("\n\r\x85\u2028\u2029")
_ESCAPED = re.compile(
    '["\\\\\\x85\u2028\u2029\ufeff]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010fffe]'
)
_SHORT = {'"': '"', "\\": "\\", "\n": "n", "\r": "r", "\t": "t"} | {
    "\x85": "N",
    "\u2028": "L",
    "\u2029": "P",
}


def pyyaml_text(value: Any) -> str:
    """The text with the styles of `yamltext`."""
    return yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=2**31,
    )


class _Dumper(yaml.SafeDumper):
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
    code = ord(match[0])
    if match[0] in _SHORT:
        return f"\\{_SHORT[match[0]]}"
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
    return (
        not text[0].isspace()
        and not text.endswith("\n\n")
        and all(line == line.rstrip() and _BREAKS.isdisjoint(line) for line in text.split("\n"))
    )


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    lengths = [
        len(item) + 4 if isinstance(item, str) else 70 if isinstance(item, (list, dict)) else 8
        for item in items
    ]
    flow = isinstance(items, Flow) or sum(lengths) < 70
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow)


def _mapping(dumper: yaml.SafeDumper, value: FlowMap) -> yaml.MappingNode:
    items = dict(value).items()
    return dumper.represent_mapping("tag:yaml.org,2002:map", items, len(str(value)) <= 160)


def _text_file(dumper: yaml.SafeDumper, text: TextFile) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", {"file": text.file}.items(), True)


_Dumper.add_representer(FlowMap, _mapping)
_Dumper.add_representer(TextFile, _text_file)
_Dumper.add_representer(str, _string)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(Flow, _list)
