"""What other processes and other services answered."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.serve.server.options import RecordOptions
from mockllm.serve.ui import live_page
from tests.conftest import Served
from tests.serve.ui.reading import page
from tests.serve.ui.test_events import ask
from tests.serve.ui.test_stream import SCENARIOS, answer_of, bytes_of
from tests.timeouts import GIVE_UP


def served(thread: ServerThread, client: httpx.Client) -> Served:
    return Served(thread, client)


@pytest.mark.slow
def test_requests_of_other_processes(tmp_path: Path) -> None:
    """A page shows what every process answered; bytes that another one sent are made again."""
    options = ServerOptions(state=f"sqlite:{tmp_path / 'state'}", page=live_page)
    with (
        ServerThread(loads(SCENARIOS), options) as first,
        ServerThread(loads(SCENARIOS), options) as second,
        httpx.Client(base_url=first.url, timeout=GIVE_UP) as one,
        httpx.Client(base_url=second.url, timeout=GIVE_UP) as other,
        page(first.url) as events,
    ):
        assert events.until("hello")["shared"]
        events.until("ready")
        received = ask(served(second, other), "hello").content
        row = events.row(scenario="hello", open=False)
        assert (row["session"], row["number"], row["outcome"]) == ("default", 1, "played")
        elsewhere = answer_of(served(first, one))["answer"]
        assert elsewhere["source"] == "made again"
        assert b"".join(map(bytes_of, elsewhere["parts"])) == received
        assert answer_of(served(second, other))["answer"]["source"] == "sent"
        ask(served(first, one), "timed")
        assert events.row(scenario="timed", open=False)["number"] == 2
        assert answer_of(served(first, one), 2)["answer"]["source"] == "sent"


@pytest.mark.slow
def test_what_a_service_answers(tmp_path: Path) -> None:
    """The bytes of the service, with the times at which they came, and what was written."""
    record = {"upstreams": {}, "folder": tmp_path / "recorded"}
    with ServerThread(loads(SCENARIOS)) as service:
        record["upstreams"] = {"chat": service.url}
        options = ServerOptions(record=RecordOptions(**record), page=live_page)
        with (
            ServerThread((), options) as recorder,
            httpx.Client(base_url=recorder.url, timeout=GIVE_UP) as client,
            page(recorder.url) as events,
        ):
            hello = events.until("hello")["recording"]
            assert hello == {
                "mode": "add",
                "folder": str(tmp_path / "recorded"),
                "upstreams": {"chat": service.url},
            }
            events.until("ready")
            received = ask(served(recorder, client), "hello, mail ada@example.org").content
            line = events.until("recorded")[0]
            assert (line["outcome"], line["lost"]) == ("neutral", False)
            assert line["redacted"] == [["e-mail address", 1]]
            assert "ada@" not in str(line)
            found = answer_of(served(recorder, client))["answer"]
            assert (found["source"], found["streamed"]) == ("sent", True)
            assert b"".join(map(bytes_of, found["parts"])) == received
            assert found["sum"]["text"] == "one two three"
            assert all(part["at"] is None for part in found["parts"])
            whole = client.get("/_mockllm/ui/recording").json()
            assert whole["totals"] == {"recorded": 1, "skipped": 0, "not_found": 0, "lost": 0}
            assert whole["lines"] == [line]
