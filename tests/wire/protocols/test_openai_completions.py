"""The legacy Completions: prompts, choices, refusals, and streams of other servers."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.errors import RequestError, WireError
from mockllm.core.events import Frame, StreamError, TextDelta
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.request import Message
from mockllm.core.turn import Opaque, Refusal, Text, TokenUsage, ToolCall, Turn
from mockllm.play.replay.client_requests import first_body
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.openai_completions.request import Options
from tests.cases import for_all

API = PROTOCOLS["completions"]
TEXT = Turn((Text(("Hel", "lo")),), "stop", TokenUsage(5, 7, cached=2))


def parse(prompt: Any, **fields: Any) -> Any:
    return API.parse({"model": "m", "prompt": prompt, **fields}, NO_TARGET, True)


def body_of(turn: Turn, **options: Any) -> Any:
    return API.encode_body(turn, Reply("seed", "0" * 40, "m", Options(**options)))


@for_all(
    ("prompt", "messages"),
    [
        ("Hello", [("user", "Hello")]),
        ([5, 6], [("user", "5 6")]),
        (["one", [7]], [("user", "one"), ("user", "7")]),
        ("Human is a word", [("user", "Human is a word")]),
        (
            "System: Be brief. \nHuman: Hi\nthere\nAI: Yes?\nHuman: Go\nAI:",
            [("system", "Be brief."), ("user", "Hi\nthere"), ("assistant", "Yes?"), ("user", "Go")],
        ),
        ("User: Hi\nAssistant: \nUser: Go", [("user", "Hi"), ("assistant", ""), ("user", "Go")]),
    ],
)
def test_messages_of_prompts(prompt: Any, messages: list[tuple[Any, str]]) -> None:
    """A prompt is a message of the user, a transcript a conversation."""
    assert parse(prompt).messages == tuple(Message(role, text) for role, text in messages)


def test_a_conversation_is_written_as_it_is_read() -> None:
    """The next request of a client has the answer and the user's next text."""
    body = API.client.next_message(first_body(API, "m", "Hi"), "", "Yes?", "Go")
    body = API.client.continuation(body, "", (ToolCall("f", "1"),), ("41",))
    assert [(m.role, m.text) for m in parse(body["prompt"]).messages] == [
        ("user", "Hi"),
        ("assistant", "Yes?"),
        ("user", "Go"),
        ("assistant", ""),
        ("user", "41"),
    ]


def test_the_deployment_of_azure_is_the_model() -> None:
    assert API.parse({"prompt": "x"}, Target({"deployment": "d"}), True).model == "d"


@for_all(
    ("fields", "message"),
    [
        ({"prompt": None}, "Missing required parameter: 'prompt'."),
        ({"prompt": 5}, "Invalid type for 'prompt': expected a string or an array of strings"),
        ({"prompt": []}, "Invalid 'prompt': empty array"),
        ({"prompt": ["a", True]}, "Invalid type for 'prompt[1]'"),
        ({"logprobs": True}, "Invalid type for 'logprobs': expected an integer"),
        ({"n": 0}, "integer below minimum value"),
        ({"n": 3, "best_of": 2}, "best_of must be greater"),
        ({"suffix": 1}, "Invalid type for 'suffix'"),
        ({"model": 5}, "Invalid type for 'model'"),
    ],
)
def test_refused(fields: dict[str, Any], message: str) -> None:
    """Refusals name the field."""
    with pytest.raises(RequestError) as caught:
        API.parse({"model": "m", "prompt": "x", **fields}, NO_TARGET, True)
    assert message in caught.value.message
    # Without validation any body has options.
    request = API.parse({"model": "m", "prompt": "x", **fields}, NO_TARGET, False)
    assert 1 <= len(API.options(request).heads) <= 128


@pytest.mark.parametrize("strict", [True, False])
def test_an_answer_has_a_bound(strict: bool) -> None:
    """Many choices, and long prompts that many choices repeat, are refused in any case."""
    for fields, message in (
        ({"prompt": ["a"] * 65, "n": 2}, "more than 128 choices"),
        ({"prompt": "a" * 40_000, "n": 128, "echo": True}, "more than 4,000,000 characters"),
    ):
        with pytest.raises(RequestError, match=message):
            API.parse({"model": "m", **fields}, NO_TARGET, strict)


def test_choices_and_their_heads() -> None:
    """There are `n` choices for each prompt; with `echo` each begins with its own."""
    options: Any = API.options(parse(["a", [1, 2]], n=2, echo=True))
    assert options.heads == ("a", "a", "1 2", "1 2")
    assert API.options(parse(["a", "b"], n=2)).heads == ("",) * 4
    texts = [choice["text"] for choice in body_of(TEXT, heads=("Say ", ""))["choices"]]
    assert texts == ["Say Hello", "Hello"]


def test_a_recorded_echo_is_not_repeated() -> None:
    """A text that begins with the prompt was recorded with `echo`."""
    echoed = Turn((Text(("Say ", "Hello")),), "stop")
    assert body_of(echoed, heads=("Say ",))["choices"][0]["text"] == "Say Hello"


def test_refusals_are_texts_and_calls_are_lost() -> None:
    turn = Turn((Refusal(("No.",)), ToolCall("f", "1")), "tool_calls")
    assert API.project(turn) == Turn((Text(("No.",)),), "stop")


def frames(*chunks: Any) -> list[Frame]:
    return [Frame(chunk if isinstance(chunk, str) else dumps(chunk)) for chunk in chunks]


def chunk(text: Any = "", index: int = 0, finish: str | None = None, **fields: Any) -> Any:
    choice = {"text": text, "index": index, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-1", "object": "text_completion", "choices": [choice], **fields}


def read(*chunks: Any) -> Turn:
    return decode_turn(API, frames(*chunks))[0]


def test_streams_of_other_servers() -> None:
    """Usage in any chunk, text with the finish reason, no text, unknown finish reasons."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    assert read(chunk("a", usage=usage), chunk("b", finish="length")) == Turn(
        (Text(("a", "b")),), "length", TokenUsage(1, 2)
    )
    assert read(chunk("a"), chunk(None, finish="abort")) == Turn(
        (Text(("a",)),), "stop", finish_raw="abort"
    )


def test_other_choices_and_what_follows_the_end_are_kept() -> None:
    """A choice that repeats the first one is read once; all else is a frame of its own."""
    other, more = chunk("c", 1), chunk("d")
    turn = read(chunk("a"), chunk("a", 1), other, chunk(finish="stop"), "[DONE]", more)
    assert turn.text == "a"
    kept = [part.frame.data for part in turn.parts if isinstance(part, Opaque)]
    assert kept == [dumps(other), dumps(more)]


@pytest.mark.parametrize(
    "frame",
    [
        Frame('{"error":{"message":"gone","type":"server_error","code":null}}'),
        Frame('{"message":"gone","type":"server_error"}', event="error"),
        Frame('{"object":"error","message":"gone","type":"server_error"}'),
    ],
)
def test_errors_in_the_stream(frame: Frame) -> None:
    """They end the answer."""
    turn = decode_turn(API, [*frames(chunk("a")), frame])[0]
    assert (turn.text, turn.error) == ("a", StreamError("gone", "server_error"))


def test_bodies() -> None:
    """The first choice counts; an error is an error; another body is none of this API."""
    body = body_of(TEXT, heads=("", ""))
    assert API.decode_body(body) == TEXT.whole()
    assert API.decode_body(body_of(Turn(error=StreamError("no")))).error == StreamError(
        "no", "server_error"
    )
    with pytest.raises(WireError, match="of a completion, got null"):
        API.decode_body({"choices": [{"message": {"content": "x"}}]})


def test_log_probabilities_of_a_scenario_are_sent_unasked() -> None:
    """A turn with log probabilities has one for each position, whatever the request says."""
    turn = Turn((Text(("Hel", "lo"), logprobs=True),), "stop")
    found = body_of(turn)["choices"][0]["logprobs"]
    assert (found["tokens"], found["text_offset"]) == (["Hel", "lo"], [0, 3])
    assert [list(position) for position in found["top_logprobs"]] == [["Hel"], ["lo"]]
    assert body_of(turn, logprobs=0)["choices"][0]["logprobs"]["top_logprobs"] is None
    decoder = API.decoder()
    (_, delta) = decoder.decode(
        Frame(dumps(chunk("Hel") | {"choices": [{"text": "Hel", "logprobs": found}]}))
    )
    assert delta == TextDelta(0, "Hel", True)
