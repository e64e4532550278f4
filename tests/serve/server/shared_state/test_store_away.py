"""A store that is killed and comes back: what needs it gets a 503, nothing finished is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.quota_plan import read_quotas
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import OVER_HTTP
from tests.serve.server.shared_state.replicas import Replicas, redis_server, replicas
from tests.serve.server.shared_state.test_replicas import SCENARIOS

pytestmark = pytest.mark.slow

TEXT = SCENARIOS + "---\nscenario: plain\nmatch: {user: plain}\nturns: [{reply: [{text: p}]}]\n"


def test_a_store_that_comes_back(tmp_path: Path) -> None:
    """Requests that need no state are answered meanwhile, and are in the journal afterwards."""
    with redis_server(tmp_path) as store, replicas(TEXT, store.url) as servers:
        assert [servers.chat("hello").status for _ in range(2)] == [429, 503]
        assert servers.chat("plain").status == 200
        servers.everywhere("/_mockllm/journal")
        store.kill()
        refused = servers.chat("hello")
        assert refused.status == 503
        assert refused.body["error"]["code"] == "state_store_unavailable"
        assert "the number of the attempt" in refused.body["error"]["message"]
        assert [servers.chat("plain").status for _ in range(6)] == [200] * 6
        for path in ("/_mockllm/journal", "/_mockllm/verify", "/_mockllm/sessions"):
            assert servers.send("GET", path).status == 503
        store.start()
        while servers.chat("hello").status != 200:  # each server finds it again by itself
            pass
        journal = servers.everywhere("/_mockllm/journal")
        entries = [entry for entry in journal["exchanges"] if entry["scenario"] == "plain"]
        assert [entry["status"] for entry in entries] == [200] * 7
        assert journal["dropped"] == 0
        assert _away(servers) == (True, True)


def test_quotas_while_the_store_is_away(tmp_path: Path) -> None:
    """Nobody knows what is left: requests are refused, and not for the quota."""
    quotas = read_quotas(["requests=5 per=1440m"])
    with (
        redis_server(tmp_path) as store,
        replicas(TEXT, store.url, 2, quotas=quotas) as servers,
    ):
        assert servers.chat("plain").status == 200
        store.kill()
        refused = servers.chat("plain", to=0)
        assert refused.status == 503
        assert "needs what is left of the quotas from it" in refused.body["error"]["message"]


def _away(servers: Replicas) -> tuple[bool, bool]:
    """Whether the log says that the store went away, and that it is back."""
    return (
        any("cannot be reached" in line for line in servers.notices),
        any("is back" in line for line in servers.notices),
    )


def test_named_sessions_while_the_store_is_away(tmp_path: Path) -> None:
    """One that a process has seen goes on there, with its own scenarios if it has some. Of another
    one nothing is known."""
    own = "scenario: own\nturns:\n- {reply: [{text: own text}], repeat: true}\n"
    with redis_server(tmp_path) as store, replicas(TEXT, store.url, 2) as servers:
        asked = {"session": "mine", "scenarios": own}
        assert servers.send("POST", "/_mockllm/sessions", asked, to=0).status == 201
        for session in ("mine", "plain"):
            assert servers.chat("plain", to=0, x_mockllm_session=session).status == 200
        assert servers.chat("plain", to=1, x_mockllm_session="other").status == 200
        deleted = {"session": "deleted", "scenarios": own}
        assert servers.send("POST", "/_mockllm/sessions", deleted, to=0).status == 201
        assert servers.send("DELETE", "/_mockllm/sessions/deleted", to=0).status == 200
        store.kill()
        for session, text in (("mine", "own text"), ("plain", "p")):
            answer = servers.chat("plain", to=0, x_mockllm_session=session)
            assert answer.body["choices"][0]["message"]["content"] == text
        for to, session in ((0, "other"), (0, "deleted"), (1, "mine"), (1, "plain")):
            refused = servers.chat("plain", to=to, x_mockllm_session=session)
            assert refused.status == 503
            assert "needs the setup of its session" in refused.body["error"]["message"]
        store.start()
        while servers.chat("plain", to=1, x_mockllm_session="mine").status != 200:
            pass
        for session, count in (("mine", 3), ("plain", 2), ("other", 1)):
            summary = servers.everywhere(f"/_mockllm/sessions/{session}")
            outcomes = summary["outcomes"]
            assert outcomes["played"] == count, summary


@pytest.mark.parametrize("api", [name for name in OVER_HTTP if name != "echo"])
def test_the_shape_of_the_error(tmp_path: Path, api: str) -> None:
    """A request that needs the store gets a 503 as its API writes it."""
    text = "scenario: s\nmatch: any\nturns:\n- {attempts: [{http: 429}], reply: [{text: x}]}\n"
    protocol = PROTOCOLS[api]
    body = dict(first_body(protocol, "m", "hello"))
    with redis_server(tmp_path) as store, replicas(text, store.url, 1) as servers:
        store.kill()
        path = protocol.client.path_of("m", stream=False)
        body.pop("stream", None)
        answer = servers.send("POST", path, body)
        assert answer.status == 503
        assert "state store" in str(answer.body)


def test_a_server_that_starts_before_its_store(tmp_path: Path) -> None:
    """It answers what needs no state, and finds the store when it comes."""
    with redis_server(tmp_path) as store:
        store.kill()
        with replicas(TEXT, store.url, 1) as servers:
            assert servers.chat("plain").status == 200
            assert servers.chat("hello").status == 503
            store.start()
            while servers.chat("hello").status == 503:
                pass
            assert servers.send("GET", "/_mockllm/sessions/default").status == 200


def test_a_refused_request_may_have_been_counted(tmp_path: Path) -> None:
    """The verdict is `unknown`, unless headers say which request is the next try: then its number
    shows whether an answer was left out."""
    with redis_server(tmp_path) as store, replicas(TEXT, store.url, 1) as servers:
        for session, key in (("named", "k"), ("unnamed", "")):
            headers = {"x_mockllm_session": session, "idempotency_key": key}
            assert servers.chat("hello", **headers).status == 429
            servers.everywhere("/_mockllm/journal")
            store.kill()
            refused = servers.chat("hello", **headers)
            assert refused.body["error"]["code"] == "state_store_unavailable"
            store.start()
            code = servers.chat("hello", **headers, x_stainless_retry_count="1").body["error"][
                "code"
            ]
            assert code != "state_store_unavailable"
            assert servers.chat("hello", **headers).status == 200
        named, unnamed = (
            servers.everywhere(f"/_mockllm/verify?session={session}")
            for session in ("named", "unnamed")
        )
        assert (named["verdict"], "maybe_counted" in named) == ("good", False)
        assert (unnamed["verdict"], unnamed["maybe_counted"]) == ("unknown", [2])
