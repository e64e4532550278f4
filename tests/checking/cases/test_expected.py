"""The expected outcome of a case: what follows from the turn, from `expect` and from the stream."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Case
from mockllm.checking.cases.scenarios import single
from mockllm.checking.judging.compare import judge
from mockllm.checking.outcome import NOT_KEPT, Outcome, Usage
from mockllm.checking.policy import Policy
from mockllm.play.quirks import samples
from mockllm.play.replay.loading import loads
from mockllm.wire.protocols import PROTOCOLS


def compiled(reply: str, api: str = "chat", quirk: str = "") -> Case:
    scenario = loads(f"scenario: one\nturns:\n  - {reply}\n", "one.yaml")[0]
    return case(single(scenario), api, quirk=quirk)


def expected(reply: str, api: str = "chat", quirk: str = "") -> Outcome:
    return compiled(reply, api, quirk).expected


CALLS = "reply: [{tool: f, id: call_1, arguments: '{ \"a\":1}'}, {tool: g, id: call_2}]"


@pytest.mark.parametrize(
    ("api", "raw"),
    [
        ("chat", ['{ "a":1}', "{}"]),
        ("responses", ['{ "a":1}', "{}"]),
        ("anthropic", ['{ "a":1}', ""]),
        ("agui", ['{ "a":1}', ""]),
        ("gemini", [NOT_KEPT, NOT_KEPT]),
    ],
)
def test_raw_arguments_are_the_text_that_the_api_sends(api, raw) -> None:
    """White space stays; a call without arguments has the text of its API, or none at all."""
    assert [call.raw_arguments for call in expected(CALLS, api).tool_calls] == raw


@pytest.mark.parametrize("quirk", ["chat-args-object", "chat-args-empty-zero"])
def test_raw_arguments_that_a_quirk_changes_are_not_judged(quirk) -> None:
    """Arguments that come as an object, or are left out, have no text to compare."""
    sample = samples.CALL if quirk == "chat-args-object" else samples.ZERO
    outcome = case(sample, "chat", quirk=quirk).expected
    assert [call.raw_arguments for call in outcome.tool_calls] == [NOT_KEPT]


def test_raw_arguments_that_a_quirk_keeps_are_judged() -> None:
    """Another way to number calls changes nothing about their arguments."""
    outcome = case(samples.TWO_SAME, "chat", quirk="chat-index-all-zero").expected
    raw = [call.raw_arguments for call in outcome.tool_calls]
    assert raw == ['{"city":"Paris"}', '{"city":"Rome"}']


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic", "gemini"])
def test_model_and_id_are_those_of_the_stream(api) -> None:
    """They are found where the API has them."""
    one = compiled("reply: {text: Hello}", api)
    data = b"".join(one.chunks).decode()
    assert one.expected.model == "mock-model"
    assert isinstance(one.expected.response_id, str)
    assert f'"{one.expected.response_id}"' in data


def test_an_api_without_ids_has_none() -> None:
    """An AG-UI run has ids of the client's, and no model."""
    outcome = expected("reply: {text: Hello}", "agui")
    assert (outcome.model, outcome.response_id) == (NOT_KEPT, NOT_KEPT)


@pytest.mark.parametrize(
    ("quirk", "judged"),
    [
        ("chat-chunk-id-changes", (False, True)),
        ("chat-first-choices-empty", (False, False)),
        ("chat-role-every-chunk", (True, True)),
        ("sse-crlf", (True, True)),
    ],
)
def test_an_id_that_changes_is_not_judged(quirk, judged) -> None:
    """A client may keep the first or the last of several values, an empty one among them."""
    outcome = case(samples.TEXT, "chat", quirk=quirk).expected
    assert (outcome.response_id is not NOT_KEPT, outcome.model is not NOT_KEPT) == judged


@pytest.mark.parametrize("api", PROTOCOLS)
def test_the_role_of_an_answer_is_the_assistant(api) -> None:
    """A stream of an error alone need not name it; three APIs have no roles."""
    role = expected("reply: {text: Hello}", api).role
    assert role == (None if api in ("completions", "interactions", "live") else "assistant")
    assert expected("reply: {error: {message: broken}}", api).role is NOT_KEPT


@pytest.mark.parametrize(
    ("api", "opaque"),
    [("chat", ()), ("responses", ("c2ln",)), ("anthropic", ("c2ln",)), ("agui", ("c2ln",))],
)
def test_opaque_values_are_the_signatures_that_the_api_carries(api, opaque) -> None:
    """Chat Completions has no place for a signature."""
    reply = "reply: [{reasoning: Hm, signature: c2ln}, {text: Hello}]"
    assert expected(reply, api).opaque == opaque


FRAME = "{api: chat, frame: {data: {choices: []}}}"


def test_a_signature_in_fragments_is_judged() -> None:
    """The joined signature is right, the fragments one by one and the last one are tolerated, since
    the service does not specify it, and none is wrong."""
    one = case(samples.REASONING, "anthropic", quirk="anth-signature:split")
    assert one.expected.opaque == ("c2lnbmF0dXJl",)
    verdicts = [
        judge(one, replace(one.expected, opaque=opaque), Policy()).verdict
        for opaque in [("c2lnbmF0dXJl",), ("c2lnbm", "F0dXJl"), ("F0dXJl",), ()]
    ]
    assert verdicts == ["right", "tolerated", "tolerated", "wrong"]


def test_frames_may_carry_opaque_values() -> None:
    """With frames of the API, opaque values are judged only where `expect` has them."""
    assert expected(f"reply: [{{text: Hello}}, {FRAME}]").opaque is NOT_KEPT
    assert expected(f"reply: [{{text: Hello}}, {FRAME}]", "responses").opaque == ()
    reply = f"reply: [{{text: Hello}}, {FRAME}]\n    expect: {{opaque: [c2ln]}}"
    assert expected(reply).opaque == ("c2ln",)


def test_expect_replaces_what_follows_from_the_reply() -> None:
    """Each key of `expect` is a field of the outcome; the others stay."""
    keys = "reasoning: Hm, refusal: No, finish: length, opaque: [], usage: {output: 9}"
    usage = "usage: {input: 1, output: 2, reasoning: 0, cached: 0}"
    one = compiled(f"reply: {{text: Hello}}\n    {usage}\n    expect: {{{keys}}}")
    outcome = one.expected
    assert (outcome.text, outcome.reasoning, outcome.refusal) == ("Hello", "Hm", "No")
    assert (outcome.finish, outcome.usage) == ("length", Usage(1, 9, 0, 0, 0))
    assert "length" in one.finish_values
    assert "stop" not in one.finish_values


def test_expect_may_have_no_usage() -> None:
    """`usage: none` removes the usage of the turn."""
    assert expected("reply: {text: Hello}\n    expect: {usage: none}").usage is None


def test_an_answer_with_frames_of_its_own_outcome_has_no_body() -> None:
    """A body has no frames, so it has not the outcome of the stream."""
    assert compiled(f"reply: [{{text: Hello}}, {FRAME}]").body is not None
    reply = f"reply: [{{text: Hello}}, {FRAME}]\n    expect: {{text: Hello}}"
    assert compiled(reply).body is None
    assert compiled(reply, "responses").body is not None
