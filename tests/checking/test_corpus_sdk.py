"""The examination of recorded streams by the official clients, played to them over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mockllm.core.events import StreamError
from mockllm.core.turn import Text, TokenUsage, ToolCall, Turn
from mockllm.protocols import PROTOCOLS
from tests.checking.streams import CHAT, CORPUS, chat, responses, write
from tools.accumulators import Said
from tools.corpus import examine, main, recordings
from tools.sdks import FAULTS, compare, differences, playing

pytestmark = pytest.mark.slow

HELPER = "openai chat.completions.stream()"
CHUNKS = "openai chat.completions.create(stream=True), chunks added up"


@pytest.mark.parametrize("name", ["text", "call", "provider", "error"])
def test_the_client_makes_the_same_of_it(name: str) -> None:
    """Text, calls, finish, usage and errors are those of the client's own helper."""
    found = examine(chat(name))
    assert (found.sdk, found.sdk_via, found.sdk_note) == ("equal", HELPER, "")


def test_responses_too() -> None:
    """The Responses client accumulates the same turn."""
    found = examine(responses())
    assert (found.sdk, found.sdk_via) == ("equal", "openai responses.stream()")


def test_where_the_helper_breaks_its_chunks_are_added_up() -> None:
    """A content that is a list breaks the helper, which is told; the chunks say the same."""
    found = examine(chat("lists"))
    assert (found.sdk, found.sdk_via) == ("equal", CHUNKS)
    assert found.sdk_note.startswith(f"{HELPER} breaks: ")


@pytest.mark.parametrize(
    ("name", "fault"), [("list", FAULTS[0]), ("late", FAULTS[1]), ("groq", FAULTS[2])]
)
def test_a_fault_of_the_client_is_excused(name: str, fault) -> None:
    """What the client loses is excused with the reason, and nothing else is."""
    found = examine(chat(name))
    assert (found.sdk, found.sdk_note, found.passed) == ("excused", fault.reason, True)
    wrong = Turn((), "length", TokenUsage(5, 3))
    assert compare("chat", CHAT[name], wrong).outcome == "differs"


def test_a_fault_excuses_only_what_the_chunks_do_not_tell() -> None:
    """Text that the helper loses is still compared with the chunks that the client parsed."""
    verdict = compare("chat", CHAT["list"], Turn((Text(("xb",)),), "stop", TokenUsage(5, 3)))
    assert (verdict.outcome, verdict.via) == ("differs", CHUNKS)


HELLO = Turn((Text(("Hello",)),), "stop", TokenUsage(5, 3))


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn((Text(("Hallo",)),), "stop", TokenUsage(5, 3)), "text: the SDK has 'Hello'"),
        (Turn(HELLO.parts, "length", HELLO.usage), "finish: the SDK has 'stop', decoded 'length'"),
        (Turn(HELLO.parts, "stop", TokenUsage(5, 4)), "usage: the SDK has (5, 3, None, None)"),
        (Turn((*HELLO.parts, ToolCall("f", "a")), "stop", HELLO.usage), "calls: the SDK has 0"),
        (Turn(HELLO.parts, error=StreamError("no")), "error: the SDK raises None"),
    ],
)
def test_a_wrong_turn_differs(turn: Turn, words: str) -> None:
    """A turn that is not what the client got differs, in the field where it does."""
    verdict = compare("chat", CHAT["text"], turn)
    assert (verdict.outcome, verdict.note.startswith(words)) == ("differs", True), verdict


CALLS = [
    (("call_a", "f", '{"x":1}'), None),
    (("call_a", "f", {"x": 1}), None),
    (("", "f", {"x": 1}), None),
    (("call_b", "f", '{"x":1}'), "calls: the SDK has f (call_b), decoded f (call_a)"),
    (("call_a", "f", '{"x": 1}'), "calls: the SDK has f with '{\"x\": 1}', decoded '{\"x\":1}'"),
    (("call_a", "f", {"x": 2}), "calls: the SDK has f with {'x': 2}, decoded '{\"x\":1}'"),
]


@pytest.mark.parametrize(("said", "words"), CALLS)
def test_calls_are_compared_raw_and_parsed(said, words: str | None) -> None:
    """Arguments are compared letter for letter where the client has them so, else by value."""
    turn = Turn((ToolCall("f", "call_a", ('{"x":1}',)),), "tool_calls")
    found = differences("chat", turn, Said(calls=(said,), finish="tool_calls"))
    assert found.get("calls") == words


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing client is said, with what to do, and is no failure."""
    monkeypatch.setitem(sys.modules, "openai", None)
    found = examine(chat("text"))
    assert (found.sdk, found.passed) == ("n.a.", True)
    assert found.sdk_note == "openai is not installed: pip install openai"


def test_a_protocol_without_such_a_client() -> None:
    """Where no official client accumulates, there is nothing to compare."""
    verdict = compare("agui", b"", Turn())
    assert (verdict.outcome, verdict.note) == ("n.a.", "no official client that accumulates agui")


def test_the_player_gives_its_port_back() -> None:
    """Two streams may be played at once, each at its own address."""
    with playing(b"a") as one, playing(b"b") as other:
        assert one != other
        assert one.startswith("http://127.0.0.1:")


def test_the_command_asks_the_clients(tmp_path: Path, capsys) -> None:
    """The command says for each stream what the client made of it."""
    write(tmp_path, chat("text"))
    assert main([str(tmp_path)]) == 0
    assert f"SDK equal: yes [{HELPER}], re-encodes equal: yes" in capsys.readouterr().out


def recorded() -> list:
    known = [one for one in recordings(CORPUS) if one.api in PROTOCOLS] if CORPUS.exists() else []
    skip = pytest.mark.skip(reason="no corpus of recorded streams beside this checkout")
    return [pytest.param(one, id=f"{one.api}-{one.name}") for one in known] or [
        pytest.param(None, marks=skip)
    ]


@pytest.mark.parametrize("one", recorded())
def test_recorded_streams_are_what_the_client_makes_of_them(one) -> None:
    """Every stream decodes to what the official client accumulates, its own faults aside."""
    found = examine(one)
    assert found.decoded, found.error
    assert found.sdk in ("equal", "excused"), found.sdk_note
    assert found.sdk == "equal" or found.sdk_note in "; ".join(fault.reason for fault in FAULTS)
    assert found.as_frames == (found.reencoded is not None)
