"""Clients under Node understand every sample as it is, and none of them spoils it for another."""

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
from mockllm.quirks.samples import SAMPLES, TEXT
from tests.conformance.client import Client, NotInstalledError
from tests.conformance.node_clients import NODE_CLIENTS, Node
from tests.conformance.playing import ask

pytestmark = pytest.mark.slow
with_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")

KNOWN = {
    ("AI SDK @ai-sdk/openai responses()", "sample-reasoning"): (
        "Of reasoning it tells summaries alone."
    ),
}
"""What clients make wrong of samples that are as they should be, and how."""


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=list(SAMPLES))
@pytest.mark.parametrize("client", NODE_CLIENTS, ids=lambda client: client.name)
def test_plain_samples(client: Client, sample) -> None:
    """Without quirks, a client comes to what the scenario says, as far as it can
    tell it, but for what is known."""
    try:
        client.version()
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    played = case(sample, client.api)
    policy = Policy(ignore=client.unseen, malformed="keep")
    found = differences(played, ask(client, played), policy)
    if (client.name, sample.name) in KNOWN:
        assert found, "the client gets it right now: take it off the list"
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
  return { text: "said" };
};
export const dies = () => process.kill(process.pid, "SIGKILL");
"""
"""Clients that break in every way."""


@pytest.fixture
def node() -> Iterator[Node]:
    """A process of its own for a test."""
    node = Node()
    yield node
    node.close()


@pytest.fixture
def asked(node: Node, tmp_path: Path):
    """Asks one of the clients that break."""
    file = tmp_path / "clients.mjs"
    file.write_text(_CLIENTS, "utf-8")
    played = case(TEXT, "chat")

    def ask(name: str, base_url: str = "") -> Outcome:
        return node.run(f"{file.as_uri()}#{name}")(base_url, played)

    return ask


@with_node
@pytest.mark.parametrize(
    ("name", "message", "crash"),
    [
        ("fails", "RangeError: too deep", True),
        ("hears", "TypeError: terminated", False),
        ("exits", "the client failed: it ended the program", True),
        ("hangs", "nobody can catch TypeError: too late", True),
    ],
)
def test_client_that_breaks(asked, name: str, message: str, crash: bool) -> None:
    """Whatever a client does is told as its error, and the next one is asked as if nothing were;
    a connection that breaks is no crash."""
    (trouble,) = asked(name).errors
    assert (trouble.message, trouble.crash) == (message, crash)
    assert asked("echoes", "next") == Outcome(text="next Hello")


@with_node
def test_client_that_forgets(asked) -> None:
    """What nobody can catch is told beside what the client says."""
    told = asked("forgets")
    assert told.text == "said"
    assert [trouble.message for trouble in told.errors] == ["nobody can catch Error: unseen"]


@with_node
def test_process_that_dies(asked) -> None:
    """The job that ends the whole process is told so, and for the next there is a new one."""
    (trouble,) = asked("dies").errors
    assert trouble.message == "Node failed: it ended with -9"
    assert trouble.crash
    assert asked("echoes", "next") == Outcome(text="next Hello")


@with_node
def test_many_at_once(asked) -> None:
    """Everybody gets the answer to what they asked, also beside clients that break."""
    names = [("exits", "hangs", "echoes")[number % 3] for number in range(30)]
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(asked, names, map(str, range(30))))
    for number, (name, outcome) in enumerate(zip(names, told, strict=True)):
        if name == "echoes":
            assert outcome == Outcome(text=f"{number} Hello")
        else:
            assert len(outcome.errors) == 1


def test_missing_package(tmp_path: Path) -> None:
    """Who has not installed a client is told how to."""
    if shutil.which("node") is None:
        with pytest.raises(NotInstalledError, match="Node is not installed"):
            Node(tmp_path).version("openai")
    else:
        with pytest.raises(NotInstalledError, match=r"openai is not here: `make .*installed`"):
            Node(tmp_path).version("openai")
