"""Sessions that have recorders of their own, on one server."""

from contextlib import ExitStack

import httpx
import pytest

from mockllm import ServerThread
from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import load, loads
from mockllm.serve.server.options import RecordOptions
from mockllm.wire.protocols import PROTOCOLS
from tests.serve.server.recording.odd_upstream import (
    CHUNKED,
    EVENTS,
    OddUpstream,
    script,
    text_events,
)
from tests.serve.server.recording.recorded_server import PATH, chat
from tests.timeouts import GIVE_UP

APIS = tuple(PROTOCOLS)

GREETING = "scenario: greeting\nmatch: {user: hello}\nturns: [{reply: {text: Mine.}}]"


@pytest.fixture
def served():
    """A server with a client of it."""
    with ExitStack() as stack:
        thread = stack.enter_context(ServerThread(loads(GREETING)))
        thread.http = stack.enter_context(httpx.Client(base_url=thread.url, timeout=GIVE_UP))
        yield thread


def record(served, session, folder, service, mode="add", scenarios=()):
    options = RecordOptions(folder, dict.fromkeys(APIS, service.url), mode)
    served.ask(served.server.assign, session, scenarios, record=options)


def post(served, session, text="hello"):
    return served.http.post(f"/s/{session}{PATH}", json=chat(text)).text


def names(folder):
    return sorted(scenario.name for scenario in load([folder]))


def test_each_session_has_its_own_recorder(served, tmp_path):
    """Two sessions record from different services into different folders; other sessions are served
    as before."""
    with (
        OddUpstream(script(*text_events("one"))) as first,
        OddUpstream(script(*text_events("two"))) as second,
    ):
        record(served, "a", tmp_path / "a", first)
        record(served, "b", tmp_path / "b", second)
        assert "one" in post(served, "a")
        assert "two" in post(served, "b", "good morning")
        assert "Mine." in post(served, "c")
        assert "Mine." in served.http.post(PATH, json=chat()).text
        for session in "ab":
            served.wait(served.server.end_recording, session)
        assert (len(first.requests), len(second.requests)) == (1, 1)
    assert names(tmp_path / "a") == ["hello"]
    assert names(tmp_path / "b") == ["good-morning"]


def test_unknown_requests_of_a_session_are_forwarded(served, tmp_path):
    """With `new_episodes` the session's scenarios answer the requests that they match, and the
    service answers the rest."""
    with OddUpstream(script(*text_events("one"))) as service:
        record(served, "a", tmp_path, service, "new_episodes", loads(GREETING))
        assert "Mine." in post(served, "a")
        assert "one" in post(served, "a", "more")
        served.wait(served.server.end_recording, "a")
    assert names(tmp_path) == ["more"]


def test_nothing_is_forwarded_after_a_recording_has_ended(served, tmp_path):
    """The session goes on with its scenarios, and the folder is complete."""
    with OddUpstream(script(*text_events("one"))) as service:
        record(served, "a", tmp_path, service, scenarios=loads(GREETING))
        post(served, "a")
        served.wait(served.server.end_recording, "a")
        assert "Mine." in post(served, "a")
        assert len(service.requests) == 1
    served.wait(served.server.end_recording, "a")
    served.wait(served.server.end_recording, "unknown")


def test_the_end_of_a_recording_cuts_open_streams(served, tmp_path):
    """The part that has arrived is recorded, and the client's connection breaks."""

    async def endless(request, wire):
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(text_events("one")[0])
        await wire.closed_by_peer()

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


def test_a_folder_that_cannot_be_loaded_is_an_error(served, tmp_path):
    """`assign` raises, and the session keeps the server's scenarios."""
    (tmp_path / "bad.yaml").write_text("scenario: bad\nturns: []\n")
    with OddUpstream(script(*text_events("one"))) as service:
        with pytest.raises(ScenarioError, match=r"bad\.yaml"):
            record(served, "a", tmp_path, service)
        assert "Mine." in post(served, "a")


def test_a_server_that_stops_ends_its_recordings(tmp_path):
    """Stopping the server ends the recordings of all sessions."""
    with (
        OddUpstream(script(*text_events("one"))) as service,
        ServerThread(()) as thread,
        httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
    ):
        record(thread, "a", tmp_path, service)
        assert "one" in client.post(f"/s/a{PATH}", json=chat()).text
    assert names(tmp_path) == ["hello"]
    assert not list(tmp_path.glob(".recording-*"))
