"""kill -9 of a replica and of the store, in the middle of what official SDKs do through nginx."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import openai
import pytest

from tests.deployment.balancer.cluster import Cluster, wait_until
from tests.deployment.balancer.sdks import ASK, BROKEN, MODEL, Answers, ask, openai_client

pytestmark = pytest.mark.slow

STREAMS = """
scenario: stuck
match: {user: stuck}
turns: [{reply: {text: This never ends., split: words}, fault: {stall: {after: 1 event}}, repeat: true}]
---
scenario: pending
match: {user: pending}
turns:
  - attempts: [{fault: stall}]
    reply: {text: Second try.}
---
scenario: paced
match: {user: paced}
turns: [{reply: {text: one two three four five six seven eight, split: words, every: 40ms}, repeat: true}]
"""  # noqa: E501
PACED = "one two three four five six seven eight"
BUSY = """
scenario: busy
turns:
  - attempts: [{http: 429, retry_after: 1ms}, {http: 503, retry_after: 1ms}]
    reply: {text: Made it.}
"""


class Stream:
    """A chat stream that has begun."""

    def __init__(self, http: Answers, client: openai.OpenAI, question: str) -> None:
        self._stream = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": question}], stream=True
        )
        self.answer = http.answers[-1]
        self._chunks = iter(self._stream)
        self._first = next(self._chunks)

    def text(self) -> str:
        """Everything until its end."""
        chunks = [self._first, *self._chunks]
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    def close(self) -> None:
        self._stream.close()


@pytest.fixture
def whole(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster; whatever is killed is started again."""
    yield cluster
    if not cluster.store.is_alive:
        cluster.restart_store()
    for index, replica in enumerate(cluster.replicas):
        if not replica.is_alive:
            cluster.restart_replica(index)


def test_a_replica_is_killed(whole):
    """Its streams break off, all others go on to their end; a request that waits for its answer is
    answered by another replica, when the SDK sends it again; so is every request after that. The
    journal has what the dead one answered, and the verdict names it."""
    made = whole.make_session(STREAMS)
    session = made["session"]
    with ExitStack() as stack:
        http = stack.enter_context(Answers())
        client = stack.enter_context(openai_client(made["url"], http))
        stuck = [Stream(http, client, "stuck") for _ in range(3)]
        for one in stuck:
            stack.callback(one.close)
        assert {whole.index_of(one.answer) for one in stuck} == {0, 1, 2}
        victim = whole.index_of(stuck[0].answer)
        survivor = (victim + 1) % 3

        pool = stack.enter_context(ThreadPoolExecutor(1))
        retrying = stack.enter_context(Answers())
        pending = pool.submit(send_again, made["url"], retrying)
        journal = f"/_mockllm/journal?session={session}"
        wait_until(  # the replica whose turn it is, the victim, has it
            lambda: len(whole.read(survivor, journal)["exchanges"]) == 4, "it does not arrive"
        )
        paced = [Stream(http, client, "paced") for _ in range(3)]
        assert {whole.index_of(one.answer) for one in paced} == {0, 1, 2}

        whole.kill_replica(victim)
        with pytest.raises(BROKEN):
            stuck[0].text()
        others = [one for one in paced if whole.index_of(one.answer) != victim]
        assert [one.text() for one in others] == [PACED] * 2
        assert pending.result() == "Second try."
        assert [answer.status_code for answer in retrying.answers] == [502, 200]
        assert whole.index_of(retrying.answers[-1]) != victim
        assert [ask("chat", made["url"], http, "paced") for _ in range(3)] == [PACED] * 3

        exchanges = whole.read(survivor, journal)["exchanges"]
        attempts = [
            exchange["attempt"] for exchange in exchanges if exchange["scenario"] == "pending"
        ]
        played = [exchange["scenario"] for exchange in exchanges]
        # The last one that the victim began may be missing: `gaps` reports that.
        assert (played.count("stuck"), attempts) == (3, [1, 2])
        assert played.count("paced") in (5, 6)
        verdict = whole.read(survivor, f"/_mockllm/verify?session={session}")
        assert verdict["verdict"] == "unknown"
        assert verdict["gaps"]
    whole.restart_replica(victim)
    assert [one["scenario"] for one in whole.read(victim, journal)["exchanges"]] == played


def send_again(root: str, http: Answers) -> str:
    """A request by a client that retries."""
    with openai_client(root, http, retries=2) as client:
        done = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "pending"}]
        )
        return done.choices[0].message.content or ""


def test_the_store_is_killed(whole):
    """Streams go on, and what needs no state is answered; the rest is refused with 503, in the form
    of each API. When the store is back, everything goes on where it was, and the journal has what
    was answered meanwhile."""
    made = whole.make_session(BUSY)
    streams = whole.make_session(STREAMS)
    whole.http.delete(f"{whole.url}/_mockllm/sessions/default")
    with Answers() as http, openai_client(streams["url"], http) as client:
        assert ask("chat", made["url"], http) == 429
        paced = Stream(http, client, "paced")
        whole.kill_store()
        assert paced.text() == PACED
        for index in range(3):
            whole.wait_for_status(index, 503)
            assert whole.read(index, "/_mockllm/health")["status"] == "ok"

        plain = [ask(api, whole.url, http, "plain") for api in ASK for _ in range(3)]
        assert plain == ["Nothing is counted here."] * 3 * len(ASK)
        assert [ask(api, whole.url, http, "busy") for api in ASK] == [503] * len(ASK)
        with pytest.raises(openai.InternalServerError) as refused:
            ASK["responses"](made["url"], http, "hi")
        assert refused.value.code == "state_store_unavailable"
        assert "Start the store again" in refused.value.message
        journal = whole.http.get(f"{whole.url}/_mockllm/journal")
        assert (journal.status_code, list(journal.json())) == (503, ["error"])

        whole.restart_store()
        assert [ask("chat", made["url"], http) for _ in range(2)] == [503, "Made it."]
        assert [ask("chat", whole.url, http, "busy") for _ in range(3)] == [429, 503, "Made it."]
    journals = [
        whole.read(index, "/_mockllm/journal?session=default")["exchanges"] for index in range(3)
    ]
    assert journals[0] == journals[1] == journals[2]
    meanwhile = [one["outcome"] for one in journals[0][: 4 * len(ASK)]]
    assert meanwhile == ["played"] * 3 * len(ASK) + ["error"] * len(ASK)
    assert [one["status"] for one in journals[0][4 * len(ASK) :]] == [429, 503, 200]
    kept = whole.read(1, f"/_mockllm/journal?session={made['session']}")["exchanges"]
    assert [one["status"] for one in kept] == [429, 503, 503, 200]
