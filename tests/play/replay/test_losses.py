"""What a protocol cannot express is reported turn by turn, in one message for each difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mockllm.core.events import Cite, Frame, Passage
from mockllm.core.turn import (
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
)
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import loads
from mockllm.play.replay.losses import Loss, _differences, find_losses
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

TEXT = Text(("a", "b"), (Cite(0, "u"),), logprobs=True)
THOUGHT = Reasoning(("r",), "sig", summary=True)
CALLS = (ToolCall("f", "1", ("{", "}")), ToolCall("g", "2"))
FRAME = Opaque("chat", Frame("{}"))
TURN = Turn((THOUGHT, TEXT, *CALLS, FRAME), "tool_calls", TokenUsage(1, 2))


def with_parts(*parts: Part) -> Turn:
    return replace(TURN, parts=parts)


def differences(received: Turn, written: Turn = TURN, api: str = "chat") -> list[str]:
    return list(_differences(written, received, PROTOCOLS[api]))


def test_what_is_stated_of_the_service() -> None:
    """A tier, a fingerprint or choices that the API has no field for are lost."""
    turn = "{reply: {text: a}, service_tier: flex, fingerprint: fp_1}"
    lost = find_losses(loads(f"scenario: a\nturns: [{turn}]")[0], PROTOCOLS)
    assert {loss.api: loss.what for loss in lost} == {
        **dict.fromkeys(
            ("responses", "anthropic", "gemini", "interactions", "bedrock"),
            ("fingerprint is not sent",),
        ),
        **dict.fromkeys(
            ("agui", "ollama", "cohere", "realtime", "live"),
            ("service_tier is not sent", "fingerprint is not sent"),
        ),
        "completions": ("service_tier is not sent",),
    }
    turn = "{reply: {text: a}, choices: [{reply: {text: b}}]}"
    lost = find_losses(loads(f"scenario: a\nturns: [{turn}]")[0], PROTOCOLS)
    without = tuple(name for name, protocol in PROTOCOLS.items() if protocol.choices is None)
    assert len(without) == 9
    assert {loss.api: loss.what for loss in lost} == dict.fromkeys(
        without, ("choices are not sent",)
    )


def test_the_same_turn_has_no_losses() -> None:
    """Nor has a turn whose order and pauses differ."""
    assert differences(TURN) == []
    other = replace(TURN, order=(1, 0, 1, 2, 2, 2, 3, 4), gaps=(1,) * 9)
    assert differences(other) == []


CALL = CALLS[0]
PARTS = [
    ((TEXT, *CALLS, FRAME),
     ["the reasoning is not sent", "the signature of the reasoning differs",
      "reasoning is not marked as a summary"]),
    ((replace(THOUGHT, signature=None), TEXT, *CALLS, FRAME),
     ["the signature of the reasoning differs"]),
    ((replace(THOUGHT, summary=False), TEXT, *CALLS, FRAME),
     ["reasoning is not marked as a summary"]),
    ((replace(THOUGHT, fragments=("other",)), TEXT, *CALLS, FRAME), ["the reasoning differs"]),
    ((THOUGHT, *CALLS, FRAME),
     ["the text is not sent", "citations are not sent", "log probabilities are not sent"]),
    ((THOUGHT, replace(TEXT, fragments=("ax",)), *CALLS, FRAME), ["the text differs"]),
    ((THOUGHT, replace(TEXT, fragments=("ab",)), *CALLS, FRAME), ["fragments are cut differently"]),
    ((THOUGHT, replace(TEXT, citations=()), *CALLS, FRAME), ["citations are not sent"]),
    ((THOUGHT, replace(TEXT, logprobs=False), *CALLS, FRAME), ["log probabilities are not sent"]),
    ((THOUGHT, TEXT, Refusal(("no",)), *CALLS, FRAME), ["there is refusal that was not written"]),
    ((THOUGHT, TEXT, CALL, FRAME), ["of 2 calls 1 are sent"]),
    ((THOUGHT, TEXT, *CALLS[::-1], FRAME), ["of 2 calls 2 are sent"]),
    ((THOUGHT, TEXT, CALL, replace(CALLS[1], id=""), FRAME), ["ids of calls are not sent"]),
    ((THOUGHT, TEXT, CALL, replace(CALLS[1], fragments=("[]",)), FRAME),
     ["arguments are rewritten"]),
    ((THOUGHT, TEXT, replace(CALL, fragments=("{}", "")), CALLS[1], FRAME),
     ["arguments are sent whole"]),
    ((THOUGHT, TEXT, replace(CALL, id="", fragments=("{}x",)), CALLS[1], FRAME),
     ["ids of calls are not sent", "arguments are rewritten"]),
    ((THOUGHT, TEXT, *CALLS), ["not all frames of the scenario are sent"]),
    ((THOUGHT, TEXT, *CALLS, FRAME, FRAME), []),
]  # fmt: skip


@for_all(("parts", "expected"), PARTS)
def test_differences_of_parts(parts: tuple[Part, ...], expected: list[str]) -> None:
    """Each kind of difference has a message of its own."""
    assert differences(with_parts(*parts)) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"finish": "stop"}, ["finish tool_calls reads as stop"]),
        ({"finish": None}, ["finish tool_calls reads as None"]),
        ({"usage": None}, ["usage is not sent"]),
        ({"usage": TokenUsage(1, 3)}, ["usage differs"]),
    ],
)
def test_differences_of_the_end(change: dict[str, object], expected: list[str]) -> None:
    """Finish reason and usage."""
    assert differences(replace(TURN, **change)) == expected  # type: ignore[arg-type]


def test_frames_of_other_protocols_are_not_missed() -> None:
    """Only those of the protocol itself count."""
    assert differences(with_parts(*TURN.parts[:-1]), api="gemini") == []


def test_a_refusal_that_is_sent_as_text() -> None:
    """One message for it, not two for text and refusal."""
    written = Turn((Text(("a",)), Refusal(("no",))), "refusal")
    assert differences(Turn((Text(("ano",)),), "refusal"), written) == [
        "the refusal is sent as text"
    ]
    assert differences(Turn((Text(("ano",)), *CALLS), "refusal"), written) == [
        "the refusal is sent as text",
        "of 0 calls 2 are sent",
    ]
    assert differences(Turn((Text(("a",)),), "refusal"), written) == ["the refusal is not sent"]


WEB = Cite(0, "https://a.example/")
DOCUMENT = Cite(0, "", "Report", "c", Passage(0, "pages", 1, 2))


@for_all(
    ("written", "received", "expected"),
    [
        ((WEB, DOCUMENT), (WEB, DOCUMENT), []),
        ((WEB, DOCUMENT), (WEB,), ["citations of documents are not sent"]),
        ((DOCUMENT,), (), ["citations are not sent"]),
        ((DOCUMENT,), (Cite(0, "", "Report", "c"),), ["places in cited documents are not sent"]),
    ],
)
def test_differences_of_citations(
    written: tuple[Cite, ...], received: tuple[Cite, ...], expected: list[str]
) -> None:
    """Citations of documents may be missed as a whole, or only where they are from."""
    turns = [Turn((Text(("a",), cites),), "stop") for cites in (received, written)]
    assert differences(*turns) == expected


IMAGE, SOUND = Media("image/png", (b"a",)), Media("audio/wav", (b"a", b"b"), ("Hi",))


@for_all(
    ("parts", "expected"),
    [
        ((IMAGE, SOUND), []),
        ((SOUND,), ["images are not sent"]),
        ((ServerTool("image_generation"), SOUND), ["images are sent as calls of a tool"]),
        ((IMAGE,), ["sound is not sent"]),
        ((IMAGE, replace(SOUND, fragments=())), ["the transcript of the sound is not sent"]),
        ((IMAGE, replace(SOUND, media_type="audio/*")), []),
    ],
)
def test_differences_of_images_and_sound(parts: tuple[Part, ...], expected: list[str]) -> None:
    """Images and sound are missed each for themselves; a type that is not sent is no loss."""
    assert differences(Turn(parts, "stop"), Turn((IMAGE, SOUND), "stop")) == expected


RAW = [
    ("anthropic", "model_context_window_exceeded", "length", ()),
    ("anthropic", "guardrail_intervened", "stop", ("finish_raw guardrail_intervened is not sent",)),
    ("bedrock", "guardrail_intervened", "content_filter", ()),
    ("responses", "steered", "length", ()),
    ("chat", "eos", "stop", ()),
    ("chat", "end_turn", "stop", ("finish_raw end_turn is not sent",)),
    ("gemini", "PROHIBITED_CONTENT", "content_filter", ()),
    ("cohere", "ERROR_LIMIT", "length", ()),
    ("interactions", "budget_exceeded", "length", ()),
]


@for_all(("api", "raw", "finish", "lost"), RAW)
def test_the_words_for_an_end(api: str, raw: str, finish: str, lost: tuple[str, ...]) -> None:
    """Without a `finish` they say what it is. They are sent, or listed."""
    text = f"{{scenario: a, apis: [{api}], turns: [{{reply: {{text: a}}, finish_raw: {raw}}}]}}"
    (scenario,) = loads(text)
    assert resolve(scenario, 0, api).finish == finish
    assert [loss.what for loss in find_losses(scenario, PROTOCOLS)] == ([lost] if lost else [])


def test_the_words_for_an_end_go_before_another_finish() -> None:
    """A wish is sent as it is; the difference to the other one is listed."""
    text = "{reply: {text: a}, finish: stop, finish_raw: max_tokens}"
    (loss,) = find_losses(
        loads(f"{{scenario: a, apis: [anthropic], turns: [{text}]}}")[0], PROTOCOLS
    )
    assert loss.what == ("finish stop reads as length",)


def test_a_place_that_only_errors_have() -> None:
    """The body of an error is an event of every API."""
    text = "{reply: {text: a}, extra: {bedrock: {event: {x: 1}}}}"
    (scenario,) = loads(f"{{scenario: a, apis: [bedrock], turns: [{text}]}}")
    (loss,) = find_losses(scenario, PROTOCOLS)
    assert loss.what == ("extra event is not sent",)


HOSTED = ServerTool("web_search", "id_1", "own", ('{"q": 1}',), "[1]")


@for_all(
    ("received", "expected"),
    [
        (HOSTED, []),
        (replace(HOSTED, fragments=('{"q":1}',), output="[ 1]"), []),
        (None, ["of 1 call of hosted tools 0 are sent"]),
        (replace(HOSTED, id="other"), ["ids of hosted tools are not sent"]),
        (replace(HOSTED, name=""), ["names of hosted tools are not sent"]),
        (replace(HOSTED, fragments=()), ["the input of hosted tools differs"]),
        (replace(HOSTED, output=None), ["the output of hosted tools is not sent, or differs"]),
    ],
)
def test_differences_of_hosted_tools(received: ServerTool | None, expected: list[str]) -> None:
    """Each of their keys is missed for itself."""
    parts = () if received is None else (received,)
    assert differences(Turn(parts, "stop"), Turn((HOSTED,), "stop")) == expected


def test_signatures_and_stop_sequences() -> None:
    """They are missed where a scenario states them."""
    signed = Turn((Text(("a",), signature="s"), replace(CALL, signature="t")), "tool_calls")
    plain = Turn((Text(("a",)), CALL), "tool_calls")
    assert differences(plain, signed) == [
        "signatures of texts are not sent",
        "signatures of calls are not sent",
    ]
    ended = Turn((Text(("a",)),), "stop", stop_sequence="END")
    assert differences(replace(ended, stop_sequence=None), ended) == [
        "the stop sequence is not sent"
    ]


SCENARIO = """
scenario: s
apis: [chat, gemini]
turns:
  - reply: {text: one}
  - reply: {auto: true}
  - http: 500
  - reply: {text: two}
    when: [{api: gemini, reply: {text: three}}]
"""


def losing(change: Callable[[Turn], Turn], api: str = "chat") -> list[Loss]:
    """The losses of the scenario over a protocol that changes turns so."""
    protocols = {api: replace(PROTOCOLS[api], project=change)}
    return list(find_losses(loads(SCENARIO)[0], protocols))


def test_the_losses_of_a_scenario() -> None:
    """Turn by turn, without those that are automatic or errors."""

    def without_text(turn: Turn) -> Turn:
        return replace(turn, parts=(), usage=None)

    found = losing(without_text)
    what = ("the text is not sent", "usage is not sent")
    assert found == [Loss("s", 1, "chat", what), Loss("s", 4, "chat", what)]
    assert str(found[1]) == "s: turn 4 over chat: the text is not sent; usage is not sent"
    assert losing(without_text, "anthropic") == []
    assert losing(lambda turn: turn) == []


def test_a_turn_as_the_protocol_plays_it() -> None:
    """A variant is compared, not the turn that it replaces."""

    def only_three(turn: Turn) -> Turn:
        return turn if turn.text in ("one", "three") else replace(turn, finish="length")

    assert losing(only_three, "gemini") == []
    assert [loss.what for loss in losing(only_three)] == [("finish stop reads as length",)]
