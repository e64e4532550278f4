"""Recorded turns on the command line."""

import json

import pytest

from mockllm.core.timed_bytes import TimedBytes
from mockllm.replay.loading import loads
from mockllm.tapes.dump import dump_tape
from mockllm.tapes.model import Tape, digest

TEXT = """\
scenario: greeting
match: {user: hello}
turns:
  - reply: {text: Hi!}
    recorded: greeting.1.jsonl
"""
DATA = b"event: x\r\ndata: caf\xc3\xa9\r\n\r\n"


@pytest.fixture
def recorded(tmp_path):
    """A folder with one recorded turn."""
    (tmp_path / "greeting.yaml").write_text(TEXT)
    turn = loads(TEXT)[0].turns[0]
    pieces = (TimedBytes(1_000, DATA[:20]), TimedBytes(1_500_000, DATA[20:]))
    tape = Tape("anthropic", True, 200, (), pieces, digest=digest(turn, "anthropic"))
    (tmp_path / "greeting.1.jsonl").write_bytes(dump_tape(tape))
    return tmp_path


def test_show_prints_the_recorded_bytes(mockllm, recorded):
    """They are what comes out, over the protocol that was recorded, and nothing else."""
    result = mockllm("show", "greeting", "--scenarios", recorded)
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, DATA, "")
    timed = mockllm("show", "greeting", "--scenarios", recorded, "--timing")
    assert timed.stdout_bytes.startswith(b"+0.001s event: x")
    assert b"+1.500s " in timed.stdout_bytes


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--api", "chat"], "other api"),
        (["--body"], "not streamed"),
        (["--api", "anthropic", "--quirk", "sse-bom"], "quirks"),
    ],
)
def test_show_tells_why_it_is_the_reply(mockllm, recorded, options, why):
    """Whoever asks for another answer gets it, and is told on standard error."""
    result = mockllm("show", "greeting", "--scenarios", recorded, *options)
    assert "Hi!" in result.stdout
    assert result.stderr == f"mockllm: the reply, not the recording ({why})\n"


def test_show_tells_what_is_wrong_with_a_tape(mockllm, recorded):
    """A broken tape leaves the reply to be shown."""
    (recorded / "greeting.1.jsonl").write_bytes(b"{}\n")
    result = mockllm("show", "greeting", "--scenarios", recorded)
    assert "Hi!" in result.stdout
    assert "greeting.1.jsonl:1:1: is no tape" in result.stderr


def test_validate_looks_at_the_first_line(mockllm, recorded):
    """A tape that is none is a problem of its own file."""
    tape = recorded / "greeting.1.jsonl"
    result = mockllm("validate", recorded)
    assert (result.exit_code, result.stdout) == (0, "1 scenario, no problems\n")
    tape.write_bytes(b'{"mockllm-tape": 2}\n')
    result = mockllm("validate", "--json", recorded)
    (problem,) = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (problem["file"], problem["line"]) == (str(tape), 1)
    assert problem["message"].startswith("is a tape of version 2")


def test_validate_finds_a_tape_that_is_not_there(mockllm, recorded):
    """It is a problem of the scenario that names it, with its place."""
    (recorded / "greeting.1.jsonl").unlink()
    result = mockllm("validate", recorded)
    assert result.exit_code == 1
    assert f"{recorded}/greeting.yaml:5:15: turns[0].recorded: 'greeting.1.jsonl'" in result.stdout


def test_serve_tells_where_it_is_not_the_recording(program, recorded):
    """The log has a word about each answer that could have been the recorded one."""
    from tests.cli.conftest import chat

    server = program("serve", recorded, "--port", "0").listening()
    status, _ = chat(server.url, "hello")
    assert status == 200
    assert server.line_with("played").endswith("not as recorded: other api")
