"""Readers of the parts of a reply: one table for each kind of part.

`BROKEN`, a call without a name, replaces a part that cannot be read, so that the indices of the
parts after it stay right; `check` skips it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mockllm.core.jsontext import compact, is_object
from mockllm.core.tokens_and_fragments import RandomSplit, Split
from mockllm.scenario.part_model import (
    AnyPart,
    AudioPart,
    AutoPart,
    Citation,
    ErrorPart,
    ErrorSpec,
    FramePart,
    Gate,
    GatePart,
    ImagePart,
    InterleavedPart,
    Member,
    NativePart,
    ParallelPart,
    PausePart,
    ReasoningPart,
    RefusalPart,
    ServerToolPart,
    TextPart,
    TokenSpec,
    ToolPart,
)
from mockllm.scenario.reading import media
from mockllm.scenario.reading.advice import advise
from mockllm.scenario.reading.nodes import MAX_NODES, Mapping, Node, Scalar, Sequence
from mockllm.scenario.reading.tables import called_name, gate_name, long_text, table, text_of_file
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    Table,
    boolean,
    excerpt,
    fields,
    integer,
    is_null,
    json_mapping,
    json_value,
    keys,
    line,
    listing,
    record,
    scalar,
    suggestion,
    text,
    unknown,
)

BROKEN = ToolPart("")

_RULES = ("whole", "chars", "words")
_size = integer(1, 1_000_000)
_strings = listing(text, "strings")


def ends(name: str, high: int) -> Table:
    """The table of `{random: [low, high]}`, in which both numbers are from 1 to `high`."""
    return table(name, random=pair(integer(1, high)))


def pair(number: Reader) -> Reader:
    """A reader of two numbers, the smaller one first."""
    numbers = listing(number, "two numbers")

    def read(node: Node, findings: Findings) -> tuple[int, int] | None:
        both = numbers(node, findings)
        if isinstance(node, Sequence) and both is not None and len(both) == len(node.items):
            if len(both) == 2 and both[0] <= both[1]:
                return both[0], both[1]
            findings.add(node, "must be two numbers, the smaller one first")
        return None

    return read


_RANDOM = ends("random", 1_000_000)


def rule(node: Node, findings: Findings) -> Split | None:
    """A split that works for any value: not a list of fragments."""
    if isinstance(node, Mapping):
        values = fields(node, findings, _RANDOM)
        return None if values is None else RandomSplit(*values["random"])
    if not isinstance(node, Scalar):
        findings.add(node, "must be a rule for any value; fragments belong to one value alone")
        return None
    if node.value in _RULES:
        return node.value  # type: ignore[return-value]
    value = scalar(node)
    if type(value) is int and 1 <= value <= 1_000_000:
        return value
    expected = "whole, chars, words, a number of characters, {random: [1, 8]} or the fragments"
    findings.must_be(node, expected, suggestion(node.value, _RULES))
    return None


def split(node: Node, findings: Findings) -> Split | None:
    """A rule, or the fragments themselves."""
    if isinstance(node, Sequence):
        return _strings(node, findings)  # type: ignore[no-any-return]
    return rule(node, findings)


def arguments(node: Node, findings: Findings) -> str | None:
    """Arguments of a call as JSON text: a mapping written compactly, or text as it is."""
    if isinstance(node, Mapping):
        return compact(json_value(node, findings))
    if isinstance(node, Scalar) and not node.plain:
        return node.value
    if isinstance(node, Scalar) and isinstance(scalar(node), str):
        return node.value
    findings.must_be(node, "a mapping, or a string of JSON")
    return None


def _json_text(node: Node, findings: Findings) -> str | None:
    """A JSON value as compact text; `{raw: text}` is text that is kept as it is, and
    `{raw: {file: NAME}}` that of a file."""
    if isinstance(node, Mapping) and list(node.entries) == ["raw"]:
        raw: str | None = long_text(node.entries["raw"], findings)
        return raw
    if is_null(node):
        findings.must_be(node, "a JSON value, or {raw: text}")
        return None
    return compact(json_value(node, findings))


def _tokens(node: Node, findings: Findings) -> str | None:
    """A number of tokens, or a distribution of them, as it is written."""
    if not isinstance(node, Scalar):
        findings.must_be(node, "a number of tokens, or a distribution of them")
        return None
    # Imported with the first length: few scenarios have one.
    from mockllm.scenario.lengths import read_tokens

    try:
        read_tokens(node.value)
    except ValueError as error:
        findings.add(node, str(error))
        return None
    return node.value


_automatic = record(AutoPart, table("auto", tokens=_tokens))


def _auto(node: Node, findings: Findings) -> AutoPart | None:
    """`true`, or the length of the answer."""
    if isinstance(node, Mapping):
        return _automatic(node, findings)
    if isinstance(node, Scalar) and scalar(node) is True:
        return AutoPart()
    findings.must_be(node, "true, or a mapping with the key tokens")
    return None


def _data(node: Node, findings: Findings) -> Any:
    if is_null(node):
        findings.add(node, "must be a string or a JSON value; write null as the string 'null'")
        return None
    return json_value(node, findings)


error = record(ErrorSpec, table("error"))
_GATE = record(Gate, table("gate", name=gate_name))


def gate(node: Node, findings: Findings) -> Gate | None:
    """The name of a gate, or a mapping with it."""
    if isinstance(node, Mapping):
        read: Gate | None = _GATE(node, findings)
        return read
    name = gate_name(node, findings)
    return None if name is None else Gate(name)


def _field(node: Node, findings: Findings) -> str | None:
    empty = isinstance(node, Scalar) and not node.plain and not node.value
    return "" if empty else line(node, findings)


def _logprob(node: Node, findings: Findings) -> float | None:
    value = scalar(node) if isinstance(node, Scalar) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -math.inf < value <= 0:
        return value
    findings.must_be(node, "a number of at most 0")
    return None


_FRAME = table("frame", data=_data, data_file=text_of_file, event=_field, id=_field)
_top = record(TokenSpec, table("top_token", logprob=_logprob))
_token_list = listing(
    record(
        TokenSpec,
        table("token", logprob=_logprob, top=listing(_top, "tokens with token and logprob")),
    ),
    "tokens",
)


def _logprobs(node: Node, findings: Findings) -> bool | tuple[TokenSpec, ...] | None:
    if isinstance(node, Sequence):
        return _token_list(node, findings)  # type: ignore[no-any-return]
    if isinstance(node, Scalar) and isinstance(scalar(node), bool):
        return boolean(node, findings)
    findings.must_be(node, "true, false or a list of tokens")
    return None


_span = pair(integer(0))
_CITATION = table("citation", url=_field, characters=_span, pages=_span, blocks=_span)
_UNITS = ("characters", "pages", "blocks")


def _citation(node: Node, findings: Findings) -> Citation | None:
    """A source with an address, or a place in a document or a search result."""
    before = len(findings.found)
    values = fields(node, findings, _CITATION)
    if values is None or not isinstance(node, Mapping):
        return None
    sources = [key for key in ("document", "search_result") if key in node.entries]
    units = [key for key in _UNITS if key in node.entries]
    if len(sources) > 1:
        findings.add(node, "must have either 'document' or 'search_result', got both")
    elif not sources and units:
        findings.add(node, f"has {units[0]!r} of no document; needs the key 'document'")
    elif not sources and "url" not in node.entries:
        findings.add(node, "needs the key 'url', or 'document' or 'search_result'")
    elif sources == ["document"] and len(units) != 1:
        findings.add(node, f"needs one of {', '.join(_UNITS)}, which say where in the document")
    elif sources == ["search_result"] and units != ["blocks"]:
        findings.add(
            node, "needs 'blocks', which say where in the search result, and no other place"
        )
    return Citation(**values) if len(findings.found) == before else None


def _frame(node: Node, findings: Findings) -> dict[str, Any] | None:
    values = fields(node, findings, _FRAME)
    if values is None or not isinstance(node, Mapping):
        return None
    kinds = [
        name
        for name, members in (
            ("data", ("data", "data_file", "event", "id", "retry")),
            ("comment", ("comment",)),
            ("raw", ("raw",)),
        )
        if any(member in node.entries for member in members)
    ]
    if {"data", "data_file"} <= node.entries.keys():
        findings.add(node, "must have either 'data' or 'data_file', got both")
        return None
    if "data_file" in values:
        values["data"] = values.pop("data_file")
    if len(kinds) == 1:
        return values
    findings.add(node, "must have one of data (with event, id, retry), comment and raw")
    return None


def _native(node: Node, findings: Findings) -> Any:
    """A JSON object, or `{file: NAME}`: that of a file beside the YAML."""
    if not isinstance(node, Mapping) or list(node.entries) != ["file"]:
        return json_mapping(node, findings)
    text = text_of_file(node.entries["file"], findings)
    if text is None or is_object(text):
        return text
    findings.add(node, "names a file that must have a JSON object")
    return None


def _check_native(value: NativePart, node: Mapping, findings: Findings) -> None:
    """Adds the mistakes of a native part, each at its key."""
    written = json.loads(value.value) if isinstance(value.value, str) else value.value
    for path, message in findings.vocabulary.native_mistakes(value.api, written):
        place: Node = node.entries["native"]
        for key in path:
            if isinstance(place, Mapping) and key in place.entries:
                place = place.entries[str(key)]
            elif isinstance(place, Sequence) and isinstance(key, int):
                place = place.items[key]
        findings.add(place, message)


def _tool(node: Node, findings: Findings) -> ToolPart:
    """A member of `parallel`: a tool call and nothing else."""
    if isinstance(node, Mapping) and "tool" not in node.entries:
        kind = next((key for key in node.entries if key in KINDS), None)
        given = f"{kind!r}" if kind else "none"
        findings.add(node, f"must be a tool call, with the key 'tool'; found {given}")
        return BROKEN
    values = fields(node, findings, PARTS["tool"][0])
    if values is None:
        return BROKEN
    call = _call(**PARTS["tool"][0].arguments(values))
    return _check_name(call, node, findings)


def _check_name(call: ToolPart, node: Node, findings: Findings) -> ToolPart:
    """The call, if its name is valid or the call is `malformed`; else `BROKEN`."""
    if isinstance(node, Mapping) and {"arguments", "input"} <= node.entries.keys():
        findings.add(node, "must have either 'arguments' or 'input', got both", node.keys["input"])
    if not call.malformed and isinstance(node, Mapping):
        return call if called_name(node.entries["tool"], findings) else BROKEN
    return call


def _call(input: str | None = None, **values: Any) -> ToolPart:
    if input is not None:
        values |= {"arguments": input or None, "custom": True}
    return ToolPart(**values)


def _action(**values: Any) -> ToolPart:
    """A call of the tool that a coding agent has for an action."""
    call_id = values.pop("id", None)
    ((name, value),) = values.items()
    sent = value if isinstance(value, dict) else {"command" if name == "shell" else "path": value}
    return ToolPart(f"<{name}>", call_id, compact(sent))


def _interleaved_member(node: Node, findings: Findings) -> Member:
    """A member of `interleaved`: a part that streams in fragments, or a frame."""
    kinds = [kind for kind in KINDS if kind in node.entries] if isinstance(node, Mapping) else []
    if kinds and kinds[0] not in _MEMBERS:
        findings.add(node, f"must be one of {', '.join(_MEMBERS)}; found {kinds[0]!r}")
        return BROKEN
    member = part(node, findings)
    return member if isinstance(member, Member) else BROKEN


_STREAMED = ("text", "reasoning", "refusal", "tool", "server_tool", "image", "audio")
_MEMBERS = (*_STREAMED, "frame", "native")
_calls = listing(integer(0), "call numbers, from 0")

PARTS: dict[str, tuple[Table, Callable[..., AnyPart]]] = {
    "text": (
        table(
            "text_part", split=split, citations=listing(_citation, "citations"), logprobs=_logprobs
        ),
        TextPart,
    ),
    "reasoning": (table("reasoning_part", split=split), ReasoningPart),
    "refusal": (table("refusal_part", split=split), RefusalPart),
    "tool": (table("tool_part", arguments=arguments, split=split), _call),
    "shell": (table("shell_part"), _action),
    "write": (
        table("write_part", write=record(dict, table("written_file"))),
        _action,
    ),
    "read": (table("read_part"), _action),
    "edit": (
        table(
            "edit_part",
            edit=record(dict, table("edited_file", old=text, new=text)),
        ),
        _action,
    ),
    "server_tool": (
        table("server_tool_part", input=_json_text, output=_json_text, split=split),
        ServerToolPart,
    ),
    "image": (table("image_part", image=media.image), ImagePart),
    "audio": (table("audio_part", audio=media.audio, split=split), AudioPart),
    "parallel": (
        table("parallel_part", parallel=listing(_tool, "tool calls"), order=_calls),
        ParallelPart,
    ),
    "interleaved": (
        table(
            "interleaved_part",
            interleaved=listing(_interleaved_member, "parts"),
            order=listing(integer(0), "part numbers, from 0"),
        ),
        InterleavedPart,
    ),
    "pause": (table("pause_part"), PausePart),
    "gate": (table("gate_part", gate=gate), GatePart),
    "frame": (
        table("frame_part", frame=_frame),
        lambda frame, api, first=False: FramePart(api=api, first=first, **frame),
    ),
    "native": (
        table("native_part", native=_native),
        lambda native, api: NativePart(api, native),
    ),
    "error": (table("error_part", error=error), ErrorPart),
    "auto": (table("auto_part", auto=_auto), lambda auto: auto),
}
"""By the key that names the kind: the keys of the part, and its constructor."""

KINDS = (*PARTS, "use")
_USE = table("use")


def part(node: Node, findings: Findings) -> AnyPart:
    """One part of a reply; one of its keys names its kind."""
    if not isinstance(node, Mapping):
        findings.must_be(node, "a part: a mapping with one of " + ", ".join(KINDS))
        return BROKEN
    kinds = [kind for kind in PARTS if kind in node.entries]
    if len(kinds) != 1:
        _report_kinds(node, findings, kinds)
        return BROKEN
    kind, make = PARTS[kinds[0]]
    before = len(findings.found)
    values = fields(node, findings, kind)
    if values is None:
        return BROKEN
    value = make(**kind.arguments(values))
    if isinstance(value, ToolPart) and not value.action:
        return _check_name(value, node, findings)
    if isinstance(value, NativePart):
        _check_native(value, node, findings)
    if isinstance(value, (ParallelPart, InterleavedPart)) and len(findings.found) > before:
        # The fragments of a broken member cannot be counted, so `order` cannot be checked.
        return replace(value, order=())
    return value


def _report_kinds(node: Mapping, findings: Findings, kinds: list[str]) -> None:
    if kinds:
        findings.add(node, f"must be one part, got {' and '.join(kinds)} together; make it a list")
        return
    for key in node.entries:
        if advise(key, KINDS):
            unknown(node, key, findings, KINDS)
            return
    given = keys(node.entries) if node.entries else "no keys"
    known = ", ".join(KINDS)
    findings.add(
        node, f"must be a part, with one of {known}; found {given}; a text with {{ needs quotes"
    )


def _parts(node: Node, findings: Findings) -> tuple[AnyPart, ...]:
    """A part, or the parts of the named reply that is used in its place; a string is a text."""
    if isinstance(node, Scalar) and isinstance(scalar(node), str):
        return (TextPart(node.value),)
    if not isinstance(node, Mapping) or "use" not in node.entries:
        return (part(node, findings),)
    values = fields(node, findings, _USE)
    if values is None:
        return (BROKEN,)
    name, where = values["use"], node.entries["use"]
    if findings.replies is None:
        findings.add(where, "stands in a named reply, which cannot use another; write its parts")
        return (BROKEN,)
    named = findings.replies.get(name)
    if named is None:
        known = f"; they are {', '.join(findings.replies)}" if findings.replies else ""
        hint = suggestion(name, findings.replies) or known
        hint = hint or "; name one under 'replies', here or in a file that 'include' names"
        findings.add(where, f"no reply is named {excerpt(name)!r}{hint}")
        return (BROKEN,)
    findings.used_size += named.size
    if findings.used_size > MAX_NODES:
        # As of aliases: a few lines can stand for billions.
        findings.add(where, f"the replies used up to here have more than {MAX_NODES:,} values")
        return (BROKEN,)
    findings.used[id(node)] = named
    return named.parts


def reply(node: Node, findings: Findings) -> tuple[AnyPart, ...]:
    """The parts of a reply; a single part needs no list."""
    if isinstance(node, Sequence) and node.items:
        return tuple([read for item in node.items for read in _parts(item, findings)])
    if isinstance(node, Sequence):
        findings.add(node, "must have at least one part")
    elif isinstance(node, Mapping) or isinstance(scalar(node), str):
        return _parts(node, findings)
    else:
        hint = "" if is_null(node) else "; put a text in quotes"
        findings.must_be(node, "a text, a part or a list of parts", hint)
    return (BROKEN,)
