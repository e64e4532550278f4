"""Reads requests of the Echo API, and refuses what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.wire.protocols.values import mapping, string
from tests.sixth_protocol.echo.acts import API


@dataclass(frozen=True, slots=True)
class Options:
    """What of a request the answer repeats: the name of the scene."""

    scene: str | None = None


def options(request: Request) -> Options:
    """The options of a request."""
    return Options(string(request.body.get("scene")) or None)


def guard(headers: Mapping[str, str], target: Target) -> None:
    """Refuses a request without a key."""
    if not headers.get("x-echo-key"):
        raise RequestError("Who is calling? Send x-echo-key.", status=401, type="stranger")


def parse(body: Mapping[str, Any], target: Target, strict: bool) -> Request:
    """The neutral request.

    Raises:
        RequestError: `strict`, and the speaker or the dialogue makes no sense.
    """
    if strict:
        _check(body)
    schema = body.get("shape")
    system = string(body.get("stage"))
    return Request(
        api=API,
        model=string(body.get("speaker")),
        body=body,
        stream=body.get("live") is True,
        messages=(*([Message("system", system)] if system else []), *_messages(body)),
        system=system,
        tools=tuple(_tools(body)),
        tool_choice=_choice(body.get("pick")),
        output_schema=schema if isinstance(schema, dict) else None,
        wants_reasoning=body.get("muse") is True,
    )


_ROLES = {"human": "user", "machine": "assistant", "gadget": "tool"}


def _messages(body: Mapping[str, Any]) -> Iterator[Message]:
    for entry in _listed(body.get("dialogue")):
        line = string(entry.get("line"))
        match entry.get("who"):
            case "human":
                yield Message("user", line)
            case "machine":
                yield Message("assistant", line, tuple(_calls(entry)))
            case "gadget":
                broken = entry.get("broken") is True
                yield Message("tool", line, call_id=string(entry.get("cue")), error=broken)


def _calls(entry: Mapping[str, Any]) -> Iterator[CallEcho]:
    for cue in _listed(entry.get("cues")):
        name, settings = string(cue.get("gadget")), string(cue.get("settings"))
        yield CallEcho(string(cue.get("cue")), name, settings)


def _tools(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    for gadget in _listed(body.get("gadgets")):
        about = string(gadget.get("about"))
        yield OfferedTool(string(gadget.get("title")), about, mapping(gadget.get("settings")))


def _choice(pick: object) -> str:
    if isinstance(pick, Mapping):
        return string(pick.get("gadget")) or "auto"
    return {"none": "none", "must": "required"}.get(string(pick), "auto")


def _listed(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _check(body: Mapping[str, Any]) -> None:
    if not isinstance(body.get("speaker"), str):
        raise RequestError("No one speaks: `speaker` must be a string.", param="speaker")
    dialogue = body.get("dialogue")
    if not isinstance(dialogue, list) or not dialogue:
        raise RequestError("Nothing to answer: `dialogue` must be a list.", param="dialogue")
    cues: set[str] = set()
    for number, entry in enumerate(dialogue):
        where = f"dialogue[{number}]"
        if not isinstance(entry, dict) or string(entry.get("who")) not in _ROLES:
            raise RequestError(f"{where}.who must be human, machine or gadget.", param=where)
        cues |= {string(cue.get("cue")) for cue in _listed(entry.get("cues"))}
        if entry["who"] == "gadget" and string(entry.get("cue")) not in cues:
            raise RequestError(f"{where} answers no cue.", param=f"{where}.cue")
