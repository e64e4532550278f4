"""Google Gemini: recorded streams, decoded by us and by the official client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import types

from mockllm.core.events import Finish, Raw, Start, Usage
from mockllm.core.turn import Opaque, ServerTool, Text, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.gemini.fields import Options
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from tests.cases import for_all
from tests.corpus import needs_corpus, recorded_streams
from tests.wire.protocols.streams import encoded
from tests.wire.protocols.test_gemini_decoder import of_frames

pytestmark = pytest.mark.slow

STREAMS = recorded_streams("gemini")

Json = dict[str, Any]


def official(data: bytes) -> list[types.GenerateContentResponse]:
    """The official client's result for a stream."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=data, headers={"content-type": "text/event-stream"})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        client = genai.Client(api_key="k", http_options=types.HttpOptions(httpx_client=http))
        return list(client.models.generate_content_stream(model="gemini-2.5-flash", contents="x"))


def added_up(responses: list[types.GenerateContentResponse]) -> Json:
    """Text, calls, finish and usage that the official client shows."""
    parts: list[types.Part] = []
    finish = usage = None
    for response in responses:
        usage = response.usage_metadata or usage
        for candidate in (response.candidates or [])[:1]:
            parts += (candidate.content and candidate.content.parts) or []
            finish = candidate.finish_reason or finish
    calls = [part.function_call for part in parts if part.function_call]
    return {
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thoughts": "".join(part.text or "" for part in parts if part.thought),
        "calls": [(c.name or "", c.id or "", c.args or {}) for c in calls],
        "finish": finish.value if finish else None,
        "tokens": usage.total_token_count if usage else None,
    }


def summary(turn: Turn) -> Json:
    """The same fields of a turn."""
    reasons = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", None: None}
    return {
        "text": turn.text,
        "thoughts": turn.reasoning,
        "calls": [(c.name, c.id, c.parse_arguments()) for c in turn.tool_calls],
        "finish": turn.finish_raw or reasons[turn.finish],
        "tokens": turn.usage.input + turn.usage.output if turn.usage else None,
    }


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_the_official_client_reads_the_same(path: Path) -> None:
    """Text, calls, finish and tokens of a recorded stream equal the official client's."""
    data = path.read_bytes()
    assert summary(of_frames(sse.decode(data))) == added_up(official(data))


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_stream_loses_nothing(path: Path) -> None:
    """Every field of a recorded stream is in the neutral turn or in a kept frame."""
    data = path.read_bytes()
    kept = [p.frame.data or "" for p in of_frames(sse.decode(data)).parts if isinstance(p, Opaque)]
    whole = " ".join(json.dumps(json.loads(text), sort_keys=True) for text in kept)
    for frame in sse.decode(data):
        for candidate in json.loads(frame.data or "")["candidates"]:
            for part in candidate.get("content", {}).get("parts", []):
                if not {"text", "functionCall", "executableCode"} & part.keys():
                    assert json.dumps(part, sort_keys=True) in whole
            if candidate.get("logprobsResult"):
                assert json.dumps(candidate["logprobsResult"], sort_keys=True) in whole
            for name in ("urlContextMetadata", "citationMetadata"):
                if candidate.get(name):
                    part = {"type": name, **candidate[name]}
                    assert json.dumps(part, sort_keys=True) in whole
            grounding = candidate.get("groundingMetadata") or {}
            for name in ("webSearchQueries", "searchEntryPoint"):
                assert json.dumps(grounding.get(name, ""), sort_keys=True)[1:-1] in whole


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_tools_and_sources_are_neutral(path: Path) -> None:
    """Code that the service ran, and every source of its answer, is in the neutral turn."""
    data = path.read_bytes()
    turn = of_frames(sse.decode(data))
    tools = [json.loads(part.input) for part in turn.parts if isinstance(part, ServerTool)]
    cited = {cite.url for part in turn.parts if isinstance(part, Text) for cite in part.citations}
    for response in official(data):
        candidate = (response.candidates or [])[0]
        for part in (candidate.content and candidate.content.parts) or []:
            if part.executable_code:
                assert tools.pop(0)["code"] == part.executable_code.code
        grounding = candidate.grounding_metadata
        for chunk in (grounding and grounding.grounding_chunks) or []:
            assert (chunk.web.uri if chunk.web else "") in cited
    assert tools == []


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_stream_encodes_to_the_same_turn(path: Path) -> None:
    """A recorded turn, encoded anew, decodes to itself; the official client reads it too."""
    turn = of_frames(sse.decode(path.read_bytes()))
    settings = Reply("seed", "0" * 40, "gemini-2.5-flash", Options(ids=True))
    frames = encoded(PROTOCOL, turn, settings)
    assert of_frames(frames) == turn
    data = b"".join(sse.encode(frame, PROTOCOL.line_end) for frame in frames)
    assert added_up(official(data)) == summary(turn)


@needs_corpus
@for_all("path", STREAMS, ids=lambda path: path.parent.name)
def test_recorded_usage_and_start_come_once_each(path: Path) -> None:
    """A recorded stream has one start and one usage, before its finish."""
    decoder = PROTOCOL.decoder()
    got = [e for frame in sse.decode(path.read_bytes()) for e in decoder.decode(frame)]
    ends = [e for e in got if isinstance(e, (Start, Usage, Finish)) and not isinstance(e, Raw)]
    assert [type(e) for e in ends] == [Start, Usage, Finish]
    assert isinstance(got[0], Start)
    assert decoder.complete
