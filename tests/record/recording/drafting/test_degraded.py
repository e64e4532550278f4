"""Answers that cannot be written whole: what stays in the YAML, and what the report names."""

import json

import pytest

from mockllm.play.replay.loading import loads
from mockllm.record.recording.drafting.draft import LIVE
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.scenario.dump import dump
from mockllm.scenario.part_model import FramePart, ReasoningPart, TextPart, ToolPart, visible_text
from tests.cases import for_all
from tests.record.recording.exchanging import JSON, asks, exchange, user

USAGE = {"prompt_tokens": 31, "completion_tokens": 32, "total_tokens": 63}
KIB = 1024


def drafted(one):
    """The only turn of an exchange as it is loaded again, its line, and the size of its YAML."""
    (draft,) = Drafting().add(one, LIVE)
    text = dump(draft.scenario)
    (loaded,) = loads(text)
    assert loaded == draft.scenario
    return loaded.turns[0], draft.report[0], len(text)


def call(name="look", arguments='{"a":1}', index=0):
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def body(text, *calls, finish="tool_calls", reasoning="Hm"):
    """An answer of Chat Completions that is not streamed."""
    message = {"role": "assistant", "content": text, "reasoning_content": reasoning}
    message["tool_calls"] = [
        {key: value for key, value in one.items() if key != "index"} for one in calls
    ]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    value |= {"choices": [choice], "usage": USAGE, "provider": "P"}
    return exchange(asks(user("hi"), stream=False), [json.dumps(value).encode()], headers=JSON)


def stream(fragments, *calls, finish="tool_calls", reasoning="Hm"):
    """A streamed answer of Chat Completions."""
    deltas = [{"role": "assistant", "content": None, "reasoning_content": reasoning}]
    deltas += [{"content": fragment} for fragment in fragments]
    deltas += [{"tool_calls": [one]} for one in calls]
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    values = [{**chunk, "choices": [choice]} for choice in choices]
    values.append({**chunk, "choices": [], "usage": USAGE})
    events = [f"data: {json.dumps(one)}\n\n".encode() for one in values]
    asked = asks(user("hi"), stream_options={"include_usage": True})
    return exchange(asked, [*events, b"data: [DONE]\n\n"])


def parts_of(turn, kind):
    members = (getattr(part, "parts", getattr(part, "calls", (part,))) for part in turn.reply)
    return [part for inner in members for part in inner if isinstance(part, kind)]


def check_the_rest(turn, finish="tool_calls"):
    """Reasoning, finish and usage of a turn that lacks something else."""
    assert [part.text for part in parts_of(turn, ReasoningPart)] == ["Hm"]
    assert (turn.usage.input, turn.usage.output) == (31, 32)
    assert turn.finish == (None if finish == "tool_calls" else finish)


@pytest.mark.parametrize("size", [300 * KIB, 3 * KIB * KIB])
def test_a_long_body_is_written_whole(size):
    """A long answer that is not streamed has no fragments to leave out, and keeps the fields of its
    service."""
    turn, line, _ = drafted(body("word " * (size // 5), call()))
    assert line.outcome == "neutral"
    assert "only the tape" not in line.description
    assert visible_text(turn.reply) == "word " * (size // 5)
    assert [part.name for part in parts_of(turn, ToolPart)] == ["look"]
    assert turn.extra_for("chat") == {"event": {"provider": "P"}}
    check_the_rest(turn)


def test_a_long_stream_is_written_whole():
    """A stream of 300 KiB in small fragments keeps its text, calls, reasoning, finish and usage;
    the fragments are on the tape."""
    fragments = ["word " * 80] * 900
    turn, line, size = drafted(stream(fragments, call(), call("find", index=1)))
    assert line.outcome == "neutral"
    assert "only the tape" not in line.description
    (text,) = parts_of(turn, TextPart)
    assert (text.text, text.split, turn.timing) == ("".join(fragments), 400, None)
    assert size < 2 * len(text.text)
    assert [part.name for part in parts_of(turn, ToolPart)] == ["look", "find"]
    check_the_rest(turn)


@pytest.mark.large
@pytest.mark.parametrize(
    ("answer", "size"),
    [
        pytest.param("body", 17, marks=pytest.mark.slow),
        pytest.param("stream", 17, marks=pytest.mark.slow),
        ("body", 10),
        ("stream", 10),
    ],
)
def test_a_huge_answer_is_shortened(answer, size):
    """Of a huge text the beginning is written; the line names the part, and calls, reasoning,
    finish and usage stay. 17 MiB are more than a line of a stream may have."""
    text = "word " * (size * KIB * KIB // 5)
    fragments = [text[at : at + KIB * KIB] for at in range(0, len(text), KIB * KIB)]
    one = body(text, call()) if answer == "body" else stream(fragments, call())
    turn, line, written = drafted(one)
    assert line.outcome == "partial"
    assert "only the tape has part 2, text (it takes " in line.description
    assert written < 100 * KIB
    assert text.startswith(visible_text(turn.reply))
    assert len(visible_text(turn.reply)) == 64 * KIB
    assert [(part.name, part.arguments) for part in parts_of(turn, ToolPart)] == [
        ("look", '{"a":1}')
    ]
    check_the_rest(turn)


@pytest.mark.large
@pytest.mark.slow
def test_a_huge_finish_is_kept():
    """The finish of a huge answer without calls is not the usual one."""
    turn, _, _ = drafted(body("word " * (2 * KIB * KIB), finish="length"))
    check_the_rest(turn, "length")


@pytest.mark.slow
def test_huge_arguments_are_left_out():
    """Arguments of 10 MiB are left out, and the call, its name and its id stay."""
    long = json.dumps({"a": "x" * (10 * KIB * KIB)})
    turn, line, size = drafted(body("Hello", call(arguments=long)))
    assert "only the tape has part 3, tool (it takes 10," in line.description
    (found,) = parts_of(turn, ToolPart)
    assert (found.name, found.id, found.arguments) == ("look", "call_0", None)
    assert visible_text(turn.reply) == "Hello"
    assert size < 10 * KIB
    check_the_rest(turn)


ODD = {
    "control characters": "a\x00b\x1bc\x7fd\x85e\u2028f\ufeffg\ufffe",
    "a line end": "a\r\nb",
    "half of a surrogate pair": "a\ud83db",
    "a name of 5,000 letters": "n" * 5_000,
    "nothing": "",
    "a space": " ",
}


@for_all("odd", ODD)
@for_all("where", ["name", "text", "arguments", "reasoning"])
@for_all("answer", [body, stream])
def test_odd_characters_lose_nothing_else(answer, where, odd):
    """Whatever a name, a text, arguments or reasoning has: the other parts, finish and usage are
    written, and the turn can be loaded."""
    given = ODD[odd]
    fields = {"name": "look", "text": "Hello", "arguments": '{"a":1}', "reasoning": "Hm"}
    fields[where] = json.dumps({"a": given}) if where == "arguments" else given
    text = fields["text"] if answer is body else [fields["text"]]
    calls = call(fields["name"], fields["arguments"]), call("find", "{}", 1)
    turn, line, _ = drafted(answer(text, *calls, reasoning=fields["reasoning"]))
    assert turn.usage.input == 31
    written = {
        "name": parts_of(turn, ToolPart)[0].name if where != "name" else "look",
        "text": visible_text(turn.reply) if where != "text" else "Hello",
        "arguments": parts_of(turn, ToolPart)[0].arguments if where != "arguments" else '{"a":1}',
        "reasoning": "".join(part.text for part in parts_of(turn, ReasoningPart))
        if where != "reasoning"
        else "Hm",
    }
    assert written == {"name": "look", "text": "Hello", "arguments": '{"a":1}', "reasoning": "Hm"}
    assert parts_of(turn, ToolPart)[-1].name == "find"
    assert not parts_of(turn, FramePart) or line.outcome == "partial"
