"""Requests of Ollama: results without ids, refusals in the words of the service, durations."""

from __future__ import annotations

import json

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.timeline import expand
from mockllm.core.turn import Text, TokenUsage, Turn
from mockllm.record.importers import sse_dump
from mockllm.record.importers.file_formats import detect
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.ollama.encoder import Encoder
from mockllm.wire.protocols.ollama.objects import Options

OLLAMA = PROTOCOLS["ollama"]
CHAT, GENERATE = Target({"action": "chat"}), Target({"action": "generate"})


def call(name, **more):
    return {**more, "function": {"name": name, "arguments": {}}}


def test_results_are_matched_by_name_and_order():
    """A result without an id gets that of the first call of its tool that waits; without a name
    that of the first call of all."""
    calls = [call("a", id="1"), call("b", id="2"), call("a", id="3")]
    results = [{"role": "tool", "tool_name": name, "content": name} for name in ("b", "a")]
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *results,
        {"role": "tool", "content": "last"},
    ]
    request = OLLAMA.parse({"model": "m", "messages": messages}, CHAT, True)
    found = [(each.call_id, each.name) for each in request.messages[2:]]
    assert found == [("2", "b"), ("1", "a"), ("3", "a")]


def test_a_result_with_the_id_of_a_call_is_its_result():
    """Whatever name it has; a call without an id takes the result of its name."""
    calls = [call("a", id="1"), call("b")]
    results = [("1", "other"), ("9", "b")]
    messages = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": id, "tool_name": name} for id, name in results),
    ]
    request = OLLAMA.parse({"model": "m", "messages": messages}, CHAT, False)
    found = [(each.call_id, each.name) for each in request.messages[1:]]
    assert found == [("1", "other"), ("", "b")]


def test_streams_by_default():
    """Only `"stream": false` is no stream."""
    body = {"model": "m", "prompt": "Hi", "system": "Be brief.", "format": "json"}
    request = OLLAMA.parse(body, GENERATE, True)
    assert (request.stream, request.system, request.output_schema) == (True, "Be brief.", {})
    assert not OLLAMA.parse({**body, "stream": False}, GENERATE, True).stream


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": None}, "model is required"),
        ({"messages": "Hi"}, "string into Go struct field ChatRequest.messages of type []api.Mess"),
        ({"messages": [{"images": ["?"]}]}, "illegal base64 data"),
        ({"messages": [{"tool_calls": [{"function": {"arguments": "{}"}}]}]}, "function.arguments"),
        ({"think": "much"}, "invalid think value"),
        ({"format": "xml"}, "invalid format"),
        ({"options": {"seed": "1"}}, 'option "seed" must be of type integer'),
        ({"keep_alive": True}, "keep_alive"),
    ],
)
def test_refusals(fields, message):
    """What the service refuses has status 400 and its words."""
    with pytest.raises(RequestError) as raised:
        OLLAMA.parse({"model": "m", **fields}, CHAT, True)
    assert raised.value.status == 400
    assert message in raised.value.message


def test_durations_are_those_of_the_timing():
    """In nanoseconds: the first pause is loading and reading, the rest the answer."""
    turn = Turn((Text(("a", "b")),), "stop", TokenUsage(3, 2), gaps=(4000, 1000, 500))
    encoder = Encoder(turn, Reply("seed", "0" * 40, "m", Options()))
    frames = [frame for item in expand(turn) for frame in encoder.encode(item.event)]
    end = json.loads(frames[-1].data or "")
    durations = {name: value for name, value in end.items() if name.endswith("_duration")}
    assert durations == {
        "total_duration": 5_500_000,
        "load_duration": 2_000_000,
        "prompt_eval_duration": 2_000_000,
        "eval_duration": 1_500_000,
    }


def test_a_dump_of_json_lines_is_a_stream(tmp_path):
    """Its first lines are objects, so it is neither one body nor a file of fixtures."""
    path = tmp_path / "answer.ndjson"
    head = '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"content":'
    path.write_text(f'{head}"a"}},"done":false}}\n{head}""}},"done":true}}\n')
    assert detect(ForeignFile(path)) == "sse"
    (entry,) = sse_dump.read(ForeignFile(path))
    assert entry.header("content-type") == "application/x-ndjson"
    assert entry.url == "http://127.0.0.1:11434/api/chat"
