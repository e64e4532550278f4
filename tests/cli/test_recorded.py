"""Recorded turns in `show`, `validate` and `serve`."""

import json

import pytest

from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import dump_tape
from tests.play.tapes.making import taped

TEXT = """\
scenario: greeting
match: {user: hello}
turns:
  - reply: {text: Hi! café}
    finish: none
    usage: none
    recorded: greeting.1.jsonl
"""
DELTA = {"type": "text_delta", "text": "Hi! café"}
EVENT = {"type": "content_block_delta", "index": 0, "delta": DELTA}
DATA = f"event: x\r\ndata: {json.dumps(EVENT)}\r\n\r\n".encode()


@pytest.fixture
def recorded(tmp_path):
    """A folder with one recorded turn."""
    (tmp_path / "greeting.yaml").write_text(TEXT)
    chunks = (TimedBytes(1_000, DATA[:20]), TimedBytes(1_500_000, DATA[20:]))
    tape = taped("anthropic", True, 200, (), chunks)
    (tmp_path / "greeting.1.jsonl").write_bytes(dump_tape(tape))
    return tmp_path


def test_show_prints_the_recorded_bytes(mockllm, recorded):
    """The output is the recorded body, over the recorded API."""
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
def test_show_reports_why_it_prints_the_reply(mockllm, recorded, options, why):
    """Options that the recording does not fit print the reply, and the reason on standard error."""
    result = mockllm("show", "greeting", "--scenarios", recorded, *options)
    assert "Hi!" in result.stdout
    assert result.stderr == f"mockllm: the reply, not the recording ({why})\n"


def test_show_reports_a_broken_tape(mockllm, recorded):
    """With a broken tape the reply is printed, and the problem on standard error."""
    (recorded / "greeting.1.jsonl").write_bytes(b"{}\n")
    result = mockllm("show", "greeting", "--scenarios", recorded)
    assert "Hi!" in result.stdout
    assert "greeting.1.jsonl:1:1: is no tape" in result.stderr


def test_validate_reads_the_first_line_of_a_tape(mockllm, recorded):
    """A file that is not a tape is a problem with its own location."""
    tape = recorded / "greeting.1.jsonl"
    result = mockllm("validate", recorded)
    assert (result.exit_code, result.stdout) == (0, "1 scenario, no problems\n")
    tape.write_bytes(b'{"mockllm-tape": 3}\n')
    result = mockllm("validate", "--json", recorded)
    (problem,) = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (problem["file"], problem["line"]) == (str(tape), 1)
    assert problem["message"].startswith("is a tape of version 3")


def test_validate_reports_a_missing_tape(mockllm, recorded):
    """A missing tape is a problem at the scenario line that names it."""
    (recorded / "greeting.1.jsonl").unlink()
    result = mockllm("validate", recorded)
    assert result.exit_code == 1
    assert f"{recorded}/greeting.yaml:7:15: turns[0].recorded: 'greeting.1.jsonl'" in result.stdout


@pytest.mark.slow
def test_serve_logs_why_an_answer_is_not_the_recording(program, recorded):
    """The log line of an answer that is not the recording has the reason."""
    from tests.cli.conftest import chat

    server = program("serve", recorded, "--port", "0").listening()
    status, _ = chat(server.url, "hello")
    assert status == 200
    assert server.line_with("played").endswith("not as recorded: other api")
