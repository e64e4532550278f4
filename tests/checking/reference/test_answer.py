"""What all reference accumulators share: policies, fragments of arguments, and the fields of an
answer that a client may lack."""

from __future__ import annotations

import pytest

from examples.accumulators import REFERENCES
from mockllm.checking.outcome import NOT_KEPT, Outcome
from mockllm.checking.probes import Fragment
from mockllm.core.turn import Reasoning, Text, ToolCall, Turn
from tests.apis import CALLING
from tests.checking.reference.chunks import TOOLS, called, chunk, entry
from tests.checking.reference.items import (
    A1,
    CITY,
    CREATED,
    DELTAS,
    PARIS,
    added,
    arguments_done,
    done,
    end,
    event,
    item,
)
from tests.checking.reference.playing import Run, by_bytes, by_events, payloads, sent

every_api = pytest.mark.parametrize("api", sorted(REFERENCES))

GOOD = ToolCall("save", "call_1", ('{"a":', "1}"))
BAD = ToolCall("save", "call_2", ('{"a":', " True}"))


def play(turn: Turn, api: str, **policies: str) -> Run:
    return by_events(api, payloads(sent(turn, api), api), **policies)


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic", "agui", "bedrock"])
def test_malformed_arguments_fail_the_whole_answer(api: str) -> None:
    """With `malformed="fail"` the answer ends with one error: there is no finish, and no call
    surfaces after it. What there was before stays: the text and, over Chat Completions, the calls
    that were complete at the finish reason."""
    turn = Turn((Text(("Hello",)), BAD, GOOD), "tool_calls")
    outcome = play(turn, api, malformed="fail").outcome
    assert [(error.kind, error.tool) for error in outcome.errors] == [("malformed_arguments", 0)]
    assert "call_2" in outcome.errors[0].message
    assert (outcome.text, outcome.finish) == ("Hello", None)
    surfaced = [call.id for call in outcome.tool_calls]
    assert surfaced == (["call_1"] if api == "chat" else [])


@every_api
def test_an_answer_without_malformed_arguments_does_not_fail(api: str) -> None:
    """`malformed="fail"` changes nothing else."""
    turn = Turn((Text(("Hello",)), GOOD), "tool_calls")
    assert play(turn, api, malformed="fail").full == play(turn, api).full


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic", "agui", "bedrock"])
def test_fragments_of_arguments_are_passed_on_one_by_one(api: str) -> None:
    """Each delta has the fragments of its event alone, with the id and the name of their call."""
    other = ToolCall("save", "call_3", ('{"b":', "2}"))
    fragments = play(Turn((GOOD, other), "tool_calls"), api).tool
    assert fragments == [
        Fragment('{"a":', "call_1", "save", 0),
        Fragment("1}", "call_1", "save", 0),
        Fragment('{"b":', "call_3", "save", 1),
        Fragment("2}", "call_3", "save", 1),
    ]


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic", "agui", "bedrock"])
def test_a_chunk_of_bytes_joins_the_fragments_of_its_events(api: str) -> None:
    """Whole streams of bytes pass on the same fragments."""
    turn = Turn((GOOD,), "tool_calls")
    assert by_bytes(api, [sent(turn, api)]).tool == play(turn, api).tool


@every_api
def test_fields_of_the_answer(api: str) -> None:
    """Role, model and id are those of the stream; an API without them has None."""
    outcome = play(Turn((Text(("Hello",)),), "stop"), api).full
    assert outcome.role == "assistant"
    assert outcome.model == (
        None if api in ("agui", "cohere", "bedrock", "live", "realtime") else "m"
    )
    assert (outcome.response_id is None) == (api in ("agui", "ollama", "bedrock", "live"))


@pytest.mark.parametrize("api", CALLING)
def test_raw_arguments_are_the_joined_fragments(api: str) -> None:
    """They are kept beside the parsed ones, unless the API has no text of them."""
    call = ToolCall("save", "call_1", ('{ "a"', ":1}"))
    (got,) = play(Turn((call,), "tool_calls"), api).full.tool_calls
    assert got.arguments == {"a": 1}
    assert got.raw_arguments == (NOT_KEPT if api in ("gemini", "live", "ollama") else '{ "a":1}')


@pytest.mark.parametrize("api", ["responses", "anthropic", "gemini", "agui", "bedrock"])
def test_signatures_are_kept_once(api: str) -> None:
    """The signature of reasoning is an opaque value."""
    turn = Turn((Reasoning(("Hm",), "c2ln"), Text(("Hello",))), "stop")
    assert play(turn, api).full.opaque == ("c2ln",)


# Chat Completions


def test_the_first_id_and_model_stay() -> None:
    """`chat-first-choices-empty`, `chat-chunk-id-changes`: empty ones are not the first."""
    chunks = [{"id": "", "model": ""}, {"id": "a", "model": "b"}, {"id": "c", "model": "d"}]
    outcome = by_events("chat", chunks).full
    assert (outcome.response_id, outcome.model) == ("a", "b")


def test_openrouter_signs_and_encrypts_reasoning() -> None:
    """`reasoning_details` have signatures and encrypted data; equal ones are one value."""
    details = [{"type": "reasoning.text", "text": "", "signature": "c2ln"}]
    data = [{"type": "reasoning.encrypted", "data": "gAAA"}, {"type": "reasoning.text"}]
    chunks = [chunk({"reasoning_details": one}) for one in (details, details, data)]
    outcome = by_events("chat", chunks).full
    assert (outcome.reasoning, outcome.opaque) == ("", ("c2ln", "gAAA"))


def test_gemini_signs_calls_over_chat() -> None:
    """`extra_content.google.thought_signature` of a call is an opaque value."""
    extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    chunks = [called({**entry(PARIS, id="a", name="f"), **extra}), TOOLS]
    assert by_events("chat", chunks).full.opaque == ("c2ln",)


# Responses


def test_final_arguments_are_the_raw_ones() -> None:
    """Arguments that contradict their deltas replace them; what continues them is a fragment."""
    whole = '{"city":"Paris","days":2}'
    other = [CREATED, added(item(A1)), *DELTAS, arguments_done(whole), done(item(A1, whole))]
    run = by_events("responses", other)
    (call,) = run.full.tool_calls
    assert (call.arguments, call.raw_arguments) == ({"city": "Paris", "days": 2}, whole)
    assert [part.arguments for part in run.tool] == [*CITY]
    late = by_events("responses", [CREATED, added(item(A1)), *DELTAS[:1], arguments_done(PARIS)])
    assert "".join(part.arguments for part in late.tool) == PARIS


def test_encrypted_content_is_kept_from_any_item() -> None:
    """Encrypted reasoning is an opaque value, also if its item has no summary."""
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    run = by_events("responses", [CREATED, done(reasoning), end()])
    assert run.full.opaque == ("gAAA",)
    assert isinstance(run.full, Outcome)
    again = event("completed", response={"output": [reasoning]})
    assert by_events("responses", [CREATED, done(reasoning), again]).full.opaque == ("gAAA",)
