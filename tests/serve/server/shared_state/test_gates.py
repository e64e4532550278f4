"""Gates over several servers: a release reaches the one that holds the answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.serve.server.shared_state.replicas import replicas
from tests.timeouts import GIVE_UP

TEXT = "scenario: s\nmatch: any\nturns:\n- {reply: hi there, gate: door, repeat: true}\n"


def test_a_release_reaches_the_server_that_holds_the_answer(state: str) -> None:
    """The others see who waits. While nothing waits, no server looks into the store."""
    with replicas(TEXT, state) as servers, ThreadPoolExecutor() as pool:
        answer = pool.submit(servers.chat, "hello", to=0)
        found = servers.send("GET", "/_mockllm/gates/door?wait=1m", to=1).body
        assert found == {"session": "default", "gate": "door", "open": False, "waiting": [1]}
        opened = servers.send("POST", "/_mockllm/gates/door/release", to=2).body
        assert opened == {"session": "default", "gate": "door", "open": True}
        assert answer.result(GIVE_UP).status == 200
        assert servers.everywhere("/_mockllm/gates/door")["waiting"] == []
        assert all(one.server._parts.control.gates()._looking is None for one in servers.servers)
        (entry,) = servers.everywhere("/_mockllm/journal?session=default")["exchanges"]
        assert (entry["gates"][0]["gate"], entry["gates"][0]["ended"]) == ("door", "released")


def test_a_release_before_the_request(state: str) -> None:
    """Any server knows of it, until the session is reset."""
    with replicas(TEXT, state) as servers, ThreadPoolExecutor() as pool:
        for _ in range(2):
            servers.send("POST", "/s/mine/_mockllm/gates/door/release", to=0)
        for to in range(3):
            assert servers.chat("hello", to=to, x_mockllm_session="mine").status == 200
        servers.send("POST", "/_mockllm/sessions/mine/reset", to=1)
        answer = pool.submit(servers.chat, "hello", to=2, x_mockllm_session="mine")
        found = servers.send("GET", "/_mockllm/gates/door?session=mine&wait=1m", to=0).body
        assert (found["open"], found["waiting"]) == (False, [1])
        servers.send("POST", "/_mockllm/gates/door/release?session=mine", to=1)
        assert answer.result(GIVE_UP).status == 200


def test_a_gate_that_nobody_opens(state: str) -> None:
    """The verdict of every server says so."""
    limited = TEXT.replace("gate: door", "gate: {name: door, limit: 5ms}")
    with replicas(limited, state) as servers:
        assert servers.chat("hello").status == 200
        found = servers.everywhere("/_mockllm/verify?session=default")
        assert (found["verdict"], found["unopened"]) == ("bad", [{"request": 1, "gate": "door"}])
