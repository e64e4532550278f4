"""Limits that a request sets to its answer, over every API that has them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core import events as ev
from mockllm.core.request import Message, OfferedTool, Parameters, Request
from mockllm.core.timeline import fold
from mockllm.core.tokens_and_fragments import tokens
from mockllm.core.turn import Turn
from mockllm.play.replay.auto.limits import Limits, obey_limits
from mockllm.play.replay.auto.words import words
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import AutoPart, TextPart
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol

HELLO = Request("", "m", {}, messages=(Message("user", "Hello there, who are you?"),))
STORY = "Once upon a time there was a queen. END And they lived happily."
WEATHER = OfferedTool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {"city": {"const": "Paris"}},
        "required": ["city"],
    },
)
ALWAYS_STREAMED = ("agui", "realtime", "live")

LIMITED = [name for name in PROTOCOLS if name != "agui"]
"""The APIs whose requests have a greatest number of tokens."""
STOPPING = [name for name in LIMITED if name not in ("responses", "realtime", "live")]
"""Those with stop sequences."""
CALLING = [name for name in LIMITED if name != "completions"]


def player(text: str = "", *, strict: bool = False, **options: Any) -> Player:
    """A lenient player: Responses refuses limits below 16, and Claude those below its budget."""
    return Player(loads(text) if text else (), strict=strict, **options)


def written(obey: str, turn: str) -> Player:
    """A player of a scenario with one turn that answers everything."""
    return player(f"scenario: a\nmatch: any\nobey: {obey}\nturns: [{{{turn}, repeat: true}}]")


def answers(
    player: Player, api: str, parameters: Parameters, request: Request = HELLO, **fields: Any
) -> tuple[Turn, Turn]:
    """The turns of the plain and of the streamed answer to a request."""
    protocol = PROTOCOLS[api]
    turns = []
    for stream in (False, True):
        asked = replace(request, api=api, stream=stream)
        body = {**protocol.client.write(asked, parameters), **fields}
        body |= protocol.client.usage if stream else {}
        target = client_target(protocol, "m", stream=stream)
        call = ApiCall(protocol, target, {}, json.dumps(body).encode(), Session("s"))
        answer = player.play(call).answer
        assert answer.status == 200, body_of(answer)
        if stream or api in ALWAYS_STREAMED:
            turns.append(decoded(protocol, body_of(answer)))
        else:
            turns.append(protocol.decode_body(json.loads(body_of(answer))))
    return turns[0], turns[1]


def body_of(answer: HttpAnswer) -> bytes:
    return b"".join(answer.data)


def decoded(protocol: WireProtocol, body: bytes) -> Turn:
    decoder = protocol.decoder()
    events = [
        ev.Timed(0, event)
        for frame in protocol.usual.decode(body)
        for event in decoder.decode(frame)
    ]
    return fold(events)


def meaning(turn: Turn) -> Any:
    return turn.text, turn.finish, turn.finish_raw, turn.stop_sequence, turn.usage


@pytest.mark.parametrize("api", LIMITED)
def test_max_tokens_cut_an_automatic_answer(api: str) -> None:
    """The echo ends after as many tokens, four bytes each, with the finish `length` and a usage of
    exactly the limit; the streamed answer is the same."""
    plain, streamed = answers(player(fallback=True), api, Parameters(max_tokens=3))
    assert plain.text == "Hello there,"
    finish = "stop" if api == "live" else "length"  # it does not say why a turn is complete
    assert (plain.finish, plain.usage.output if plain.usage else None) == (finish, 3)
    assert meaning(streamed) == meaning(plain)


@pytest.mark.parametrize("api", LIMITED)
def test_a_limit_that_is_not_reached(api: str) -> None:
    """The answer is the same as without it, also where it has exactly as many tokens."""
    count = tokens(HELLO.messages[0].text)
    usual = answers(player(fallback=True), api, Parameters(max_tokens=5000))
    assert answers(player(fallback=True), api, Parameters(max_tokens=count)) == usual
    assert usual[0].finish == "stop"


@pytest.mark.parametrize("api", STOPPING)
def test_stop_sequences(api: str) -> None:
    """The text ends before the first of them. The finish is `stop`, or what the API has for it."""
    asked = Parameters(max_tokens=5000, stop=("queen", " who"))
    plain, streamed = answers(player(fallback=True), api, asked)
    assert (plain.text, plain.finish) == ("Hello there,", "stop")
    raw = {"anthropic": "stop_sequence", "bedrock": "stop_sequence", "cohere": "STOP_SEQUENCE"}
    assert plain.finish_raw == raw.get(api)
    assert plain.stop_sequence == (" who" if api == "anthropic" else None)
    assert plain.usage is not None
    assert plain.usage.output == 3
    assert meaning(streamed) == meaning(plain)


@pytest.mark.parametrize("api", CALLING)
def test_a_call_is_cut(api: str) -> None:
    """After the limit its arguments end, and are no JSON any more; the finish is `length`. APIs
    whose calls are values (Gemini, Ollama) leave the call out."""
    if api in ("ollama", "live"):
        return  # they have no field for the choice of a tool
    request = replace(HELLO, tools=(WEATHER,), tool_choice="required")
    plain, streamed = answers(player(fallback=True), api, Parameters(max_tokens=5), request)
    for turn in (plain, streamed):
        assert turn.finish == "length"
        assert turn.usage is not None
        assert turn.usage.output == 5
        calls = [(call.name, call.arguments) for call in turn.tool_calls]
        assert calls == ([] if api == "gemini" else [("get_weather", '{"city":')])


def test_a_call_without_arguments_yet_is_left_out() -> None:
    """Its name alone is no call: the answer is empty, and counts the limit."""
    request = replace(HELLO, tools=(WEATHER,), tool_choice="required")
    plain, _ = answers(player(fallback=True), "chat", Parameters(max_tokens=3), request)
    assert (plain.tool_calls, plain.finish, plain.usage and plain.usage.output) == ((), "length", 3)


def test_json_is_cut() -> None:
    """An answer in a JSON form ends in the middle, as services end it."""
    schema = {"type": "object", "properties": {"n": {"const": 12345}}, "required": ["n"]}
    request = replace(HELLO, output_schema=schema)
    asked = Parameters(max_tokens=2, min_tokens=2)
    plain, _ = answers(player(fallback=True), "chat", asked, request)
    assert (plain.text, plain.finish) == ('{"n":123', "length")
    whole, _ = answers(player(fallback=True), "chat", Parameters(min_tokens=50), request)
    assert json.loads(whole.text) == {"n": 12345}


@pytest.mark.parametrize("api", ["anthropic", "responses", "gemini"])
def test_reasoning_counts(api: str) -> None:
    """It is the first to use up the limit."""
    request = replace(HELLO, wants_reasoning=True)
    plain, _ = answers(player(fallback=True), api, Parameters(max_tokens=2000), request)
    assert plain.text
    limit = {"anthropic": "max_tokens", "responses": "max_output_tokens"}
    config = {"maxOutputTokens": 5, "thinkingConfig": {"includeThoughts": True}}
    fields: dict[str, Any] = {limit[api]: 5} if api in limit else {"generationConfig": config}
    plain, _ = answers(player(fallback=True), api, Parameters(max_tokens=2000), request, **fields)
    assert (plain.text, plain.reasoning, plain.finish) == ("", "The request asks for", "length")
    assert plain.usage is not None
    assert plain.usage.output == 5


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_min_tokens_and_ignore_eos(api: str) -> None:
    """Words continue a shorter text. Where the model may not end, its limit ends it."""
    strict = player(fallback=True, strict=True)
    plain, streamed = answers(strict, api, Parameters(min_tokens=20))
    assert plain.text.startswith("Hello there, who are you? ")
    assert (plain.finish, plain.usage and plain.usage.output) == ("stop", 20)
    assert meaning(streamed) == meaning(plain)
    for most in (3, 7, 50):
        plain, _ = answers(strict, api, Parameters(max_tokens=most, ignore_eos=True))
        assert (plain.finish, plain.usage and plain.usage.output) == ("length", most)
        assert tokens(plain.text) == most


def test_stop_sequences_before_min_tokens_do_not_count() -> None:
    """As in vLLM, which looks for them from that token on."""
    asked = Parameters(min_tokens=9, stop=("Once", "END", "the"))
    spec = written("[stop, min_tokens]", f"reply: {{text: '{STORY}'}}")
    plain, _ = answers(spec, "chat", asked)
    assert plain.text == "Once upon a time there was a queen. "


def test_too_many_tokens_are_refused() -> None:
    """Words are made up to a bound: a request for more gets an error that has it."""
    protocol = PROTOCOLS["chat"]
    body = protocol.client.write(replace(HELLO, api="chat"), Parameters(min_tokens=100_001))
    target = client_target(protocol, "m", stream=False)
    call = ApiCall(protocol, target, {}, json.dumps(body).encode(), Session("s"))
    answer = player(fallback=True).play(call).answer
    assert answer.status == 400
    assert b"at most 100000 tokens, and this request needs 100001" in body_of(answer)


@pytest.mark.parametrize("obey", ["max_tokens", "stop", "min_tokens"])
def test_written_replies_obey_what_the_scenario_names(obey: str) -> None:
    """Each limit alone; without the key a reply is sent as it is."""
    turn = f"reply: {{text: '{STORY}'}}"
    asked = Parameters(max_tokens=30, stop=("END",), min_tokens=20)
    usual, _ = answers(player(f"scenario: a\nmatch: any\nturns: [{{{turn}}}]"), "chat", asked)
    assert (usual.text, usual.finish) == (STORY, "stop")
    plain, _ = answers(written(f"[{obey}]", turn), "chat", replace(asked, max_tokens=4))
    expected = {
        "max_tokens": ("Once upon a time", "length", 4),
        "stop": ("Once upon a time there was a queen. ", "stop", 9),
    }
    if obey == "min_tokens":
        assert plain.text.startswith(STORY + " ")
        assert (plain.finish, plain.usage and plain.usage.output) == ("stop", 20)
    else:
        assert (plain.text, plain.finish, plain.usage and plain.usage.output) == expected[obey]


def test_a_turn_has_limits_of_its_own() -> None:
    """They replace those of the scenario."""
    turn = f"reply: {{text: '{STORY}'}}, obey: [stop]"
    asked = Parameters(max_tokens=2, stop=("upon",))
    plain, _ = answers(written("[max_tokens]", turn), "chat", asked)
    assert plain.text == "Once "


def test_the_same_answer_is_cut_for_each_request() -> None:
    """Requests with other limits do not get each other's answers."""
    one = written("[max_tokens]", f"reply: {{text: '{STORY}'}}")
    for most in (2, 3, 2):
        plain, _ = answers(one, "chat", Parameters(max_tokens=most))
        assert tokens(plain.text) == most


def test_written_fragments_are_cut() -> None:
    """Those before the limit stay as they are."""
    turn = "reply: {text: one two three, split: [one, ' two', ' three']}"
    _, streamed = answers(written("[max_tokens]", turn), "chat", Parameters(max_tokens=2))
    (part,) = streamed.parts
    assert getattr(part, "fragments") == ("one", " two")  # noqa: B009 - any part of text


def test_written_usage() -> None:
    """Reasoning that only the usage has uses up the limit, too; a turn without usage has none."""
    turn = f"reply: {{text: '{STORY}'}}, usage: {{input: 9, output: 500, reasoning: 4}}"
    plain, _ = answers(written("[max_tokens]", turn), "chat", Parameters(max_tokens=6))
    assert (plain.text, plain.finish) == ("Once upo", "length")
    assert plain.usage is not None
    assert (plain.usage.input, plain.usage.output, plain.usage.reasoning) == (9, 6, 4)
    plain, _ = answers(written("[max_tokens]", turn), "chat", Parameters(max_tokens=3))
    assert plain.text == ""
    assert plain.usage is not None
    assert (plain.usage.output, plain.usage.reasoning) == (3, 3)
    turn = f"reply: {{text: '{STORY}'}}, usage: none"
    plain, _ = answers(written("[max_tokens]", turn), "gemini", Parameters(max_tokens=6))
    assert (plain.finish, plain.usage) == ("length", None)


def test_parallel_calls_are_cut() -> None:
    """The limit ends the calls in their order, one after the other."""
    turn = "reply: {parallel: [{tool: add, arguments: {x: 1}}, {tool: add, arguments: {x: 22}}]}"
    plain, _ = answers(written("[max_tokens]", turn), "chat", Parameters(max_tokens=5))
    assert [call.arguments for call in plain.tool_calls] == ['{"x":1}', '{"x"']


def test_an_error_after_the_limit_does_not_come() -> None:
    """The answer is complete before."""
    turn = f"reply: [{{text: '{STORY}'}}, {{error: {{message: boom}}}}]"
    plain, _ = answers(written("[max_tokens]", turn), "chat", Parameters(max_tokens=2))
    assert (plain.text, plain.error, plain.finish) == ("Once upo", None, "length")


@given(st.text(min_size=1, max_size=40), st.integers(0, 12), st.integers(0, 12))
def test_any_text_within_limits(text: str, least: int, more: int) -> None:
    """A text has at least and at most as many tokens, begins as it is written, and its usage is
    what it counts."""
    most = least + more
    scenario = Scenario("a", (TurnSpec(reply=(TextPart(text),)),))
    spec = obey_limits(scenario.turns[0], scenario, Limits(most, least))
    turn = resolve(scenario, 0, "chat", spec=spec)
    assert least <= tokens(turn.text) <= most
    assert turn.usage is not None
    assert turn.usage.output == tokens(turn.text)
    assert turn.text.startswith(text) or text.startswith(turn.text)
    assert (turn.finish == "length") is (tokens(text) > most or least == most)


# Lengths of automatic answers

DRAWN = "scenario: a\nmatch: any\nturns: [{reply: {auto: {tokens: LENGTH}}, repeat: true}]"


@pytest.mark.parametrize("api", PROTOCOLS)
def test_an_answer_of_so_many_words(api: str) -> None:
    """It has that number of tokens, also in its usage, and as many fragments in its stream."""
    plain, streamed = answers(player(fallback=AutoPart("40")), api, Parameters())
    assert len(plain.text.split()) == tokens(plain.text) == 40
    assert (plain.finish, plain.usage and plain.usage.output) == ("stop", 40)
    assert meaning(streamed) == meaning(plain)
    (part,) = streamed.parts
    assert [len(fragment) for fragment in getattr(part, "fragments")] == [3] + [4] * 39  # noqa: B009


@pytest.mark.parametrize("api", PROTOCOLS)
def test_the_prompt_of_an_automatic_answer_is_counted(api: str) -> None:
    """So a longer prompt has more input tokens."""
    prompt = replace(HELLO, messages=(Message("user", "word " * 100),))
    for request, count in ((HELLO, 7), (prompt, 125)):
        for answer in answers(player(fallback=AutoPart("40")), api, Parameters(), request):
            assert answer.usage is not None
            assert answer.usage.input == count


@pytest.mark.parametrize("written", ["input: 50", "input: 50, output: 9"])
@pytest.mark.parametrize("head", ["defaults: {usage: {%s}}", "usage: {%s}"])
def test_a_written_prompt_counts(written: str, head: str) -> None:
    """In the turn or in the defaults."""
    where = head % written
    default, turn = (where, "") if where.startswith("defaults") else ("", where + ", ")
    reply = "{reply: {auto: true}, " + turn + "repeat: true}"
    text = f"scenario: a\nmatch: any\n{default}\nturns: [{reply}]"
    for answer in answers(player(text), "chat", Parameters()):
        assert answer.usage is not None
        assert answer.usage.input == 50


def test_no_usage_stays_no_usage() -> None:
    text = "scenario: a\nmatch: any\nturns: [{reply: {auto: true}, usage: none, repeat: true}]"
    assert [answer.usage for answer in answers(player(text), "chat", Parameters())] == [None, None]


def test_lengths_are_drawn_for_each_request() -> None:
    """The same request gets the same answer in any server; another prompt, or another seed, gets
    another one."""
    length = "lognormal(200, p99=1500)"

    def text(prompt: str, seed: int = 1) -> str:
        request = replace(HELLO, messages=(Message("user", prompt),))
        playing = player(f"seed: {seed}\n{DRAWN.replace('LENGTH', repr(length))}")
        return answers(playing, "chat", Parameters(), request)[0].text

    assert text("a") == text("a")
    assert len({tokens(text(prompt)) for prompt in "abcdefgh"}) > 4
    assert text("a") != text("a", seed=2)


@pytest.mark.parametrize(("asked", "count", "finish"), [
    (Parameters(max_tokens=7), 7, "length"),
    (Parameters(max_tokens=40), 40, "stop"),
    (Parameters(min_tokens=55), 55, "stop"),
    (Parameters(min_tokens=55, max_tokens=60), 55, "stop"),
    (Parameters(max_tokens=60, ignore_eos=True), 60, "length"),
    (Parameters(max_tokens=12, ignore_eos=True), 12, "length"),
])  # fmt: skip
def test_drawn_lengths_obey_limits(asked: Parameters, count: int, finish: str) -> None:
    """At most `max_tokens`, at least `min_tokens`, with `ignore_eos` exactly `max_tokens`; a
    fragment for each token."""
    _, streamed = answers(player(fallback=AutoPart("40")), "chat", asked)
    assert (streamed.finish, streamed.usage and streamed.usage.output) == (finish, count)
    (part,) = streamed.parts
    assert len(getattr(part, "fragments")) == count  # noqa: B009
    assert len(streamed.text.split()) == count


def test_drawn_lengths_are_bounded() -> None:
    """A draw is at least one token."""
    plain, _ = answers(player(fallback=AutoPart("normal(0, 0.2)")), "chat", Parameters())
    assert tokens(plain.text) == 1


def test_words_are_one_token_each() -> None:
    """All are of three letters, and differ; fewer words are the beginning of more."""
    text = words(20_000, "s")
    assert len(set(text.split())) == 256
    assert {len(word) for word in text.split()} == {3}
    assert text.startswith(words(100, "s"))
    assert tokens(text) == 20_000


TRIED = """
scenario: a
match: any
turns:
  - obey: [max_tokens]
    attempts: [{reply: {text: one two three}}, {finish: content_filter}]
    reply: {text: four five six}
"""


def test_earlier_tries_obey() -> None:
    """Those with a reply of their own, those with that of the turn, and the last one."""
    playing, session = player(TRIED), Session("s")
    protocol = PROTOCOLS["chat"]
    body = protocol.client.write(replace(HELLO, api="chat"), Parameters(max_tokens=2))
    call = ApiCall(protocol, client_target(protocol, "m"), {}, json.dumps(body).encode(), session)
    found = [json.loads(body_of(playing.play(call).answer))["choices"][0] for _ in range(3)]
    said = [(choice["message"]["content"], choice["finish_reason"]) for choice in found]
    assert said == [("one two", "length"), ("four fiv", "length"), ("four fiv", "length")]


def test_a_fault_is_judged_in_the_whole_answer() -> None:
    """The loader does not know the limits of requests: it accepts a place that only the whole
    answer has, also where a client must send a limit."""
    text = (
        "scenario: a\napis: [anthropic]\nobey: [max_tokens]\nturns: [{reply: {text: TEXT}, FAULT}]"
    )
    whole = text.replace("TEXT", "word " * 2000).replace(
        "FAULT", "fault: {cut: {after: 7000 bytes}}"
    )
    assert loads(whole)
