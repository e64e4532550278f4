// A coding agent in a session, by a program that stands for one.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { MockllmError, reply, start } from "../../packages/js/src/index.js";

const STAND_IN = `#!/usr/bin/env node
if (process.argv.includes("wait")) setInterval(() => {}, 1000);
else {
  const prompt = process.argv.at(-1);
  fetch(process.env.ANTHROPIC_BASE_URL + "/v1/messages", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      "x-api-key": process.env.ANTHROPIC_API_KEY,
    },
    body: JSON.stringify({ model: "m", max_tokens: 9, messages: [{ role: "user", content: prompt }] }),
  })
    .then((answer) => answer.json())
    .then(({ content }) => {
      console.log(content[0].text, process.cwd(), process.env.GREETING, process.argv.slice(3));
      console.error("a warning");
      process.exitCode = 3;
    });
}
`;
let mock, folder, env;
before(async () => {
  mock = await start();
  folder = await mkdtemp(path.join(tmpdir(), "agent-"));
  await mkdir(path.join(folder, "bin"));
  await writeFile(path.join(folder, "bin", "claude"), STAND_IN);
  await chmod(path.join(folder, "bin", "claude"), 0o755);
  env = { PATH: `${path.join(folder, "bin")}:${process.env.PATH}`, GREETING: "Hi" };
});
after(async () => {
  await mock.stop();
  await rm(folder, { recursive: true });
});

test("a run has output, exit code and its requests", async () => {
  const session = await mock.session({ scenarios: reply("One.").reply("Two.") });
  const agent = session.agent("claude");
  const run = await agent.run("hello", { cwd: folder, env });
  assert.equal(run.output, `One. ${folder} Hi [ '--print', 'hello' ]\n`);
  assert.equal(run.errors, "a warning\n");
  assert.equal(run.exitCode, 3);
  assert.deepEqual(run.journal.map((one) => one.number), [1]);
});

test("options of the agent's own are words before the prompt", async () => {
  const session = await mock.session({ scenarios: reply("One.") });
  const run = await session.agent("claude").run(["--model", "m", "hello"], { cwd: folder, env });
  assert.match(run.output, /'--model', 'm', 'hello'/);
  await session.verify();
});

test("one that takes too long is ended", async () => {
  const session = await mock.session({ scenarios: reply("One.") });
  const run = await session.agent("claude").run("wait", { cwd: folder, env, timeout: 1000 });
  assert.equal(run.exitCode, 124);
  assert.match(run.errors, /^mockllm: claude was ended after 1 s/);
  assert.deepEqual(run.journal, []);
});

test("what cannot be run is an error", async () => {
  const session = await mock.session({ scenarios: reply("One.") });
  const fails = (name, options, message) =>
    assert.rejects(session.agent(name).run("x", options), (error) => {
      assert.ok(error instanceof MockllmError);
      assert.match(error.message, message);
      return true;
    });
  await fails("cloude", { cwd: folder, env }, /^there is no agent 'cloude'/);
  const bare = { PATH: process.env.PATH.split(":")[0] }; // where mockllm is
  await fails("opencode", { cwd: folder, env: bare }, /^opencode is not installed.*npm install opencode-ai@/s);
  await fails("claude", {}, /needs a folder/);
  await fails("claude", { cwd: folder, limit: 1 }, /has no option 'limit'/);
});
