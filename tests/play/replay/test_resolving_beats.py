"""Beats of written turns: their parts, their order and their pauses."""

from __future__ import annotations

import pytest

from mockllm.core.events import Cite, Frame, StreamError
from mockllm.core.seeded import derive_unit
from mockllm.core.turn import Opaque, Reasoning, Refusal, Text, ToolCall, Turn, usual_finish
from mockllm.play.matching.conversation import call_id
from mockllm.play.replay.client_requests import client_target, first_body, first_request, user_text
from mockllm.play.replay.compilation.resolve import parallel_beats, resolve
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import TextPart
from mockllm.wire.protocols import PROTOCOLS


def scenario(*turns: str, head: str = "") -> Scenario:
    listed = "".join(f"  - {{{one}}}\n" for one in turns)
    (found,) = loads(f"scenario: s\n{head}\nturns:\n{listed}")
    return found


def turn(*turns: str, head: str = "", position: int = 0, api: str = "chat") -> Turn:
    return resolve(scenario(*turns, head=head), position, api)


def test_every_kind_of_part() -> None:
    """With all of its fields; the ids of calls are numbered through."""
    one = scenario(
        "reply: [{reasoning: think, signature: sig, summary: true}, "
        "{text: ab, split: 1, logprobs: true, citations: "
        "[{url: 'https://x/', title: t, cited_text: c}]}, {refusal: no}, "
        "{tool: f, id: c1, arguments: {a: 1}, split: 4, signature: proof}, {tool: g}, {tool: h}, "
        "{frame: {data: {a: [1]}, event: e, id: i, retry: 5}, api: chat}, "
        "{frame: {data: text}, api: gemini}, {frame: {comment: c}, api: chat}, "
        "{frame: {raw: r}, api: chat}]"
    )
    assert resolve(one, 0, "chat").parts == (
        Reasoning(("think",), "sig", summary=True),
        Text(("a", "b"), (Cite(0, "https://x/", "t", "c"),), logprobs=True),
        Refusal(("no",)),
        ToolCall("f", "c1", ('{"a"', ":1}"), "proof"),
        ToolCall("g", call_id(one, 0, 1, "chat")),
        ToolCall("h", call_id(one, 0, 2, "chat")),
        Opaque("chat", Frame('{"a":[1]}', "e", "i", 5)),
        Opaque("gemini", Frame("text")),
        Opaque("chat", Frame(comment="c")),
        Opaque("chat", Frame(raw="r")),
    )


def test_there_is_no_reply() -> None:
    """Past the end, and where the turn is an error."""
    one = scenario("http: 500", "reply: {text: x}")
    with pytest.raises(LookupError, match=r"^s has no reply at position 0$"):
        resolve(one, 0, "chat")
    with pytest.raises(LookupError, match=r"^s has no reply at position 2$"):
        resolve(one, 2, "chat")


def test_an_automatic_part() -> None:
    """It is replaced by the parts that are given."""
    one = scenario("reply: {auto: true}")
    given = (TextPart("b"), TextPart("bb"))
    assert resolve(one, 0, "chat", auto=given).parts == (Text(("b",)), Text(("bb",)))
    assert resolve(one, 0, "chat").parts == ()


def test_an_error_in_the_stream() -> None:
    """Its fields, or the usual message; no finish reason in any form."""
    ended = turn("reply: [{text: x}, {error: {message: m, type: t, code: c}}]")
    assert (ended.error, ended.finish, ended.finish_raw) == (StreamError("m", "t", "c"), None, None)
    usual = "The server had an error while processing your request."
    assert turn("reply: [{error: {code: c}}]").error == StreamError(usual, None, "c")


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("", ("stop", None)),
        (", finish: length", ("length", None)),
        (", finish: none", (None, None)),
        (", finish: stop, finish_raw: end", ("stop", "end")),
    ],
)
def test_the_finish(finish: str, expected: tuple[str | None, str | None]) -> None:
    """As written, or what follows from the parts."""
    found = turn(f"reply: {{text: x}}{finish}")
    assert (found.finish, found.finish_raw) == expected


def test_the_usual_finish() -> None:
    """Calls go before a refusal."""
    call, refusal, text = ToolCall("f", "1"), Refusal(("x",)), Text(("x",))
    assert usual_finish([refusal, call]) == "tool_calls"
    assert usual_finish([text, refusal]) == "refusal"
    assert usual_finish([text]) == "stop"
    assert usual_finish([]) == "stop"


# Order


def test_interleaved_parts() -> None:
    """The opening of a call counts as a beat, and so does a frame; parts before come first."""
    found = turn(
        "reply: [{text: first}, {interleaved: [{text: ab, split: 1}, "
        "{tool: f, id: c, arguments: {a: 1}, split: 4}, {frame: {data: x}, api: chat}], "
        "order: [1, 0, 1, 2, 0, 1]}, {text: last}]"
    )
    assert found.order == (0, 2, 1, 2, 3, 1, 2, 4)
    assert [type(part) for part in found.parts] == [Text, Text, ToolCall, Opaque, Text]


def test_parallel_calls_after_a_text() -> None:
    """They open in order, then their fragments alternate."""
    call = "{{tool: {0}, id: {0}, arguments: {{a: 1}}, split: 4}}"
    found = turn(f"reply: [{{text: x}}, {{parallel: [{call.format('f')}, {call.format('g')}]}}]")
    assert found.order == (0, 1, 2, 1, 2, 1, 2)


@pytest.mark.parametrize(
    ("counts", "order", "beats"),
    [
        ([], [], []),
        ([0, 0], [], [0, 1]),
        ([1, 3, 2], [], [0, 1, 2, 0, 1, 2, 1, 2, 1]),
        ([2, 2], [1, 0, 0, 1], [0, 1, 1, 0, 0, 1]),
        ([2, 2], [0, 0, 1, 1], [0, 0, 0, 1, 1, 1]),
        ([2, 2, 0], [0, 1, 1, 0], [0, 0, 1, 1, 1, 0, 2]),
        ([0, 1, 0, 0], [1], [0, 1, 1, 2, 3]),
        ([1, 0, 1], [2, 0], [0, 1, 2, 2, 0]),
    ],
)
def test_beats_of_parallel_calls(counts: list[int], order: list[int], beats: list[int]) -> None:
    """Without an order all open first; with one a call opens right before its first fragment, and
    after those before it."""
    assert list(parallel_beats(counts, order)) == beats


# Pauses


TIMING = "timing: {ttft: 100us, every: 10us}"


def test_pauses_between_beats() -> None:
    """The first, then those between beats; a part may have its own, and pauses add up."""
    last = "{text: cd, split: 1, every: 7us}"
    reply = f"reply: [{{text: ab, split: 1}}, {{pause: 1us}}, {{pause: 2us}}, {last}]"
    assert turn(f"{reply}, {TIMING}").gaps == (100, 10, 3 + 7, 7, 0)
    assert turn(reply).gaps == (0, 0, 3 + 7, 7, 0)
    ending = turn("reply: [{text: a}, {pause: 5us}]")
    assert ending.gaps == (0, 5)
    assert turn("reply: [{pause: 5us}, {text: a}]").gaps == (5, 0)


def test_pauses_of_the_scenario() -> None:
    """Its defaults count where neither part nor turn has any; zero is a value."""
    head = "defaults: {ttft: 100us, every: 10us}"
    text = "reply: {text: ab, split: 1}"
    assert turn(text, head=head).gaps == (100, 10, 0)
    assert turn(f"{text}, timing: {{ttft: 0s}}", head=head).gaps == (0, 10, 0)
    assert turn(f"{text}, timing: {{every: 0s}}", head=head).gaps == (100, 0, 0)
    zero = "reply: {text: ab, split: 1, every: 0s}"
    assert turn(f"{zero}, {TIMING}", head=head).gaps == (100, 0, 0)


def test_frames_come_at_once() -> None:
    """Unless a pause stands before them."""
    frame = "{frame: {data: x}, api: chat}"
    found = turn(f"reply: [{{text: a}}, {frame}, {{pause: 3us}}, {frame}], {TIMING}")
    assert found.gaps == (100, 0, 3, 0)


def test_pauses_of_parallel_and_interleaved_parts() -> None:
    """Each beat has the pause of its own part."""
    first = "{tool: f, id: c1, arguments: {a: 1}, split: 4, every: 1us}"
    second = "{tool: g, id: c2, arguments: {a: 1}, split: 4, every: 2us}"
    assert turn(f"reply: {{parallel: [{first}, {second}]}}").gaps == (0, 2, 1, 2, 1, 2, 0)
    texts = "{text: ab, split: 1, every: 1us}, {text: cd, split: 1, every: 2us}"
    mixed = turn(f"reply: {{interleaved: [{texts}], order: [0, 1, 1, 0]}}")
    assert mixed.gaps == (0, 2, 2, 1, 0)


def test_jitter() -> None:
    """Each pause is longer or shorter by a part of itself, always the same one."""

    def expected(seed: str, gaps: list[int], jitter: float) -> list[int]:
        units = [derive_unit(f"{seed}\x1f0\x1fjitter\x1f{n}") for n in range(len(gaps))]
        return [round(gap * (1 + jitter * unit)) for gap, unit in zip(gaps, units, strict=True)]

    text = "reply: [{text: abc, split: 1}, {pause: 9us}]"
    timing = "timing: {ttft: 1000us, every: 500us, jitter: 50%}"
    found = turn(f"{text}, {timing}")
    assert list(found.gaps) == [*expected("s", [1000, 500, 500], 0.5), 9]
    seeded = turn(f"{text}, {timing}", head="seed: other")
    assert list(seeded.gaps) == [*expected("other", [1000, 500, 500], 0.5), 9]
    default = turn(
        f"{text}, timing: {{ttft: 1000us, every: 500us}}", head="defaults: {jitter: 50%}"
    )
    assert default.gaps == found.gaps
    none = turn(f"{text}, {timing.replace('50%', '0%')}", head="defaults: {jitter: 50%}")
    assert none.gaps == (1000, 500, 500, 9)


def test_offsets_from_the_beginning() -> None:
    """`at` in place of pauses; beats beyond the last offset follow it at once."""
    text = "reply: [{text: abc, split: 1}, {pause: 4us}]"
    assert turn(f"{text}, timing: {{at: [5us, 7us, 20us]}}").gaps == (5, 2, 13, 4)
    assert turn(f"{text}, timing: {{at: [5us]}}").gaps == (5, 0, 0, 4)
    assert turn(f"{text}, timing: {{at: [0s, 3us, 3us]}}").gaps == (0, 3, 0, 4)


# Cutting


def test_how_values_are_cut() -> None:
    """By the rule of the part, then that of the scenario, then not at all."""
    assert turn("reply: {text: abcd}").parts == (Text(("abcd",)),)
    assert turn("reply: {text: abcd}", head="defaults: {split: 3}").parts == (Text(("abc", "d")),)
    found = turn("reply: {text: abcd, split: 2}", head="defaults: {split: 3}")
    assert found.parts == (Text(("ab", "cd")),)


def test_random_cuts_differ_by_part_and_position() -> None:
    """And are the same in each process."""
    part = "{text: abcdefghijklmnopqrstuvwxyz, split: {random: [1, 5]}}"
    one = scenario(f"reply: [{part}, {part}]", f"reply: [{part}]")
    first, second = resolve(one, 0, "chat").parts
    (other,) = resolve(one, 1, "chat").parts
    cuts = [part.fragments for part in (first, second, other) if isinstance(part, Text)]
    assert len(set(cuts)) == 3
    assert resolve(one, 0, "chat").parts == (first, second)


def test_arguments_that_are_cut() -> None:
    """A call without arguments has no fragments, unless they are listed."""
    listed = turn("reply: {tool: f, id: c, arguments: '{}', split: ['{', '}']}")
    assert listed.parts == (ToolCall("f", "c", ("{", "}")),)
    assert turn("reply: {tool: f, id: c, split: chars}").parts == (ToolCall("f", "c"),)
    empty = turn("reply: {tool: f, id: c, split: ['', '']}")
    assert empty.parts == (ToolCall("f", "c", ("", "")),)


# The requests of a client that plays a scenario


@pytest.mark.parametrize(
    ("match", "text"),
    [
        ("", "Hello"),
        ("match: {user: weather}", "weather"),
        ("match: {user: {equals: exact}}", "exact"),
        ("match: {user: {regex: '(?i)rain|snow'}}", "rain"),
        ("match: {user: {regex: '[0-9]{3}'}}", "Hello"),
        ("match: {user: {any: [{regex: '[0-9]{3}'}, weather]}}", "weather"),
        ("match: {user: {all: [weather, Paris, {not: Rome}]}}", "weather Paris"),
        ("match: {user: {not: weather}}", "Hello"),
        ("match: {model: m}", "Hello"),
    ],
)
def test_a_user_message_for_a_scenario(match: str, text: str) -> None:
    """One that meets its condition, if that can be known."""
    assert user_text(scenario("reply: {text: x}", head=match)) == text


@pytest.mark.parametrize("api", PROTOCOLS)
def test_the_first_request_of_a_client(api: str) -> None:
    """For a streamed answer, with the tools of the scenario, and with usage."""
    protocol = PROTOCOLS[api]
    one = scenario("reply: {text: x}", head="tools: [{name: f, parameters: {type: object}}]")
    request = first_request(protocol, one, "hi there", "some-model")
    offered = ["f"] if protocol.client.tool_fields else []
    assert (request.stream, [tool.name for tool in request.tools]) == (True, offered)
    assert [message.text for message in request.messages if message.role == "user"] == ["hi there"]
    parsed = protocol.parse(
        first_body(protocol, "some-model", "x"), client_target(protocol, "some-model"), True
    )
    assert request.model == parsed.model
    assert first_request(protocol, scenario("reply: {text: x}"), "x", "m").tools == ()
    assert protocol.client.usage.items() <= request.body.items()
