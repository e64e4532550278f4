"""Every client under Node reads plain samples correctly, and a broken client affects no other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mockllm.checking.cases.compile import case
from mockllm.checking.judging.compare import differences
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.quirks.samples import CALL_AT_LIMIT, SAMPLES, TEXT
from tests.conformance.client import Client, NotInstalledError
from tests.conformance.node_clients import NODE_CLIENTS, Node
from tests.conformance.playing import play

pytestmark = pytest.mark.slow
with_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")

KNOWN_DIFFERENCES = {
    ("AI SDK @ai-sdk/openai responses()", "sample-reasoning"): (
        "Of reasoning it reports only summaries."
    ),
    ("AI SDK @ai-sdk/openai responses()", "sample-reasoning-and-call"): (
        "Of reasoning it reports only summaries."
    ),
}
"""Known mistakes of clients with plain samples, by client and sample."""

WHOLE = {name: sample for name, sample in SAMPLES.items() if sample is not CALL_AT_LIMIT}
"""The samples whose arguments parse: clients treat others in different ways."""


@pytest.mark.parametrize("sample", WHOLE.values(), ids=list(WHOLE))
@pytest.mark.parametrize("client", NODE_CLIENTS, ids=lambda client: client.name)
def test_plain_samples(client: Client, sample) -> None:
    """The outcome of a plain sample is the expected one, except for known differences."""
    try:
        client.version()
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    played = case(sample, client.api)
    policy = Policy(ignore=client.unseen, malformed="keep")
    found = differences(played, play(client, played), policy)
    if (client.name, sample.name) in KNOWN_DIFFERENCES:
        assert found, "the client is correct now: remove the entry"
    else:
        assert found == []


_CLIENTS = """
export const echoes = (job) => ({ text: `${job.base_url} ${job.prompt}` });
export const fails = async () => { throw new RangeError("too deep"); };
export const hears = async () => {
  throw new TypeError("terminated", { cause: new Error("other side closed") });
};
export const exits = () => process.exit(3);
export const hangs = () => {
  setTimeout(() => { throw new TypeError("too late"); });
  return new Promise(() => {});
};
export const forgets = async () => {
  void Promise.reject(new Error("unseen"));
  return { text: "done" };
};
export const dies = () => process.kill(process.pid, "SIGKILL");
"""
"""Clients that fail in every way."""


@pytest.fixture
def node() -> Iterator[Node]:
    """A Node process for one test."""
    node = Node()
    yield node
    node.close()


@pytest.fixture
def run_client(node: Node, tmp_path: Path):
    """Runs one of the clients that fail."""
    file = tmp_path / "clients.mjs"
    file.write_text(_CLIENTS, "utf-8")
    played = case(TEXT, "chat")

    def run(name: str, base_url: str = "") -> Outcome:
        return node.run(f"{file.as_uri()}#{name}")(base_url, played)

    return run


@with_node
@pytest.mark.parametrize(
    ("name", "message", "crash"),
    [
        ("fails", "RangeError: too deep", True),
        ("hears", "TypeError: terminated", False),
        ("exits", "the client failed: it ended the program", True),
        ("hangs", "uncaught TypeError: too late", True),
    ],
)
def test_a_client_that_fails(run_client, name: str, message: str, crash: bool) -> None:
    """A failure of a client is its error, and the next job succeeds; a broken connection is no
    crash."""
    (trouble,) = run_client(name).errors
    assert (trouble.message, trouble.crash) == (message, crash)
    assert run_client("echoes", "next") == Outcome(text="next Hello")


@with_node
def test_an_unhandled_rejection(run_client) -> None:
    """An unhandled rejection is an error beside the client's outcome."""
    outcome = run_client("forgets")
    assert outcome.text == "done"
    assert [trouble.message for trouble in outcome.errors] == ["uncaught Error: unseen"]


@with_node
def test_a_process_that_ends(run_client) -> None:
    """A job that ends the process has an error, and a new process runs the next job."""
    (trouble,) = run_client("dies").errors
    assert trouble.message == "Node failed: it ended with -9"
    assert trouble.crash
    assert run_client("echoes", "next") == Outcome(text="next Hello")


@with_node
def test_many_at_once(run_client) -> None:
    """Every job gets its own outcome, also in parallel with clients that fail."""
    names = [("exits", "hangs", "echoes")[number % 3] for number in range(30)]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(run_client, names, map(str, range(30))))
    for number, (name, outcome) in enumerate(zip(names, outcomes, strict=True)):
        if name == "echoes":
            assert outcome == Outcome(text=f"{number} Hello")
        else:
            assert len(outcome.errors) == 1


def test_missing_package(tmp_path: Path) -> None:
    """A missing package is an error with the command that installs it."""
    if shutil.which("node") is None:
        with pytest.raises(NotInstalledError, match="Node is not installed"):
            Node(tmp_path).version("openai")
    else:
        with pytest.raises(NotInstalledError, match=r"openai is not here: `make .*installed`"):
            Node(tmp_path).version("openai")
