"""What passed between a client and an MCP server, as a document of the server. Pure.

One document a server: its tools, and an entry for the calls of a tool with some arguments, with
its answers in their order. What the language cannot say is kept whole (`raw`).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from statistics import median_low
from typing import Any, NamedTuple

from mockllm.core.jsontext import compact, parse
from mockllm.play.mcp.replies import listed_tool, result
from mockllm.play.mcp.rpc import INTERNAL_ERROR, PROGRESS, mapping
from mockllm.scenario.ignoring import normal_value
from mockllm.scenario.mcp_model import (
    McpAnswer,
    McpAsk,
    McpEntry,
    McpMatch,
    McpServer,
    McpTool,
    McpTry,
    RpcError,
)
from mockllm.scenario.model import Ignored
from mockllm.scenario.part_model import MediaSource
from mockllm.scenario.schema_validation import schema_flaws, violations
from mockllm.wire.framing import sse


class RecordedCall(NamedTuple):
    """A request to a server, and what came of it, as messages of JSON-RPC.

    Args:
        request: has nothing for what a server said aside.
        answer: has nothing where an HTTP error came in its place.
        before: the messages of the server that came before it.
        after: when it came, in microseconds after the request.
        resumed: whether the client got it from a resumed stream.
        hidden: the paths of arguments in which redaction hid something.
    """

    request: Mapping[str, Any]
    answer: Mapping[str, Any]
    before: Sequence[Mapping[str, Any]] = ()
    status: int = 200
    after: int = 0
    resumed: bool = False
    hidden: Ignored = ()

    @property
    def method(self) -> str:
        """The method of the request; "" of none."""
        return _text(self.request.get("method"))

    @property
    def asked(self) -> str:
        """The request as people read it."""
        return " ".join(filter(None, (self.method, _text(self.params.get("name")))))

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the request."""
        return mapping(self.request.get("params"))

    @property
    def result(self) -> Mapping[str, Any]:
        """The result; an empty one of an error."""
        return mapping(self.answer.get("result"))

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of a call of a tool."""
        return mapping(self.params.get("arguments"))


def messages_in(data: bytes) -> Iterator[dict[str, Any]]:
    """The messages in the body of an answer: JSON, or events."""
    events = [frame.data for frame in sse.decode(data + b"\n\n") if frame.data]
    for text in events or (data,):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def recorded_call(
    request: Mapping[str, Any], messages: Iterable[Mapping[str, Any]]
) -> RecordedCall:
    """A request with its answer among messages, and those before it that concern it; the answer is
    empty where there is none."""
    before: list[Mapping[str, Any]] = []
    for message in messages:
        if "method" in message:  # a request of the server has an id of its own
            before.append(message)
        elif message.get("id") == request.get("id") and message.keys() & {"result", "error"}:
            return RecordedCall(request, message, tuple(before))
    return RecordedCall(request, {}, tuple(before))


_OF_REVISIONS = ("ttlMs", "cacheScope", "_meta")
"""Fields of results that a revision has, or that differ from run to run."""

_NOTED_AFTER = 100_000
"""Pauses that are shorter, in microseconds, are not written: they differ from run to run."""


def plain_result(stated: Mapping[str, Any]) -> dict[str, Any]:
    """A result without what any has, of one era or in one run."""
    plain = {key: value for key, value in stated.items() if key not in _OF_REVISIONS}
    for key, usual in (("resultType", "complete"), ("isError", False)):
        if plain.get(key) == usual and isinstance(plain[key], type(usual)):
            del plain[key]
    return plain


def listed_tools(calls: Iterable[RecordedCall]) -> Iterator[tuple[int, list[Any]]]:
    """The lists of tools, each with all its pages and the number of its first request."""
    pages: list[Any] = []
    first = -1
    for number, call in enumerate(calls):
        if call.method == "tools/list" and isinstance(call.result.get("tools"), list):
            if not call.params.get("cursor"):
                if first >= 0:
                    yield first, pages
                first, pages = number, []
            pages += call.result["tools"]
    if first >= 0:
        yield first, pages


def draft_server(name: str, calls: Sequence[RecordedCall], ignore: Ignored = ()) -> McpServer:
    """The document of a server.

    Args:
        ignore: what of arguments differs from run to run.
    """
    tools, changes = _draft_tools(calls)
    known = tools | {tool.name: tool for change in changes.values() for tool in change}
    is_listed, instructions = bool(known), ""
    answered: dict[tuple[str, str], list[int]] = {}
    for number, call in enumerate(calls):
        stated, tool = call.result.get("instructions"), _text(call.params.get("name"))
        if call.method in ("initialize", "server/discover") and isinstance(stated, str):
            instructions = stated
        # A tool that is not listed is one that the server does not have.
        if call.method == "tools/call" and (tool in known or (tool and not is_listed)):
            if not is_listed:
                tools[tool] = McpTool(tool)
            compared = normal_value((*ignore, *call.hidden), call.arguments)
            key = tool, json.dumps(compared, sort_keys=True)
            answered.setdefault(key, []).append(number)
    entries = []
    for (tool, _), numbers in answered.items():
        of_entry = [calls[number] for number in numbers]
        tries = [_try(calls[number], known.get(tool), changes.get(number)) for number in numbers]
        arguments = dict(of_entry[0].arguments)
        left_out = (*ignore, *dict.fromkeys(path for call in of_entry for path in call.hidden))
        match = McpMatch(arguments or None, exact=True, ignore=left_out if arguments else ())
        after = median_low([call.after for call in of_entry])
        ttft = round(after, -4) if after >= _NOTED_AFTER else 0
        entries.append(_with_tries(McpEntry(tool, name, match=match, ttft=ttft), tries))
    asked = [call for call in calls if call.method == "tools/list"]
    refused = list(map(_try, takewhile(is_http_error, asked)))
    if refused:  # before the first list
        later = [McpTry(answer=McpAnswer())] if len(refused) < len(asked) else []
        entry = _with_tries(McpEntry(server=name, at="list"), [*refused, *later])
        entries.append(replace(entry, answers=()))
    return McpServer(name, tuple(tools.values()), instructions, calls=tuple(entries))


def _draft_tools(
    calls: Sequence[RecordedCall],
) -> tuple[dict[str, McpTool], dict[int, tuple[McpTool, ...]]]:
    """The tools, and those of later lists by the number of the call whose answer changes them: the
    last one before, as clients list anew when a server tells them to."""
    tools: dict[str, McpTool] = {}
    changes: dict[int, tuple[McpTool, ...]] = {}
    latest, since = tools, 0
    for number, listed in listed_tools(calls):
        drafted = {tool.name: tool for tool in map(_tool, listed)}
        called = [
            at
            for at in range(since, number)
            if calls[at].method == "tools/call" and not is_http_error(calls[at])
        ]
        if latest and called and drafted != latest:
            changes[called[-1]] = tuple(drafted.values())
        elif not changes:
            tools = drafted
        latest, since = drafted, number
    return tools, changes


def is_http_error(call: RecordedCall) -> bool:
    """Whether a request got an HTTP error."""
    return call.status >= 400


def _try(
    call: RecordedCall, tool: McpTool | None = None, change: tuple[McpTool, ...] | None = None
) -> McpTry:
    if is_http_error(call):
        return McpTry(http=call.status)
    answer = _fitting(draft_answer(call.answer), tool)
    progress = _progress(call)
    return McpTry(answer=replace(answer, progress=progress, resumed=call.resumed, tools=change))


def _with_tries(entry: McpEntry, tries: Sequence[McpTry]) -> McpEntry:
    """The entry with all tries up to the last HTTP error, and the answers that come later."""
    last = max((at for at, one in enumerate(tries, 1) if one.http is not None), default=0)
    attempts, answers = tries[:last], [one.answer for one in tries[last:] if one.answer is not None]
    http = None
    if not answers:  # it never got better
        *attempts, final = attempts
        http = final.http
    while len(answers) > 1 and answers[-1] == answers[-2]:  # the last one repeats
        answers.pop()
    return replace(entry, attempts=tuple(attempts), answers=tuple(answers), http=http)


def _tool(written: Any) -> McpTool:
    """A tool of a list; what the document has no key for, or would not load, is as it is."""
    tool = mapping(written)
    schema = _schema(tool.get("inputSchema"))
    drafted = McpTool(
        name=_text(tool.get("name")),
        description=_text(tool.get("description")),
        parameters=None if schema == {"type": "object"} else schema,
        title=_text(tool.get("title")),
        output=_schema(tool.get("outputSchema")),
        annotations=mapping(tool.get("annotations")) or None,
    )
    shown = listed_tool(drafted)
    others = {k: value for k, value in tool.items() if k not in shown or shown[k] != value}
    return replace(drafted, fields=others or None)


def _schema(value: Any) -> Any:
    """A schema that a document may have; None for any other."""
    is_sound = isinstance(value, dict) and next(iter(schema_flaws(value)), None) is None
    return value if is_sound else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _progress(call: RecordedCall) -> tuple[Any, ...]:
    """The progress before an answer: texts where a document counts as the server did."""
    token = mapping(call.params.get("_meta")).get("progressToken")
    sent = [mapping(one.get("params")) for one in call.before if one.get("method") == PROGRESS]
    told = [one for one in sent if one.get("progressToken") == token]
    said = [{key: one[key] for key in one if key not in ("progressToken", "_meta")} for one in told]
    texts = [_text(one.get("message")) for one in said]
    counted = [
        {"progress": number, "total": len(said), "message": text}
        for number, text in enumerate(texts, 1)
    ]
    is_counted = said == counted and all(text and text.splitlines() == [text] for text in texts)
    return tuple(texts if is_counted else said)


def draft_answer(message: Mapping[str, Any]) -> McpAnswer:
    """The answer in a message; whole, where its parts would not make the same result."""
    error = mapping(message.get("error"))
    if error:
        code = error.get("code")
        number = code if isinstance(code, int) and abs(code) <= 2**53 else INTERNAL_ERROR
        return McpAnswer(rpc_error=RpcError(number, _text(error.get("message")), error.get("data")))
    stated = mapping(message.get("result"))
    if stated.get("resultType") == "input_required" and "inputRequests" not in stated:
        return McpAnswer(ask=McpAsk(_text(stated.get("requestState"))))
    plain = plain_result(stated)
    answer = _of_parts(plain) or McpAnswer()
    is_same = answer != McpAnswer() and result(answer) == plain
    return answer if is_same else McpAnswer(raw=plain)


def _of_parts(stated: Mapping[str, Any]) -> McpAnswer | None:
    """The answer with the parts of a result; None where it has others."""
    texts: list[str] = []
    others: dict[str, Any] = {}
    for block in map(mapping, stated.get("content") or ()):
        match block.get("type"):
            case "text":
                texts.append(_text(block.get("text")))
            case "image" | "audio" as kind:
                media_type = _text(block.get("mimeType"))
                if not re.fullmatch(rf"{kind}/[^\r\n]+", media_type):
                    return None
                try:
                    data = base64.b64decode(_text(block.get("data")), validate=True)
                except ValueError:
                    return None
                others[kind] = MediaSource(data, media_type)
            case "resource":
                others["resource"] = block.get("resource")
            case "resource_link":
                others["link"] = {key: value for key, value in block.items() if key != "type"}
            case _:
                return None
    json = stated.get("structuredContent")
    if stated.get("isError") is True:
        return None if others or json or len(texts) != 1 else McpAnswer(error=texts[0])
    if json is not None and len(texts) == 1 and _is_json(texts[0], json):
        texts = [] if texts[0] == compact(json) else texts
    return McpAnswer(text=tuple(texts), json=json, **others)


def _is_json(text: str, value: object) -> bool:
    try:
        return bool(parse(text) == value)
    except ValueError:
        return False


def _fitting(answer: McpAnswer, tool: McpTool | None) -> McpAnswer:
    """The answer as a scenario may have it: one that breaks the schema of its tool stands whole."""
    if (
        tool is None
        or tool.output is None
        or any((answer.error, answer.rpc_error, answer.ask, answer.raw))
    ):
        return answer
    if answer.json is None or any(True for _ in violations(tool.output, answer.json)):
        return McpAnswer(raw=result(answer))
    return answer
