"""The examination of recorded streams with the official clients over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mockllm.core.events import StreamError
from mockllm.core.turn import Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.corpus import corpus_recordings, needs_corpus
from tests.tools.streams import CHAT, chat, responses, write
from tools.accumulators import ClientOutcome
from tools.corpus import examine, main
from tools.sdks import FAULTS, compare, differences, playing

pytestmark = pytest.mark.slow

HELPER = "openai chat.completions.stream()"
CHUNKS = "openai chat.completions.create(stream=True), chunks added up"


@pytest.mark.parametrize("name", ["text", "call", "provider", "error"])
def test_the_turn_equals_that_of_the_client(name: str) -> None:
    """Text, calls, finish, usage and errors equal those of the client's own helper."""
    found = examine(chat(name))
    assert (found.sdk, found.sdk_via, found.sdk_note) == ("equal", HELPER, "")


def test_responses_too() -> None:
    """The Responses client accumulates the same turn."""
    found = examine(responses())
    assert (found.sdk, found.sdk_via) == ("equal", "openai responses.stream()")


def test_chunks_are_compared_if_the_helper_breaks() -> None:
    """Content that is a list breaks the helper, which is noted; the chunks are compared instead."""
    found = examine(chat("lists"))
    assert (found.sdk, found.sdk_via) == ("equal", CHUNKS)
    assert found.sdk_note.startswith(f"{HELPER} breaks: ")


@pytest.mark.parametrize(
    ("name", "fault"), [("list", FAULTS[0]), ("late", FAULTS[1]), ("groq", FAULTS[2])]
)
def test_a_fault_of_the_client_is_excused(name: str, fault) -> None:
    """A known loss of the client is excused with its reason; another difference is not."""
    found = examine(chat(name))
    assert (found.sdk, found.sdk_note, found.passed) == ("excused", fault.reason, True)
    other = Turn((), "length", TokenUsage(5, 3))
    assert compare("chat", CHAT[name], other).outcome == "differs"


def test_a_fault_excuses_nothing_that_the_chunks_have() -> None:
    """Text that the helper loses is still compared with the client's chunks."""
    verdict = compare("chat", CHAT["list"], Turn((Text(("xb",)),), "stop", TokenUsage(5, 3)))
    assert (verdict.outcome, verdict.via) == ("differs", CHUNKS)


HELLO = Turn((Text(("Hello",)),), "stop", TokenUsage(5, 3))


@pytest.mark.parametrize(
    ("turn", "note"),
    [
        (Turn((Text(("Hallo",)),), "stop", TokenUsage(5, 3)), "text: the SDK has 'Hello'"),
        (Turn(HELLO.parts, "length", HELLO.usage), "finish: the SDK has 'stop', decoded 'length'"),
        (Turn(HELLO.parts, "stop", TokenUsage(5, 4)), "usage: the SDK has (5, 3, None, None)"),
        (Turn((*HELLO.parts, ToolCall("f", "a")), "stop", HELLO.usage), "calls: the SDK has 0"),
        (Turn(HELLO.parts, error=StreamError("no")), "error: the SDK raises None"),
    ],
)
def test_another_turn_differs(turn: Turn, note: str) -> None:
    """Another turn than the client's differs, and the note names the field."""
    verdict = compare("chat", CHAT["text"], turn)
    assert (verdict.outcome, verdict.note.startswith(note)) == ("differs", True), verdict


CALLS = [
    (("call_a", "f", '{"x":1}'), None),
    (("call_a", "f", {"x": 1}), None),
    (("", "f", {"x": 1}), None),
    (("call_b", "f", '{"x":1}'), "calls: the SDK has f (call_b), decoded f (call_a)"),
    (("call_a", "f", '{"x": 1}'), "calls: the SDK has f with '{\"x\": 1}', decoded '{\"x\":1}'"),
    (("call_a", "f", {"x": 2}), "calls: the SDK has f with {'x': 2}, decoded '{\"x\":1}'"),
]


@pytest.mark.parametrize(("call", "note"), CALLS)
def test_calls_are_compared_raw_and_parsed(call, note: str | None) -> None:
    """Arguments are compared verbatim if the client has them as text, else by value."""
    turn = Turn((ToolCall("f", "call_a", ('{"x":1}',)),), "tool_calls")
    found = differences("chat", turn, ClientOutcome(calls=(call,), finish="tool_calls"))
    assert found.get("calls") == note


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing client is noted with the command that installs it, and is no failure."""
    monkeypatch.setitem(sys.modules, "openai", None)
    found = examine(chat("text"))
    assert (found.sdk, found.passed) == ("n.a.", True)
    assert found.sdk_note == "openai is not installed: pip install openai"


def test_a_protocol_without_such_a_client() -> None:
    """Without an accumulating official client the verdict is n.a."""
    verdict = compare("agui", b"", Turn())
    assert (verdict.outcome, verdict.note) == ("n.a.", "no official client that accumulates agui")


def test_two_streams_are_played_at_once() -> None:
    """Two streams may be played at once, each at its own URL."""
    with playing(b"a") as one, playing(b"b") as other:
        assert one != other
        assert one.startswith("http://127.0.0.1:")


def test_the_command_compares_with_the_client(tmp_path: Path, capsys) -> None:
    """The line of each stream has the comparison with the client."""
    write(tmp_path, chat("text"))
    assert main([str(tmp_path)]) == 0
    assert f"SDK equal: yes [{HELPER}], re-encodes equal: yes" in capsys.readouterr().out


@needs_corpus
@for_all(
    "one",
    [recording for recording in corpus_recordings() if recording.api in PROTOCOLS],
    ids=lambda one: f"{one.api}-{one.name}",
)
def test_recorded_streams_decode_as_the_client_does(one) -> None:
    """Every stream decodes to what the official client accumulates, except for its faults."""
    found = examine(one)
    assert found.decoded, found.error
    assert found.sdk in ("equal", "excused"), found.sdk_note
    assert found.sdk == "equal" or found.sdk_note in "; ".join(fault.reason for fault in FAULTS)
    assert found.as_frames == (found.reencoded is not None)
