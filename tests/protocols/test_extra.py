"""`extra`: the fields of an answer that no neutral type holds are found, and added again."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mockllm.core.frame import Frame
from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, Text, TokenUsage, ToolCall, Turn
from mockllm.errors import WireError
from mockllm.protocols import PROTOCOLS
from mockllm.protocols import extra as extras
from mockllm.protocols.base import Reply, WireProtocol, dumps
from mockllm.protocols.extra import apply_to_body, content, difference
from mockllm.protocols.field_patch import merged, patch_of, patched
from mockllm.protocols.normalisation import answer_in, in_envelope, normalized, value_of
from tests.cases import for_all
from tests.strategies import every_part, json_values, turns
from tests.test_laws import usual_request

CHAT = PROTOCOLS["chat"]
TURN = Turn(
    (Reasoning(("hm", " so", "")), Text(("Hel", "lo")), ToolCall("f", "call_1", ("{}",))),
    "tool_calls",
    TokenUsage(3, 4),
)

protocols = st.sampled_from(list(PROTOCOLS.values()))


def reply_of(protocol: WireProtocol, seed: str = "a") -> Reply:
    return Reply(seed, seed.rjust(40, "0"), "m", protocol.options(usual_request(protocol)))


def encoded(protocol: WireProtocol, turn: Turn, *, streamed: bool = True) -> list[Frame]:
    """The frames of a turn; a body in its envelope."""
    reply = replace(reply_of(protocol), usage=turn.usage or TokenUsage(0, 0))
    if not streamed:
        return [Frame(dumps(in_envelope(protocol, protocol.encode_body(turn, reply))))]
    encoder = protocol.encoder(turn, reply)
    return [frame for timed in expand(turn) for frame in encoder.encode(timed.event)]


def apply(
    protocol: WireProtocol, frames: list[Frame], extra: Any, *, streamed: bool
) -> list[Frame]:
    """The frames with the fields of an extra."""
    if not streamed:
        bodies = [apply_to_body(answer_in(protocol, value_of(frame)), extra) for frame in frames]
        return [Frame(dumps(in_envelope(protocol, body))) for body in bodies]
    return [frame for _, frame in extras.apply(protocol, [(0, one) for one in frames], extra)]


def changed(frames: list[Frame], change: Any) -> list[Frame]:
    """The frames with a change of each JSON object."""
    out = []
    for frame in frames:
        value = value_of(frame)
        if isinstance(value, dict):
            change(value)
            frame = replace(frame, data=dumps(value))
        out.append(frame)
    return out


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a value, outermost first."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [found for item in inner for found in objects(item)]


keys = st.sampled_from(["x_a", "x/b", "x~c", "x_ü", "x.d", "x_0"])
numbers = st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.data(), protocols, st.booleans())
def test_extra_fields_come_back(
    data: st.DataObject, protocol: WireProtocol, streamed: bool
) -> None:
    """Fields that a service adds anywhere are found in any turn of any API, and `apply` adds them
    to the encoded frames again."""
    turn = data.draw(turns(every_part, endings=streamed))
    ours = encoded(protocol, protocol.project(turn), streamed=streamed)
    recorded = []
    for frame in ours:
        value = deepcopy(value_of(frame))
        places = objects(answer_in(protocol, value) if not streamed else value)
        places = [one for one in places if "content_block" not in one and "input" not in one]
        for place in data.draw(st.lists(st.sampled_from(places), max_size=2)) if places else ():
            place[data.draw(keys)] = data.draw(json_values | numbers)
        recorded.append(replace(frame, data=dumps(value)) if isinstance(value, dict) else frame)
    try:
        extra = difference(protocol, ours, recorded, streamed=streamed)
    except WireError as error:
        # A value of arguments or a schema is content, wherever it is an object.
        assume("fields of the service have" in str(error) or "reads" in str(error))
        return
    again = apply(protocol, ours, json.loads(json.dumps(extra)), streamed=streamed)
    assert normalized(protocol, again) == normalized(protocol, recorded)


@given(st.data(), protocols, turns(every_part))
def test_an_order_of_events_comes_back(
    data: st.DataObject, protocol: WireProtocol, turn: Turn
) -> None:
    """Events that a service adds, leaves out or sends later are found where they have no content,
    and `apply` sends them so."""
    ours = encoded(protocol, protocol.project(turn))
    assume(ours)
    recorded = list(ours)
    numbers = st.integers(0, len(ours) - 1)
    for number in data.draw(st.lists(numbers, max_size=2, unique=True)):
        value = value_of(ours[number])
        if isinstance(value, dict) and number:
            more = {**value, "choices": [], "candidates": [], "type": "odd", "x_a": number}
            recorded.insert(number + 1, Frame(dumps(more)))
    change = data.draw(st.sampled_from(["none", "drop", "move"]))
    at, to = data.draw(numbers), data.draw(numbers)
    if change != "none":
        one = recorded.pop(at)
        if change == "move":
            recorded.insert(to, one)
    try:
        extra = difference(protocol, ours, recorded, streamed=True)
    except WireError:
        return
    again = apply(protocol, ours, json.loads(json.dumps(extra)), streamed=True)
    assert normalized(protocol, again) == normalized(protocol, recorded)
    assert read(protocol, again) == read(protocol, recorded)


def test_events_of_the_service_are_added_and_left_out() -> None:
    """A chunk that the service adds is a copy of the one before with its changes, one that it does
    not send is dropped, and one that is no JSON is kept as text."""
    turn = Turn((Text(("Hel", "lo")),), None)
    ours = encoded(CHAT, turn)
    last = value_of(ours[-1])
    recorded = [*ours, Frame(dumps({**last, "choices": [], "moderation": True})), Frame("[DONE]")]
    extra = difference(CHAT, ours, recorded, streamed=True)
    patch = {"set": {"/choices": [], "/moderation": True}}
    assert extra == {"add": {"content#2": [patch, "[DONE]"]}}
    after = apply(CHAT, ours, extra, streamed=True)
    assert after[-1] == Frame("[DONE]")
    assert value_of(after[-2])["id"] == last["id"]
    extra = difference(CHAT, ours, ours[1:], streamed=True)
    assert extra["join"] == ["content#1"]


def test_events_of_items_are_moved() -> None:
    """Where events have types, those without new content may come in another order, and the field
    that counts them follows the order."""
    protocol = PROTOCOLS["responses"]
    ours = encoded(protocol, Turn((Reasoning(("hm",)), Text(("Hello",))), "stop"))
    types = [value_of(frame)["type"].removeprefix("response.") for frame in ours]
    done = types.index("output_item.done")
    recorded = [*ours[:done], *ours[done + 1 : -1], ours[done], ours[-1]]
    extra = difference(protocol, ours, recorded, streamed=True)
    ((name, after),) = extra["move"].items()
    assert (name, after) == (
        "response.output_item.done.reasoning#1",
        "response.output_item.done.message#1",
    )
    values = [value_of(frame) for frame in apply(protocol, ours, extra, streamed=True)]
    assert [value["sequence_number"] for value in values] == list(range(len(ours)))
    assert values[-2]["item"]["type"] == "reasoning"


def test_values_that_differ_in_each_event_are_a_list() -> None:
    """A field that every event of a kind has with another value is written as a list of values,
    and an edited turn with more events gets those that there are."""
    turn = Turn((Text(tuple("abcdef")),), "stop")
    ours = encoded(CHAT, turn)
    count = 0

    def change(chunk: dict[str, Any]) -> None:
        nonlocal count
        if "content" in chunk["choices"][0]["delta"] and "role" not in chunk["choices"][0]["delta"]:
            chunk["token"] = count = count + 1

    recorded = [*changed(ours[:-1], change), ours[-1]]
    extra = difference(CHAT, ours, recorded, streamed=True)
    assert extra == {"stream": {"content": {"each": {"/token": [1, 2, 3, 4, 5, 6]}}}}
    longer = encoded(CHAT, Turn((Text(tuple("abcdefgh")),), "stop"))
    after = [value_of(frame) for frame in apply(CHAT, longer, extra, streamed=True)[1:9]]
    assert [chunk.get("token") for chunk in after] == [1, 2, 3, 4, 5, 6, None, None]


rough = st.dictionaries(
    st.sampled_from(["id", "a", "usage", "logprobs", "choices", "x/y", "~", "content"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "t", "u"]),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["a", "id", "content", "0"]), inner, max_size=2)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@given(rough, rough)
@example({"a": None}, {"a": 0})
@example({"content": "t"}, {"a": "t"})
@example({"content": "t"}, {"a": [{"a": "t"}]})
@example({"a": {"a": 1}}, {"a": 1})
def test_a_patch_leads_from_one_value_to_the_other(ours: dict[str, Any], theirs: Any) -> None:
    """A patch of any two objects gives the second one, but for what comparisons leave out."""
    try:
        patch = patch_of(CHAT, ours, theirs, streamed=True)
    except WireError:
        assume(False)
    after = patched(ours, json.loads(json.dumps(patch)))
    frames = [Frame(dumps(after))], [Frame(dumps(theirs))]
    assert normalized(CHAT, frames[0]) == normalized(CHAT, frames[1])


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_equal_answers_have_no_extra(protocol: WireProtocol) -> None:
    """Two answers of one turn that differ in generated values alone have no extra."""
    encoder = protocol.encoder(TURN, reply_of(protocol, "other"))
    other = [frame for timed in expand(TURN) for frame in encoder.encode(timed.event)]
    assert difference(protocol, encoded(protocol, TURN), other, streamed=True) == {}


def test_null_and_absent_are_different() -> None:
    """A field that is null in the recording is set to null; one that is absent is removed."""
    ours = encoded(CHAT, TURN, streamed=False)

    def change(body: dict[str, Any]) -> None:
        body["choices"][0]["message"]["annotations"] = None

    recorded = changed(ours, change)
    extra = difference(CHAT, ours, recorded, streamed=False)
    assert extra == {"body": {"set": {"/choices/0/message/annotations": None}}}
    recorded = changed(ours, lambda body: body["choices"][0]["message"].pop("annotations"))
    extra = difference(CHAT, ours, recorded, streamed=False)
    assert extra == {"body": {"remove": ["/choices/0/message/annotations"]}}


def test_fields_of_all_events_are_written_once() -> None:
    """What every event has is under `*`, what a kind of event has under the kind, what one event
    has under its number."""
    ours = encoded(CHAT, TURN)
    number = 0

    def change(chunk: dict[str, Any]) -> None:
        nonlocal number
        chunk["provider"] = "P"
        if (chunk["choices"] or [{}])[0].get("delta", {}).get("tool_calls"):
            chunk["x"] = 1
            chunk["y"] = number = number + 1

    recorded = changed([f for f in ours if f.data != "[DONE]"], change)
    extra = difference(CHAT, ours[:-1], recorded, streamed=True)
    assert extra == {
        "stream": {
            "*": {"set": {"/provider": "P"}},
            "tool_calls": {"set": {"/x": 1, "/y": 1}},
            "tool_calls#2": {"set": {"/x": 1, "/y": 2}},
        }
    }


def renamed(chunk: dict[str, Any]) -> None:
    """Reasoning under the names of another service, as OpenRouter sends it."""
    for choice in chunk["choices"]:
        if (text := choice["delta"].pop("reasoning_content", None)) is not None:
            detail = {"type": "reasoning.text", "text": text, "format": "unknown"}
            choice["delta"] |= {"content": "", "reasoning": text, "reasoning_details": [detail]}


def test_text_is_copied_and_not_repeated() -> None:
    """An extra has no text of the model: under other names it is a copy, so that it follows when
    the text is edited."""
    ours = encoded(CHAT, TURN)
    extra = difference(CHAT, ours, changed(ours, renamed), streamed=True)
    assert "hm" not in json.dumps(extra)
    edited = replace(TURN, parts=(Reasoning(("other", " words", " here")), *TURN.parts[1:]))
    frames = encoded(CHAT, edited)
    after = apply(CHAT, frames, extra, streamed=True)[2:5]
    assert normalized(CHAT, after) == normalized(CHAT, changed(frames, renamed)[2:5])


@for_all("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@for_all("streamed", [True, False])
def test_a_changed_text_is_no_extra(protocol: WireProtocol, streamed: bool) -> None:
    """An extra never holds text of the model, though it could give the recorded frames."""
    if protocol.name == "agui" and not streamed:
        pytest.skip("every answer of AG-UI is streamed")
    ours = encoded(protocol, TURN, streamed=streamed)
    other = replace(TURN, parts=(TURN.parts[0], Text(("Hel", "p")), TURN.parts[2]))
    with pytest.raises(WireError, match="changes what a client reads"):
        difference(protocol, ours, encoded(protocol, other, streamed=streamed), streamed=streamed)


def test_a_further_event_is_no_extra() -> None:
    """Answers with different numbers of events differ in more than extra fields."""
    ours = encoded(CHAT, TURN)
    with pytest.raises(WireError, match=f"{len(ours) + 1} events were recorded"):
        difference(CHAT, ours, [*ours[:3], *ours[2:]], streamed=True)


def test_a_further_item_of_content_is_no_extra() -> None:
    """Lists of content keep their number of items: a further call is no extra field."""
    ours = encoded(CHAT, TURN, streamed=False)

    def change(body: dict[str, Any]) -> None:
        body["choices"][0]["message"]["tool_calls"].append({"type": "unknown"})

    with pytest.raises(WireError, match="tool_calls: 2 were recorded, the turn has 1"):
        difference(CHAT, ours, changed(ours, change), streamed=False)


def test_an_empty_list_of_calls_is_an_extra() -> None:
    """A list without items adds no content."""
    ours = encoded(CHAT, Turn((Text(("Hi",)),), "stop"), streamed=False)

    def change(body: dict[str, Any]) -> None:
        body["choices"][0]["message"]["tool_calls"] = []

    extra = difference(CHAT, ours, changed(ours, change), streamed=False)
    assert extra == {"body": {"set": {"/choices/0/message/tool_calls": []}}}


def test_a_large_field_is_no_extra() -> None:
    """An extra is bounded: a large answer of the service's own is kept on the tape alone."""
    ours = encoded(CHAT, TURN, streamed=False)
    recorded = changed(ours, lambda body: body.update(image="x" * 20_000))
    with pytest.raises(WireError, match="fields of the service have 200"):
        difference(CHAT, ours, recorded, streamed=False)


@pytest.mark.parametrize("value", [float("nan"), "\ud800"])
def test_what_no_file_can_hold_is_no_extra(value: object) -> None:
    """NaN and half of a surrogate pair cannot be written in YAML."""
    ours = encoded(CHAT, TURN, streamed=False)
    recorded = [Frame(json.dumps(json.loads(ours[0].data or "") | {"x": value}))]
    with pytest.raises(WireError, match="cannot be written"):
        difference(CHAT, ours, recorded, streamed=False)


@given(st.data(), protocols, turns(every_part), turns(every_part))
def test_an_extra_does_not_break_an_edited_turn(
    data: st.DataObject, protocol: WireProtocol, turn: Turn, edited: Turn
) -> None:
    """An extra that was found for one turn changes nothing that a client reads of another one."""
    ours = encoded(protocol, protocol.project(turn))
    recorded = changed(ours, lambda event: event.update(x_provider={"a": None}))
    extra = difference(protocol, ours, recorded, streamed=True)
    frames = encoded(protocol, protocol.project(edited))
    after = apply(protocol, frames, extra, streamed=True)
    assert [read(protocol, frames), len(after)] == [read(protocol, after), len(frames)]


def read(protocol: WireProtocol, frames: list[Frame]) -> Turn:
    from mockllm.core.events import Timed
    from mockllm.core.timeline import fold

    decoder = protocol.decoder()
    events = [event for frame in frames for event in decoder.decode(frame)] + decoder.close()
    return content(fold(Timed(0, event) for event in events))


@pytest.mark.parametrize(
    "patch",
    [
        {"set": {"/choices/9/x": 1}},
        {"set": {"/id/x": 1}},
        {"set": {"/choices/x": 1}},
        {"copy": {"/x": "/nowhere/y"}},
        {"copy": {"/choices/0/no/x": "/id"}},
        {"remove": ["/nothing", "/choices/0", "/id/x"]},
    ],
)
def test_what_leads_nowhere_is_left_out(patch: dict[str, Any]) -> None:
    """An operation whose pointer leads nowhere changes nothing, and is no error."""
    body = {"id": "a", "choices": [{"index": 0}]}
    assert apply_to_body(body, {"body": patch}) == body


def test_patches_are_applied_as_one() -> None:
    """A value that one patch sets and another fills with a copy is complete."""
    patches = [{"copy": {"/a/b": "/t"}}, {"set": {"/a": {"b": ""}}, "remove": ["/t"]}]
    assert patched({"t": "x"}, merged(patches)) == {"a": {"b": "x"}}
