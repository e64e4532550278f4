"""The helpers for vitest and Jest: one call gives each test a session, and judges it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.js.node import ENVIRONMENT, link_modules, run, with_node, with_npm

pytestmark = [pytest.mark.slow, with_node, with_npm]


@dataclass(frozen=True)
class Runner:
    command: tuple[str, ...]
    imports: str
    options: str = ""


RUNNERS = {
    "vitest": Runner(
        ("node_modules/.bin/vitest", "run", "--reporter=json", "--outputFile=results.json"),
        'import { expect, test } from "vitest";\n',
    ),
    "jest": Runner(
        ("node_modules/.bin/jest", "--json", "--outputFile=results.json"),
        "",
        "--experimental-vm-modules",
    ),
}

SOURCE = """
import {{ reply }} from "mockllm-harness";
import {{ mockllm }} from "mockllm-harness/{runner}";

const mock = mockllm({{ scenarios: reply("Hello!").reply("Bye!") }});
const early = (() => {{ try {{ return mock.url; }} catch (error) {{ return error.message; }} }})();

async function ask(...said) {{
  const roles = ["user", "assistant"];
  const messages = said.map((content, index) => ({{ role: roles[index % 2], content }}));
  const answer = await fetch(`${{mock.baseUrls.chat}}/chat/completions`, {{
    method: "POST",
    headers: {{ "content-type": "application/json", authorization: "Bearer any" }},
    body: JSON.stringify({{ model: "gpt-4o", messages }}),
  }});
  return (await answer.json()).choices[0].message.content;
}}

{tests}
"""

TESTS = """
test("passes: both turns are played", async () => {
  expect(await ask("Hi")).toBe("Hello!");
  expect(await ask("Hi", "Hello!", "Ciao")).toBe("Bye!");
});
test("passes: a test has a session of its own", async () => {
  expect(await mock.journal()).toEqual([]);
});
test("passes: scenarios of one test", async () => {
  const session = await mock.session({ scenarios: reply("Mine.") });
  expect(mock.baseUrls).toEqual(session.baseUrls);
  expect(await ask("Hi")).toBe("Mine.");
});
test("passes: the test judges, in place of the end of the test", async () => {
  await ask("Hi");
  await expect(mock.verify()).rejects.toThrow(/not played: turn 2 of inline/);
  expect((await mock.verify({ allowUnplayed: true })).good).toBe(true);
});
test("passes: there is no session before a test runs", () => {
  expect(early).toMatch(/only while a test runs/);
  expect(() => mockllm({ prot: 1 })).toThrow(/has no option 'prot'.*verify/);
});
test("fails: a turn is not played", async () => {
  await ask("Hi");
});
test("fails: no request comes", async () => {
  expect(mock.env.OPENAI_BASE_URL).toBe(mock.baseUrls.chat);
});
"""


def played(folder: Path, name: str, tests: str) -> dict[str, tuple[bool, str]]:
    """Whether each test passes, and the messages of the runner."""
    runner = RUNNERS[name]
    link_modules(folder)
    (folder / "package.json").write_text('{"type": "module"}')
    source = SOURCE.format(runner=name, tests=tests)
    (folder / "mock.test.js").write_text(runner.imports + source)
    environment = {**ENVIRONMENT, "NODE_OPTIONS": runner.options}
    done = run(*runner.command, cwd=folder, environment=environment)
    assert (folder / "results.json").exists(), done.stdout + done.stderr
    (file,) = json.loads((folder / "results.json").read_text())["testResults"]
    return {
        one["title"]: (one["status"] == "passed", "\n".join(one["failureMessages"]))
        for one in file["assertionResults"]
    }


@pytest.mark.parametrize("name", RUNNERS)
def test_each_test_has_a_session_that_is_judged(tmp_path, name):
    """A test that uses its session fails with the verdict, and the others are left alone."""
    results = played(tmp_path, name, TESTS)
    assert len(results) == TESTS.count("test(")
    for title, (passed, message) in results.items():
        assert passed == title.startswith("passes"), (title, message)
    assert "not played: turn 2 of inline" in results["fails: a turn is not played"][1]
    assert "no request came" in results["fails: no request comes"][1]


@pytest.mark.parametrize("name", RUNNERS)
def test_concurrent_tests_are_refused(tmp_path, name):
    """Two tests at once cannot have one session: at least one fails, and says what to do."""
    one = 'test.concurrent("NAME", async () => expect(await ask("Hi")).toBe("Hello!"));\n'
    results = played(tmp_path, name, one.replace("NAME", "a") + one.replace("NAME", "b"))
    failures = [message for passed, message in results.values() if not passed]
    assert failures
    assert all("concurrent tests" in message for message in failures)
