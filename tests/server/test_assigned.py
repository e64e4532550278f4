"""Sessions with recorders of their own, on one server."""

from contextlib import ExitStack

import httpx
import pytest

from mockllm import ServerThread
from mockllm.errors import ScenarioError
from mockllm.replay.loading import load, loads
from mockllm.scenario.model import APIS
from mockllm.server.options import RecordOptions
from tests.server.odd_upstream import CHUNKED, EVENTS, OddUpstream, says, script
from tests.server.recording import PATH, chat

GREETING = "scenario: greeting\nmatch: {user: hello}\nturns: [{reply: {text: Mine.}}]"


@pytest.fixture
def served():
    """A server, and a client of it."""
    with ExitStack() as stack:
        thread = stack.enter_context(ServerThread(loads(GREETING)))
        thread.http = stack.enter_context(httpx.Client(base_url=thread.url, timeout=20))
        yield thread


def record(served, session, folder, service, mode="add", scenarios=()):
    options = RecordOptions(folder, dict.fromkeys(APIS, service.url), mode)
    served.ask(served.server.assign, session, scenarios, record=options)


def ask(served, session, text="hello"):
    return served.http.post(f"/s/{session}{PATH}", json=chat(text)).text


def names(folder):
    return sorted(one.name for one in load([folder]))


def test_each_session_records_for_itself(served, tmp_path):
    """Two sessions with services and folders of their own; all others are served as before."""
    with OddUpstream(script(*says("one"))) as first, OddUpstream(script(*says("two"))) as second:
        record(served, "a", tmp_path / "a", first)
        record(served, "b", tmp_path / "b", second)
        assert "one" in ask(served, "a")
        assert "two" in ask(served, "b", "good morning")
        assert "Mine." in ask(served, "c")
        assert "Mine." in served.http.post(PATH, json=chat()).text
        for session in "ab":
            served.wait(served.server.end_recording, session)
        assert (len(first.asked), len(second.asked)) == (1, 1)
    assert names(tmp_path / "a") == ["hello"]
    assert names(tmp_path / "b") == ["good-morning"]


def test_what_is_new_in_a_session_is_forwarded(served, tmp_path):
    """With `new_episodes` its own scenarios answer what they know, and the service the rest."""
    with OddUpstream(script(*says("one"))) as service:
        record(served, "a", tmp_path, service, "new_episodes", loads(GREETING))
        assert "Mine." in ask(served, "a")
        assert "one" in ask(served, "a", "more")
        served.wait(served.server.end_recording, "a")
    assert names(tmp_path) == ["more"]


def test_no_service_is_asked_when_a_recording_has_ended(served, tmp_path):
    """The session goes on with its scenarios; the folder is complete."""
    with OddUpstream(script(*says("one"))) as service:
        record(served, "a", tmp_path, service, scenarios=loads(GREETING))
        ask(served, "a")
        served.wait(served.server.end_recording, "a")
        assert "Mine." in ask(served, "a")
        assert len(service.asked) == 1
    served.wait(served.server.end_recording, "a")
    served.wait(served.server.end_recording, "unknown")


def test_the_end_of_a_recording_cuts_what_still_passes(served, tmp_path):
    """What came so far is recorded, and the client is told by a broken connection."""

    async def endless(request, wire):
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(says("one")[0])
        await wire.gone()

    with OddUpstream(endless) as service:
        record(served, "a", tmp_path, service)
        with served.http.stream("POST", f"/s/a{PATH}", json=chat()) as answer:
            lines = answer.iter_lines()
            assert "one" in next(lines)
            served.wait(served.server.end_recording, "a")
            with pytest.raises(httpx.RemoteProtocolError):
                list(lines)
    (scenario,) = load([tmp_path])
    assert len(scenario.turns) == 1


def test_a_folder_that_cannot_be_loaded_is_told(served, tmp_path):
    """Nothing is assigned then."""
    (tmp_path / "bad.yaml").write_text("scenario: bad\nturns: []\n")
    with OddUpstream(script(*says("one"))) as service:
        with pytest.raises(ScenarioError, match=r"bad\.yaml"):
            record(served, "a", tmp_path, service)
        assert "Mine." in ask(served, "a")


def test_a_server_that_stops_ends_its_recordings(tmp_path):
    """Nobody has to end each of them."""
    with (
        OddUpstream(script(*says("one"))) as service,
        ServerThread(()) as thread,
        httpx.Client(base_url=thread.url) as client,
    ):
        record(thread, "a", tmp_path, service)
        assert "one" in client.post(f"/s/a{PATH}", json=chat()).text
    assert names(tmp_path) == ["hello"]
    assert not list(tmp_path.glob(".recording-*"))
