"""A disk that takes no more: streams go on, nothing half-written stays, each loss is counted."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import chat as ask
from tests.cli.conftest import program
from tests.serve.server.recording.odd_upstream import OddUpstream, script, text_events
from tests.serve.server.recording.recorded_server import Recording, chat

__all__ = ["program"]

EVENTS = text_events("hi")
FULL = "it cannot be written: No space left on device"


@pytest.fixture
def recorder(tmp_path):
    """A recorder in front of a service that answers every request with "hi"."""
    with OddUpstream(script(*EVENTS)) as upstream:
        yield Recording(tmp_path / "recorded", upstream)


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 256 KiB; skips where none can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system can be mounted: {error}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, left: int = 0) -> Path:
    """Fills a file system, except for some bytes; the file that fills it."""
    file = folder / "filling"
    with file.open("wb", buffering=0) as opened:
        try:
            while True:
                opened.write(bytes(1024))
        except OSError:
            opened.truncate(max(0, opened.tell() - left))
    return file


def test_a_full_disk(recorder, small_disk):
    """The client's stream is whole, and when there is room again all is recorded."""
    recorder.folder = small_disk / "recorded"
    with recorder.recording():
        assert recorder.post(chat("first")).content == b"".join(EVENTS)
        filling = fill(small_disk)
        assert recorder.post(chat("second")).content == b"".join(EVENTS)
        filling.unlink()
        assert recorder.post(chat("third")).content == b"".join(EVENTS)
    assert [line.lost for line in recorder.lines] == [False] * 3
    assert recorder.scenarios().keys() == {"first", "second", "third"}
    assert not list(recorder.folder.glob(".recording-*"))


def in_the_way(recorder):
    """A folder in the place of a file that the recorder writes before it renames it."""
    folder = recorder.folder / ".in-the-way.yaml.unfinished"
    folder.mkdir()
    return folder


def test_what_could_not_be_written_is_tried_again(recorder):
    """An exchange that could not become a scenario does so before the next one, and its
    conversation goes on."""
    history = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
    ]
    with recorder.recording():
        obstacle = in_the_way(recorder)
        assert recorder.post(chat("hello")).status_code == 200
        assert recorder.post(chat("else")).status_code == 200
        obstacle.rmdir()
        assert recorder.post(chat("more", *history)).status_code == 200
    assert [line.lost for line in recorder.lines] == [False] * 3
    assert {name: len(one.turns) for name, one in recorder.scenarios().items()} == {
        "hello": 2,
        "else": 1,
    }


def test_what_cannot_be_written_at_the_end_is_reported(recorder, capfd):
    """A line on standard error gives the reason at once. What still cannot be written when the
    recorder ends is lost, with a line for each exchange, and nothing is left of it."""
    with recorder.recording():
        obstacle = in_the_way(recorder)
        assert recorder.post(chat("hello")).status_code == 200
        assert recorder.post(chat("else")).status_code == 200
    assert [line.lost for line in recorder.lines] == [True] * 2
    assert all("cannot be written" in line.description for line in recorder.lines)
    assert "an exchange waits, for it cannot be written: " in capfd.readouterr().err
    obstacle.rmdir()
    assert [file.name for file in recorder.folder.iterdir()] == [".recording.lock"]
    recorder.lines.clear()
    with recorder.recording():
        assert recorder.post(chat("hello")).status_code == 200
    assert [(line.scenario, line.lost) for line in recorder.lines] == [("hello", False)]


@pytest.mark.slow
def test_the_program_ends_with_1(program, recorder, small_disk):
    """`mockllm record` prints how many exchanges are not recorded, on both outputs, and exits with
    1."""
    folder = small_disk / "recorded"
    options = ("--upstream", recorder.upstream.url, "-o", folder, "--port", "0")
    running = program("record", *options).listening()
    assert ask(running.url, "first")[0] == 200
    assert running.line_with("recorded: turn 1 of first")
    fill(small_disk)
    assert ask(running.url, "second")[0] == 200
    running.signal()
    code, output, errors = running.end()
    assert f"not recorded: POST /v1/chat/completions: {FULL}\n" in output
    assert code == 1
    summary = (
        "1 recorded; 1 not recorded, of them 1 that could not be written (see their lines above)"
    )
    assert output.endswith(f"{summary}\n")
    assert FULL in errors.splitlines()[0]
    assert errors.endswith(f"mockllm: {summary}\n")
