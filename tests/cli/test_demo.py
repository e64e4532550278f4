"""`mockllm demo` and its drawing."""

import io

import pytest

from mockllm.cli.demo import Board, Screen
from mockllm.core import events as ev
from tests.apis import CALLING, OVER_HTTP


def test_the_demo_plays_every_api(mockllm):
    """Over each API both calls arrive, their results are sent, and the answer is printed; in a page
    that a reader can take in."""
    result = mockllm("demo", "--speed", "0")
    assert result.exit_code == 0, result.stderr
    for title in (
        "OpenAI Chat Completions  POST /v1/chat",
        "OpenAI Responses  POST /v1/resp",
        "Anthropic Messages  POST /v1/messages",
        "Google Gemini  POST /v1beta/models/",
        "AG-UI  POST /agui",
        "Ollama  POST /api/chat",
        "Cohere Chat  POST /v2/chat",
        "Amazon Bedrock Converse  POST /model/",
    ):
        assert title in result.stdout
    calling = set(CALLING) & set(OVER_HTTP)
    for called in ('{"name":"alice"} ✓\n', '{"name":"bob"} ✓\n'):
        assert result.stdout.count(f"get_secret_number  {called}") == len(calling)
    with_ids = len(calling) - 1  # all but Gemini
    assert result.stdout.count("tools: call_alice = 42, call_bob = 7") == with_ids
    assert result.stdout.count("Alice's number is 42, Bob's is 7. ✓\n") == len(calling)
    assert "OpenAI Completions (legacy) has no tool calls" in result.stdout
    assert len(result.stdout.splitlines()) < 90
    assert "\x1b" not in result.stdout


def test_a_part_has_the_time_of_its_last_fragment():
    """Chat ends all its calls with the stream: each is shown at the time at which it was whole, and
    not all at the end."""
    stream = io.StringIO()
    screen, board = Screen(stream, redraws=False), Board()
    begun = [ev.ToolStart(0, "call_1", "add"), ev.ToolStart(1, "call_2", "sub")]
    for at, events in (
        (0.1, begun),
        (0.2, [ev.ToolArgs(0, "{}")]),
        (0.3, [ev.ToolArgs(1, "{}")]),
        (0.4, [ev.PartEnd(0), ev.PartEnd(1)]),
    ):
        screen.update(board, board.frame("", events), at)
    first, second = stream.getvalue().splitlines()
    assert first.split()[:3] == ["0.20", "s", "call_1"]
    assert second.split()[:3] == ["0.30", "s", "call_2"]


def test_the_demo_ends_with_next_commands(mockllm):
    """The demonstration ends with commands to go on with."""
    end = mockllm("demo", "--speed", "0").stdout.partition("Next:")[2]
    for command in ("mockllm init", "mockllm serve", "curl -N http://127.0.0.1:8080/v1/"):
        assert command in end


CALLS = [
    ("one", [ev.Start("id"), ev.ToolStart(0, "call_1", "add"), ev.ToolStart(1, "call_22", "sub")]),
    ("two", [ev.ToolArgs(1, '{"a"')]),
    ("three", [ev.ToolArgs(1, ":1}"), ev.PartEnd(1)]),
    ("four", [ev.TextDelta(2, "Hi "), ev.TextDelta(2, "there")]),
]


def test_a_board_returns_the_changed_lanes():
    """A frame returns the lanes of its parts that changed, each once."""
    board = Board()
    changed = [[lane.label for lane in board.frame(*frame)] for frame in CALLS]
    assert changed == [["call_1", "call_22"], ["call_22"], ["call_22"], ["text"]]
    assert [lane.text for lane in board.lanes.values()] == ["", '{"a":1}', "Hi there"]
    assert board.lanes[1].done
    assert (board.chunks, board.size) == (4, len("onetwothreefour"))


def test_a_replaced_text_is_drawn_as_it_is_now():
    """A final value that contradicts the fragments replaces them, and its lane has changed."""
    board = Board()
    board.frame("one", [ev.TextDelta(0, "Helo")])
    (lane,) = board.frame("two", [ev.Replacement(0, "Hello")])
    assert lane.text == "Hello"


def drawn(screen, stream):
    board = Board()
    for number, frame in enumerate(CALLS[:3]):
        screen.update(board, board.frame(*frame), number / 10)
    screen.end(board, 0.3)
    return stream.getvalue()


def test_plain_output_has_a_line_for_each_complete_lane():
    """Without a terminal, a lane is a line once it is complete, aligned with the others."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    drawn(Screen(stream), io.StringIO())
    assert stream.buffer.getvalue().decode().splitlines() == [
        '    0.20 s  call_22  sub  {"a":1} ✓',
        "            3 events, 11 bytes, 0.30 s",
    ]


def test_unencodable_characters_are_escaped():
    """Characters that the output's encoding lacks are escaped."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    screen = Screen(stream)
    drawn(screen, io.StringIO())
    screen.line("é")
    assert stream.buffer.getvalue().endswith(b"\\xe9\n")
    assert b'{"a":1} ok\n' in stream.buffer.getvalue()


def test_a_terminal_redraws_in_place(monkeypatch):
    """On a terminal the lanes are redrawn in place, cut to its width."""
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    screen = Screen(stream, redraws=True)
    text = drawn(screen, stream)
    assert text.count("\x1b[4F") == 3
    board = Board()
    board.frame("x", [ev.TextDelta(0, "long " * 40)])
    screen.update(board, [], 0.0)
    assert "…" in stream.getvalue()


@pytest.mark.parametrize(("terminal", "redraws"), [(True, True), (False, False)])
def test_the_screen_suits_the_output(terminal, redraws):
    """Only a terminal gets control characters."""

    class Output(io.TextIOWrapper):
        def isatty(self):
            return terminal

    data = io.BytesIO()
    output = Output(data, encoding="utf-8", write_through=True)
    drawn(Screen(output), io.StringIO())
    assert (b"\x1b" in data.getvalue()) == redraws
