"""The runner of clients under Node: a client that fails affects no other, and errors have the place
that raised them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from measurements.entries import CLIENTS, ROOT
from tests.timeouts import GIVE_UP

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not (CLIENTS / "node_modules" / "smol-toml").is_dir(),
        reason="Node or the clients' packages are not here: `make ready` installs them",
    ),
]

_ADAPTER = """
import { parse } from "smol-toml";
export const echoes = ({ prompt }) => ({ text: prompt, finish: 3, tool_calls: [{}] });
export const fails = async () => { throw new RangeError("too deep"); };
export const parses = () => parse("no toml");
export const reads = () => JSON.parse("{");
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
  console.log("printed");
  return { text: "done" };
};
export const either = (job) => ({ exits, hangs, echoes })[job.prompt](job);
"""
"""A client that fails in every way."""


@pytest.fixture
def answers(tmp_path: Path):
    """Sends jobs to the client of a function; returns its hello and the answers by id."""

    def run(function: str, *prompts: str, api: str = "chat") -> dict[Any, Any]:
        folder = CLIENTS / "node_modules" / ".mockllm-test" / tmp_path.name
        folder.mkdir(parents=True)
        try:
            return _answers(folder, function, prompts, api)
        finally:
            shutil.rmtree(folder)

    return run


def _answers(folder: Path, function: str, prompts: tuple[str, ...], api: str) -> dict[Any, Any]:
    adapter = folder / "adapter.mjs"
    adapter.write_text(_ADAPTER, "utf-8")
    (folder / "client.toml").write_text(
        f'[[client]]\nname = "failing"\npackage = "smol-toml"\nlanguage = "javascript"\n'
        f'api = "chat"\nentry_point = "x()"\nunsupported = ["refusal"]\n'
        f'command = ["node", "{function}"]\n',
        "utf-8",
    )
    lines = [{"mockllm": 1, "api": api, "level": "http"}]
    job = {"case": "c", "api": "chat", "base_url": "u", "model": "m", "tools": [], "deadline": 20}
    lines += [{"id": number, "prompt": prompt, **job} for number, prompt in enumerate(prompts)]
    run = subprocess.run(
        ["node", str(CLIENTS / "runner.mjs"), str(adapter.relative_to(ROOT)), function],
        cwd=ROOT,
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=GIVE_UP,
        check=False,
    )
    found = [json.loads(line) for line in run.stdout.splitlines()]
    return {one.pop("id", "hello"): one for one in found} | {"stderr": run.stderr}


def test_hello(answers) -> None:
    """The hello is that of `client.toml`, with the version that is installed."""
    hello = answers("echoes")["hello"]
    version = json.loads((CLIENTS / "node_modules/smol-toml/package.json").read_text())["version"]
    assert hello["client"]["name"] == "failing"
    assert hello["client"]["version"] == version
    assert hello["client"]["adapter"].endswith("adapter.mjs")
    assert hello["unsupported"] == ["refusal"]


def test_another_api_is_refused(answers) -> None:
    """A client is not run over an API that it does not speak; the error names both."""
    assert "failing speaks the API chat, not gemini" in answers("echoes", api="gemini")["stderr"]


def test_values_of_other_types(answers) -> None:
    """What the client leaves undefined is null, and a value that has to be a text is one."""
    answer = answers("echoes", "Hi")[0]
    assert answer["text"] == "Hi"
    assert answer["finish"] == "3"
    assert answer["tool_calls"] == [{"id": None, "name": None, "arguments": None}]


def test_an_exception_of_the_adapter(answers) -> None:
    """A bug is a crash, with the innermost frame outside of Node: here it is the adapter's."""
    crash = answers("fails", "")[0]["crash"]
    assert crash["message"] == "RangeError: too deep"
    assert crash["raised"].endswith("adapter.mjs:4 in fails"), crash


def test_a_client_that_raises_returned_nothing(answers) -> None:
    """The fields are there and empty: one that is absent would not be judged."""
    answer = answers("fails", "")[0]
    assert answer["text"] == answer["reasoning"] == answer["refusal"] == ""
    assert answer["tool_calls"] == []
    assert answer["finish"] is answer["usage"] is None


def test_an_exception_of_the_client(answers) -> None:
    """An error of the package is raised in its file, by its path inside of node_modules."""
    (error,) = answers("parses", "")[0]["errors"]
    assert error["message"].startswith("TomlError: ")
    assert error["raised"].startswith("smol-toml/dist/"), error


def test_an_exception_in_node(answers) -> None:
    """An exception of Node's own function belongs to the code that called it."""
    (error,) = answers("reads", "")[0]["errors"]
    assert error["raised"].endswith("adapter.mjs:6 in reads"), error


def test_a_broken_connection_is_no_crash(answers) -> None:
    """`fetch` reports a broken connection as a TypeError with a cause."""
    answer = answers("hears", "")[0]
    assert answer["crash"] is None
    assert [error["message"] for error in answer["errors"]] == ["TypeError: terminated"]


def test_an_unhandled_rejection(answers) -> None:
    """An unhandled rejection, which ends a program, is a crash beside the outcome; what the client
    prints is not among the answers."""
    answer = answers("forgets", "")[0]
    assert answer["text"] == "done"
    assert answer["crash"]["message"] == "uncaught Error: unseen"


def test_many_at_once(answers) -> None:
    """Every job gets its own answer, beside jobs that end their thread or never return."""
    names = [("exits", "hangs", "echoes")[number % 3] for number in range(12)]
    found = answers("either", *names)
    for number, name in enumerate(names):
        if name == "echoes":
            assert found[number]["text"] == "echoes"
        else:
            message = found[number]["crash"]
            text = message if isinstance(message, str) else message["message"]
            ends = {"exits": "ended the program", "hangs": "uncaught TypeError: too late"}
            assert ends[name] in text
