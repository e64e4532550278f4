"""Long values in files beside the YAML: which ones, and that nothing changes by it."""

import base64
import json
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.compilation.tape_player import is_unedited
from mockllm.play.replay.loading import load
from mockllm.record.recording.drafting.draft import LIVE, files_of, with_files
from mockllm.record.recording.drafting.drafts import Drafting
from mockllm.record.recording.store.folder import Folder
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Match, Scenario, TurnSpec
from mockllm.scenario.part_model import (
    AudioPart,
    FramePart,
    ImagePart,
    InterleavedPart,
    MediaSource,
    ParallelPart,
    ReasoningPart,
    ServerToolPart,
    TextPart,
    ToolPart,
)
from mockllm.scenario.yamltext import TextFile
from tests.record.recording.exchanging import JSON, exchange
from tests.scenario.strategies import replies

BASE64 = "QUJD" * 200
PICTURE = {"image_generation_call": {"result": BASE64}}
KINDS = {
    "signature of reasoning": ReasoningPart("Hm", signature=BASE64),
    "signature of a text": TextPart("Hi", signature=BASE64),
    "signature of a call": ToolPart("f", arguments="{}", signature=BASE64),
    "result of a server tool": ServerToolPart(
        "web_search", "ws_1", output=json.dumps({"encrypted_content": BASE64})
    ),
    "frame": FramePart("responses", json.dumps(PICTURE)),
    "frame of JSON": FramePart("responses", PICTURE),
    "long text": TextPart("word " * 20_000),
    "long reasoning": ReasoningPart("word " * 20_000),
    "call in parallel": ParallelPart((ToolPart("f", "a", "{}", signature=BASE64), ToolPart("g"))),
    "image": ImagePart(MediaSource(b"\x89PNG" * 200, "image/png")),
    "sound": AudioPart(MediaSource(b"RIFF" * 200, "audio/L16;rate=24000"), "Hello."),
    "interleaved": InterleavedPart((TextPart("Hi"), ReasoningPart("Hm", signature=BASE64)), (1, 0)),
}


ENDINGS = {"image": ".png", "sound": ".bin"}
"""Of the files that hold bytes and no text."""


def names():
    """A function that gives new names of files."""
    numbers = count(1)
    return lambda ending: f"long.{next(numbers)}{ending}"


def written(turn, path):
    """The turn with its files, as it is loaded again from a folder."""
    changed, files = with_files(turn, names())
    for name, content in files.items():
        (path / name).write_bytes(content)
    scenario = Scenario("long", (changed,), match=Match(anything=True))
    text = dump(scenario)
    (path / "long.yaml").write_text(text, encoding="utf-8", newline="")
    (loaded,) = load([path])
    return loaded.turns[0], files, text


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_value_has_a_file(kind, tmp_path):
    """The YAML has the name of the file, and loading it gives an equal turn, which names the same
    file."""
    turn = TurnSpec(reply=(KINDS[kind],), finish="stop")
    loaded, files, text = written(turn, tmp_path)
    (name,) = files
    assert name == f"long.1{ENDINGS.get(kind, '.txt')}"
    assert files_of(loaded) == {name}
    assert max(map(len, text.splitlines())) < 120
    if kind not in ("frame of JSON", *ENDINGS):
        assert loaded.reply == turn.reply
    assert with_files(loaded, names()) == (loaded, {})


SHORT = {
    "short signature": ReasoningPart("Hm", signature="x" * 512),
    "text": TextPart("word " * 12_000),
    "fragments": TextPart("word " * 20_000, split=("word " * 10_000, "word " * 10_000)),
    "result": ServerToolPart("web_search", "ws_1", output=json.dumps(list(range(2_000)))),
    "frame": FramePart("responses", {"numbers": list(range(2_000))}),
    "arguments": ToolPart("f", arguments=json.dumps({"a": "word " * 500})),
}


@pytest.mark.parametrize("kind", SHORT)
def test_what_people_read_stays(kind, tmp_path):
    """Short values, texts with fragments, and readable JSON stay in the YAML."""
    turn = TurnSpec(reply=(SHORT[kind],), finish="stop")
    loaded, files, _ = written(turn, tmp_path)
    assert files == {}
    assert loaded.reply == turn.reply


long_texts = st.sampled_from([BASE64, "é" * 600, "a\r\nb\u2028" * 200, " " * 600, "\x00\x1b" * 300])


@st.composite
def long_turns(draw):
    """Turns with long values in any of their parts."""
    reply = [
        replace(part, signature=draw(st.none() | long_texts))
        if isinstance(part, TextPart | ReasoningPart | ToolPart)
        else part
        for part in draw(replies(("chat",), (), count()))
    ]
    return TurnSpec(reply=tuple(reply))


@given(long_turns())
def test_files_change_nothing(tmp_path_factory, turn):
    """Any reply, with long values in any of its parts, is loaded as it was."""
    loaded, files, _ = written(turn, tmp_path_factory.mktemp("folder"))
    assert loaded.reply == turn.reply
    assert files_of(loaded) == set(files)


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_file_is_an_edited_answer(kind, tmp_path):
    """Where a file was edited, the turn is another one, so that the tape is played no more."""
    loaded, (name,), _ = written(TurnSpec(reply=(KINDS[kind],), finish="stop"), tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content.replace(b"QUJD", b"QUJE", 1).replace(b"word", b"work", 1))
    if kind in ENDINGS:
        (tmp_path / name).write_bytes(content + b"more")
    (edited,) = load([tmp_path])
    assert edited.turns[0].reply != loaded.reply


def test_a_folder_writes_and_reads_the_files(tmp_path):
    """A recorded signature has a file beside the YAML, and the turn is still what its
    tape decodes to."""
    content = [
        {"type": "thinking", "thinking": "Hm", "signature": BASE64},
        {"type": "text", "text": "Hello"},
    ]
    value = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 3, "output_tokens": 2}
    value |= {"content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    url = "https://api.anthropic.com/v1/messages"
    sent = json.dumps(asked).encode()
    one = exchange(sent, [json.dumps(value).encode()], headers=JSON, url=url)
    folder, drafting = Folder(tmp_path), Drafting()
    for draft in drafting.add(one, LIVE):
        drafting.adopt_changes(draft, folder.write(draft))
    (loaded,) = load([tmp_path])
    (turn,) = loaded.turns
    (name,) = files_of(turn)
    assert (tmp_path / name).read_text() == BASE64
    assert BASE64 not in next(tmp_path.glob("*.yaml")).read_text()
    assert turn.reply[0].signature == BASE64
    assert isinstance(turn.reply[0].signature, TextFile)
    assert is_unedited(loaded, 0, Folder(tmp_path).tape(turn.recorded))


def test_a_folder_writes_and_reads_an_image(tmp_path):
    """A recorded image of Gemini has a file of its type beside the YAML, the recording decodes to
    it, and the tape is still played."""
    png = b"\x89PNG" * 200
    image = {"mimeType": "image/png", "data": base64.b64encode(png).decode()}
    part = {"inlineData": image, "thoughtSignature": "c2ln"}
    parts = [{"text": "Here."}, part]
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    value = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-image"}
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-image:generateContent"
    asked = {"contents": [{"role": "user", "parts": [{"text": "draw"}]}]}
    sent = json.dumps(asked).encode()
    one = exchange(sent, [json.dumps(value).encode()], headers=JSON, url=url)
    folder, drafting = Folder(tmp_path), Drafting()
    for draft in drafting.add(one, LIVE):
        drafting.adopt_changes(draft, folder.write(draft))
    (loaded,) = load([tmp_path])
    (turn,) = loaded.turns
    (name,) = files_of(turn)
    assert name.endswith(".png")
    assert (tmp_path / name).read_bytes() == png
    assert turn.reply[1].image.data == png
    assert turn.reply[1].signature == "c2ln"
    assert not turn.recorded.partial
    assert is_unedited(loaded, 0, Folder(tmp_path).tape(turn.recorded))
