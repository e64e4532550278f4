"""Images and sounds of a reply: their files, their fragments, and how they are written back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.core.turn import Media
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import load, loads
from mockllm.scenario.dump import dump
from mockllm.scenario.part_model import AudioPart, ImagePart, MediaSource
from mockllm.scenario.reading.files import MAX_FILE


def scenario(folder: Path, *parts: str) -> Path:
    """A file with one scenario, whose reply has these parts."""
    path = folder / "media.yaml"
    lines = "".join(f"      - {{{part}}}\n" for part in parts)
    path.write_text(f"scenario: media\nturns:\n  - reply:\n{lines}")
    return path


def problem(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load([path])
    (only,) = caught.value.problems
    return str(only).removeprefix(str(path))


def test_a_file_has_the_bytes_and_its_name_the_type(tmp_path: Path) -> None:
    """A file beside the YAML is read when the scenario is loaded; dumped, its name comes back."""
    (tmp_path / "cat.PNG").write_bytes(b"\x89PNG")
    (tmp_path / "hello.raw").write_bytes(b"\0\1\2")
    path = scenario(
        tmp_path,
        "image: {file: cat.PNG}",
        'audio: {file: hello.raw, type: "audio/L16;rate=24000"}, transcript: Hello.',
    )
    (loaded,) = load([path])
    assert loaded.turns[0].reply == (
        ImagePart(MediaSource(b"\x89PNG", "image/png", "cat.PNG")),
        AudioPart(MediaSource(b"\0\1\2", "audio/L16;rate=24000", "hello.raw"), "Hello."),
    )
    path.write_text(dump(loaded))
    assert load([path]) == (loaded,)
    assert "cat.PNG" in path.read_text()
    assert "base64" not in path.read_text()


def test_a_file_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    """The problem says where the file is named, and what to do."""
    found = problem(scenario(tmp_path, "image: {file: cat.png}"))
    assert found == (
        ":4:17: turns[0].reply[0].image: 'cat.png' cannot be read: No such file or directory; "
        "put it there, or write it here as base64"
    )


def test_a_file_without_a_known_ending_needs_a_type(tmp_path: Path) -> None:
    """A name that shows no type, or a type of another kind, is a problem."""
    (tmp_path / "a.bin").write_bytes(b"a")
    (tmp_path / "a.wav").write_bytes(b"a")
    for name, shown in (("a.bin", "none"), ("a.wav", "audio/wav")):
        found = problem(scenario(tmp_path, f"image: {{file: {name}}}"))
        assert found.endswith(
            f"needs the key 'type', such as image/png; the name of the file shows {shown}"
        )


def test_a_large_file_is_a_problem(tmp_path: Path) -> None:
    """Files are bounded, as the YAML is."""
    (tmp_path / "a.png").write_bytes(bytes(MAX_FILE + 1))
    assert "is larger than 8 MiB" in problem(scenario(tmp_path, "image: {file: a.png}"))


def test_a_text_in_no_folder_names_no_file() -> None:
    """A scenario that is sent over HTTP has no files beside it."""
    with pytest.raises(ScenarioError, match="this text is in no folder"):
        loads("scenario: a\nturns: [{reply: {image: {file: cat.png}}}]")


def test_sound_is_cut_by_bytes_and_its_transcript_by_split() -> None:
    """`fragment_bytes` cuts the sound, `split` the transcript; each fragment has its time."""
    (loaded,) = loads(
        "scenario: a\nturns:\n  - reply: {audio: {base64: AAECAwQFBg==, type: audio/pcm}, "
        "transcript: Hello there., split: words, fragment_bytes: 3, every: 1ms}"
    )
    turn = resolve(loaded, 0, "chat")
    (sound,) = turn.parts
    pieces = (b"\0\1\2", b"\3\4\5", b"\6")
    assert sound == Media("audio/pcm", pieces, ("Hello", " there."))
    assert turn.gaps == (0, 1000, 1000, 1000, 1000, 0)


def test_fragments_alternate_while_there_are_both() -> None:
    """The transcript of a piece of sound comes just before it; the rest follows."""
    sound = Media("audio/pcm", (b"1", b"2", b"3"), ("a", "b"))
    assert [sound.beat(number) for number in range(5)] == [
        (b"", "a"),
        (b"1", ""),
        (b"", "b"),
        (b"2", ""),
        (b"3", ""),
    ]


def test_an_order_counts_the_fragments_of_both() -> None:
    """In `interleaved`, an image is one fragment, sound one for each fragment of its bytes and of
    its transcript."""
    text = (
        "scenario: a\nturns:\n  - reply:\n      interleaved:\n"
        "        - {image: {base64: AAAA, type: image/png}}\n"
        "        - {audio: {base64: AAAAAA==, type: audio/pcm}, transcript: a b, split: words, "
        "fragment_bytes: 3}\n      order: "
    )
    (loaded,) = loads(text + "[1, 1, 0, 1, 1]")
    assert resolve(loaded, 0, "chat").order == (1, 1, 0, 1, 1)
    with pytest.raises(ScenarioError, match="part 1 has 4 fragments and must be there as often"):
        loads(text + "[1, 0, 1]")
