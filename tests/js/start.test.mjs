// The server of `start`: how it is found, what it serves, and that it ends.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";
import { reply, start } from "../../packages/js/src/index.js";
import { findCommand } from "../../packages/js/src/find.js";

let folder;
before(async () => (folder = await mkdtemp(path.join(tmpdir(), "mockllm-test-"))));
after(() => rm(folder, { recursive: true }));

const INDEX = new URL("../../packages/js/src/index.js", import.meta.url).href;
const OURS = findCommand()[0]; // the tests put it on PATH

async function names(server) {
  const answer = await fetch(`${server.url}/_mockllm/scenarios`);
  return (await answer.json()).scenarios.map((one) => one.name);
}

/** Resolves when no server listens there any more. */
async function gone(url) {
  for (;;) {
    try {
      await fetch(`${url}/_mockllm/health`);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("files, values and YAML texts are served, and stop ends it", async () => {
  const file = path.join(folder, "one.yaml");
  await writeFile(file, "scenario: one\nturns:\n  - reply: {text: a}\n");
  const yaml = "scenario: two\nturns:\n  - reply: {text: a}\n";
  const lines = [];
  const server = await start({
    scenarios: [file, yaml, reply("ü\u2028👩‍🚀").with({ scenario: "three" })],
    args: ["--speed", "0"],
    log: (line) => lines.push(line),
  });
  assert.deepEqual((await names(server)).sort(), ["one", "three", "two"]);
  assert.ok(lines.includes(`mockllm listening on ${server.url}`));
  const other = await start({ url: `${server.url}/` });
  assert.equal(other.url, server.url);
  await other.stop(); // it was not started here
  assert.equal((await names(server)).length, 3);
  await assert.rejects(start({ url: server.url, port: 1 }), /cannot use: port/);
  await server.stop();
  await server.stop();
  await gone(server.url);
  await assert.rejects(start({ url: server.url }), /there is no answer from .*mockllm serve/);
});

for (const [name, end] of [
  ["runs to its end", ""],
  ["throws", "throw new Error('on purpose');"],
  ["is killed", "process.kill(process.pid, 'SIGKILL');"],
]) {
  test(`the server ends with a process that ${name}`, async () => {
    const code = `
      import { start } from ${JSON.stringify(INDEX)};
      const server = await start();
      process.stdout.write(server.url + "\\n", () => { ${end} });`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [url] = await once(createInterface({ input: child.stdout }), "line");
    await gone(url);
  });
}

test("the command is on PATH, in .venv above, or a module", async () => {
  const nothing = { cwd: folder, env: { PATH: "" } };
  assert.deepEqual(findCommand("a b", nothing), ["a b"]);
  assert.deepEqual(findCommand(["uvx", "mockllm"], nothing), ["uvx", "mockllm"]);
  assert.deepEqual(findCommand(undefined, { cwd: folder }), [OURS]);

  const bin = path.join(folder, "module");
  await mkdir(bin);
  const script = `#!/bin/sh\nexec ${path.join(path.dirname(OURS), "python")} "$@"\n`;
  await writeFile(path.join(bin, "python3"), script, { mode: 0o755 });
  const module = { cwd: folder, env: { PATH: bin } };
  assert.deepEqual(findCommand(undefined, module), [path.join(bin, "python3"), "-m", "mockllm"]);

  const own = path.join(folder, ".venv", "bin");
  await mkdir(own, { recursive: true });
  await symlink(OURS, path.join(own, "mockllm"));
  const below = path.join(folder, "packages", "web");
  await mkdir(below, { recursive: true });
  const found = [path.join(own, "mockllm")];
  assert.deepEqual(findCommand(undefined, { cwd: below, env: { PATH: bin } }), found);
});

test("where mockllm is not found, the error says what to do", async () => {
  const elsewhere = { cwd: "/", env: { PATH: "/nowhere" } };
  await assert.rejects(start(elsewhere), (error) => {
    assert.equal(error.name, "MockllmError");
    assert.match(error.message, /not found/);
    assert.match(error.message, /pip install mockllm-harness/);
    assert.match(error.message, /'uvx', '--from', 'mockllm-harness', 'mockllm'/);
    assert.match(error.message, /'pipx', 'run', '--spec', 'mockllm-harness', 'mockllm'/);
    assert.match(error.message, /start\(\{ url: /);
    return true;
  });
});

test("a server that does not start is reported with its output", async () => {
  await assert.rejects(start({ scenarios: "nope.yaml", cwd: folder }), /nope.yaml' does not exist/);
  await assert.rejects(start({ scenarios: { turns: [{}] } }), /turns\[0\]/);
  await assert.rejects(start({ command: path.join(folder, "nothing") }), /ENOENT/);
  await assert.rejects(start({ command: [] }), /command must be/);
  const silent = [process.execPath, "-e", "setInterval(() => {}, 1000)"];
  await assert.rejects(start({ command: silent, timeout: 100 }), /no address in 100 ms/);
  const other = [process.execPath, "-e", "console.error('Error: No such command serve')"];
  await assert.rejects(start({ command: other }), /No such command serve\nIs this the package/);
});
