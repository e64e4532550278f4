"""Chat Completions: the exact bytes of streams and bodies."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from openai.types.chat import ChatCompletionChunk

from mockllm.core.events import Cite, Frame, StreamError
from mockllm.core.timeline import normal
from mockllm.core.turn import Opaque, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from tests.cases import for_all
from tests.wire.protocols.streams import played, read, untimed
from tests.wire.protocols.strict import problems
from tests.wire.protocols.test_openai_chat_laws import USAGE, frames, reply

USAGE_JSON = (
    '{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,'
    '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},'
    '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,'
    '"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}'
)


def envelope() -> str:
    """The beginning of all chunks of `reply`."""
    r = reply()
    chunk = frames(Turn((), "stop"), r)[0].data
    assert chunk is not None
    value = json.loads(chunk)
    assert value["id"] == PROTOCOL.answer_id(r)
    assert value["created"] == r.created
    head, _, _ = chunk.partition(',"choices"')
    assert list(json.loads(head + "}")) == [
        "id",
        "object",
        "created",
        "model",
        "service_tier",
        "system_fingerprint",
    ]
    return head


def data(turn: Turn, **options: Any) -> list[str | None]:
    """The `data` of all frames, the envelope written `{E`."""
    start = envelope()
    return [
        None if frame.data is None else frame.data.replace(start, "{E")
        for frame in frames(turn, reply(**options))
    ]


def choice(delta: str, finish: str = "null", index: int = 0, logprobs: str = "null") -> str:
    return (
        f'{{E,"choices":[{{"index":{index},"delta":{delta},'
        f'"logprobs":{logprobs},"finish_reason":{finish}}}]}}'
    )


TEXT_OPENING = '{"role":"assistant","content":"","refusal":null}'
CALL = ToolCall("get_time", "call_q", ('{"z', 'one":"UTC"}'))
OTHER = ToolCall("get_day", "call_r", ('{"era":1}',))


def opened(index: int, id: str, name: str) -> str:
    return (
        f'"tool_calls":[{{"index":{index},"id":"{id}","type":"function",'
        f'"function":{{"name":"{name}","arguments":""}}}}]'
    )


def argued(index: int, text: str) -> str:
    return f'{{"tool_calls":[{{"index":{index},"function":{{"arguments":{json.dumps(text)}}}}}]}}'


LONE = '{"role":"assistant","content":null,' + opened(0, "call_q", "get_time") + ',"refusal":null}'

STREAMS = {
    "text": (
        Turn((Text(("Bon", "jour")),), "stop"),
        [
            choice(TEXT_OPENING),
            choice('{"content":"Bon"}'),
            choice('{"content":"jour"}'),
            choice("{}", '"stop"'),
            "[DONE]",
        ],
    ),
    "one call": (
        Turn((CALL,), "tool_calls"),
        [
            choice(LONE),
            choice(argued(0, '{"z')),
            choice(argued(0, 'one":"UTC"}')),
            choice("{}", '"tool_calls"'),
            "[DONE]",
        ],
    ),
    "zero-argument call": (
        Turn((replace(CALL, fragments=()),), "tool_calls"),
        [
            choice(LONE),
            choice(argued(0, "{}")),
            choice("{}", '"tool_calls"'),
            "[DONE]",
        ],
    ),
    "two calls": (
        Turn((CALL, OTHER), "tool_calls", order=(0, 1, 0, 1, 0)),
        [
            choice('{"role":"assistant","content":null}'),
            choice("{" + opened(0, "call_q", "get_time") + "}"),
            choice("{" + opened(1, "call_r", "get_day") + "}"),
            choice(argued(0, '{"z')),
            choice(argued(1, '{"era":1}')),
            choice(argued(0, 'one":"UTC"}')),
            choice("{}", '"tool_calls"'),
            "[DONE]",
        ],
    ),
    "text and a call": (
        Turn((Text(("Wait",)), OTHER), "tool_calls"),
        [
            choice(TEXT_OPENING),
            choice('{"content":"Wait"}'),
            choice("{" + opened(0, "call_r", "get_day") + "}"),
            choice(argued(0, '{"era":1}')),
            choice("{}", '"tool_calls"'),
            "[DONE]",
        ],
    ),
    "refusal": (
        Turn((Refusal(("No", ".")),), "refusal"),
        [
            choice('{"role":"assistant","content":null,"refusal":""}'),
            choice('{"refusal":"No"}'),
            choice('{"refusal":"."}'),
            choice("{}", '"stop"'),
            "[DONE]",
        ],
    ),
    "reasoning": (
        Turn((Reasoning(("Hm",)), Text(("Yes",))), "stop"),
        [
            choice('{"role":"assistant","content":null,"reasoning_content":""}'),
            choice('{"content":null,"reasoning_content":"Hm"}'),
            choice('{"content":"Yes"}'),
            choice("{}", '"stop"'),
            "[DONE]",
        ],
    ),
    "length inside arguments": (
        Turn((replace(CALL, fragments=('{"z',)),), "length"),
        [choice(LONE), choice(argued(0, '{"z')), choice("{}", '"length"'), "[DONE]"],
    ),
    "content filter": (
        Turn((Text(("Once",)),), "content_filter"),
        [
            choice(TEXT_OPENING),
            choice('{"content":"Once"}'),
            choice("{}", '"content_filter"'),
            "[DONE]",
        ],
    ),
    "nothing": (
        Turn((), "stop"),
        [choice(TEXT_OPENING), choice("{}", '"stop"'), "[DONE]"],
    ),
    "error": (
        Turn((Text(("Par",)),), error=StreamError("It broke", code="oops")),
        [
            choice(TEXT_OPENING),
            choice('{"content":"Par"}'),
            '{"error":{"message":"It broke","type":"server_error","param":null,"code":"oops"}}',
        ],
    ),
    "cut": (
        Turn((Text(("Par",)),)),
        [choice(TEXT_OPENING), choice('{"content":"Par"}')],
    ),
    "frames of this API and of another": (
        Turn(
            (
                Opaque("chat", Frame(comment="busy")),
                Opaque("gemini", Frame("{}")),
                Text(("a",)),
                Opaque("chat", Frame('{"x":1}')),
            ),
            "stop",
        ),
        [
            choice(TEXT_OPENING),
            None,
            choice('{"content":"a"}'),
            '{"x":1}',
            choice("{}", '"stop"'),
            "[DONE]",
        ],
    ),
    "citation": (
        Turn((Text(("ab",)), Text(("cd",), (Cite(0, "https://e.org", "E", "cd!"),))), "stop"),
        [
            choice(TEXT_OPENING),
            choice('{"content":"ab"}'),
            choice('{"content":"cd"}'),
            choice(
                '{"annotations":[{"type":"url_citation","url_citation":{"start_index":0,'
                '"end_index":4,"title":"E","url":"https://e.org","content":"cd!"}}]}'
            ),
            choice("{}", '"stop"'),
            "[DONE]",
        ],
    ),
}


@for_all("name", STREAMS)
def test_stream_has_exactly_the_bytes_of_the_service(name: str) -> None:
    """Each kind of answer is streamed as by the service, key by key."""
    turn, expected = STREAMS[name]
    assert data(turn) == expected


@for_all("name", STREAMS)
def test_samples_survive(name: str) -> None:
    """A sample stream decodes to the projection of its turn."""
    turn, _ = STREAMS[name]
    assert read(PROTOCOL, played(PROTOCOL, turn, reply(stream_usage=True))) == normal(
        PROTOCOL.project(turn)
    )


def test_logprobs_travel_with_each_fragment_of_text() -> None:
    """A text with log probabilities has an empty list first and a token for each fragment."""
    got = data(Turn((Text(("Hé",), logprobs=True),), "stop"))
    logprobs = '{"content":[],"refusal":null}'
    assert got[0] == choice(TEXT_OPENING, logprobs=logprobs)
    value = json.loads(str(got[1]).replace("{E", envelope()))["choices"][0]["logprobs"]
    (token,) = value["content"]
    assert list(token) == ["token", "logprob", "bytes", "top_logprobs"]
    assert (token["token"], token["bytes"]) == ("Hé", [72, 195, 169])
    assert token["logprob"] <= 0


def test_usage_is_null_on_all_chunks_but_the_last() -> None:
    """With include_usage a further last chunk without choices has the usage; it is null on the
    others."""
    turn = Turn((Text(("a",)),), "stop", USAGE)
    got = data(turn, stream_usage=True)
    assert got[0] == choice(TEXT_OPENING)[:-1] + ',"usage":null}'
    assert got[-2] == '{E,"choices":[],"usage":' + USAGE_JSON + "}"
    assert got[-1] == "[DONE]"
    assert not any("usage" in str(item) for item in data(turn))


def test_every_choice_is_equal() -> None:
    """With n, each event is sent once for each choice, in order, and usage once."""
    turn = Turn((Text(("a",)),), "stop", USAGE)
    got = data(turn, n=2, stream_usage=False)
    assert got == [
        *(choice(TEXT_OPENING, index=i) for i in range(2)),
        *(choice('{"content":"a"}', index=i) for i in range(2)),
        *(choice("{}", '"stop"', index=i) for i in range(2)),
        "[DONE]",
    ]
    assert read(PROTOCOL, untimed(frames(turn, reply(n=3, stream_usage=True)))) == turn
    assert len(PROTOCOL.encode_body(turn, reply(n=3))["choices"]) == 3


def test_obfuscation_is_the_last_key_and_reproducible() -> None:
    """Padding is at the end of each chunk, whose other fields it fills up to a multiple of 16, as
    in all 405 chunks of OpenAI in the corpus."""
    turn = Turn((Text(("a", "b")),), "stop", USAGE)
    got = [json.loads(str(f.data)) for f in frames(turn, reply(obfuscation=True))[:-1]]
    assert all(list(chunk)[-1] == "obfuscation" for chunk in got)
    assert len({chunk["obfuscation"] for chunk in got}) > 1
    lengths = [len(str(frame.data)) for frame in frames(turn, reply(obfuscation=True))[:-1]]
    assert {(length - len(',"obfuscation":""')) % 16 for length in lengths} == {0}
    assert frames(turn, reply(obfuscation=True)) == frames(turn, reply(obfuscation=True))


def test_forced_call_finishes_with_stop() -> None:
    """A call that the request forces by name ends with `stop`, streamed and not; others with
    `tool_calls`."""
    turn = Turn((CALL,), "tool_calls")
    assert data(turn, forced=True)[-2] == choice("{}", '"stop"')
    assert PROTOCOL.encode_body(turn, reply(forced=True))["choices"][0]["finish_reason"] == "stop"
    back = read(PROTOCOL, untimed(frames(turn, reply(forced=True))))
    assert (back.finish, back.finish_raw) == ("tool_calls", "stop")


def test_foreign_finish_reasons() -> None:
    """An unknown reason is sent verbatim; a reason of another protocol is translated."""
    turn = Turn((Text(("a",)),), "stop", finish_raw="eos")
    assert data(turn)[-2] == choice("{}", '"eos"')
    assert read(PROTOCOL, played(PROTOCOL, turn, reply(stream_usage=True))) == turn
    assert data(replace(turn, finish_raw="end_turn"))[-2] == choice("{}", '"stop"')
    assert data(replace(turn, finish="length", finish_raw="MAX_TOKENS"))[-2] == choice(
        "{}", '"length"'
    )


@for_all(
    "name", [name for name in STREAMS if name not in ("error", "frames of this API and of another")]
)
def test_sample_chunks_are_strictly_typed(name: str) -> None:
    """The samples pass the strict types as well."""
    for frame in frames(STREAMS[name][0], reply())[:-1]:
        assert problems(ChatCompletionChunk, json.loads(str(frame.data))) == []


def test_strictness_finds_unknown_and_missing_fields() -> None:
    """The strict validation reports an additional and a missing field."""
    chunk = json.loads(str(frames(Turn((), "stop"), reply())[0].data))
    assert problems(ChatCompletionChunk, {**chunk, "extra": 1})
    assert problems(ChatCompletionChunk, {k: v for k, v in chunk.items() if k != "id"})
    chunk["choices"][0]["delta"]["thinking"] = "x"
    assert problems(ChatCompletionChunk, chunk) == [
        "choices.0.delta.thinking: ChoiceDelta has no such field"
    ]
