// `check`: accumulators of this process over the cases of `mockllm check`.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { check, ConformanceError, MockllmError } from "../../packages/js/src/index.js";
import { create } from "../../examples/runners/javascript/client.mjs";

/** The example of examples/runners, which is right. */
function right({ api }) {
  const client = create(api);
  return { feed: (data) => client.feedBytes(data), outcome: () => client.close() };
}

// A mistake needs no description; one of a quirk may say that its plain form has it, too.
const PLAIN = /^(?:the plain form of this stream gives the same mistakes)?$/;

const MISTAKES = [
  // By the number of the case: what an accumulator may do, and what the results say of it.
  [() => ({}), "crash", /feed is not a function/],
  [() => Promise.reject(new Error("cannot begin")), "rejected", /^Error: cannot begin/],
  [with_({ feed: () => undefined.text }), "crash", /^TypeError: .*check\.test\.mjs:\d+ in /],
  [with_({ feed: () => assert.fail("no") }), "rejected", /^AssertionError: no/],
  [with_({ close: () => new Promise(() => {}) }), "crash", /no outcome within 1000 ms/],
  [with_({ outcome: () => "text" }), "crash", /outcome\(\) must return an object/],
  [with_({ outcome: () => ({ tool_calls: new Array(1) }) }), "wrong", PLAIN],
  [with_({ outcome: () => ({ text: 5 }) }), "adapter", /text: must be a text/],
  [async (stream) => right(stream), "right", /^$/],
];

function with_(methods) {
  return () => ({ feed() {}, outcome: () => ({}), ...methods });
}

test("each mistake of an accumulator concerns one case, and is described", async (t) => {
  let number = 0;
  const factory = (stream) => MISTAKES[number++ % MISTAKES.length][0](stream);
  const folder = await mkdtemp(path.join(tmpdir(), "mockllm-test-"));
  t.after(() => rm(folder, { recursive: true }));
  const results = path.join(folder, "reports", "results.json");
  const found = await check(factory, {
    api: "chat",
    only: "sse-crlf",
    policy: { order: "any" },
    client: { name: "odd", version: "1.2" },
    limit: 1000,
    results,
    args: ["--no-shrink"],
  });
  assert.ok(found.cases.length >= MISTAKES.length);
  for (const [index, [, verdict, description]] of MISTAKES.entries()) {
    const one = found.cases[index];
    assert.equal(one.verdict, verdict, `${index}: ${JSON.stringify(one, null, 1)}`);
    assert.match(one.exception || one.reason, description);
  }
  assert.equal(found.good, false);
  assert.equal(found.exitCode, 1);
  assert.throws(
    () => found.assertRight(),
    (error) =>
      error instanceof ConformanceError &&
      error instanceof assert.AssertionError &&
      error.results === found &&
      /gets \d+ of \d+ streams wrong\.\n\nodd 1\.2 \(javascript\)/.test(error.message),
  );
  assert.deepEqual(JSON.parse(await readFile(results, "utf8")), found.data);
});

test("what cannot be checked is an error", async () => {
  await assert.rejects(check(right, { api: "chatt" }), (error) => {
    assert.ok(error instanceof MockllmError);
    assert.match(error.message, /mockllm check --emit.*ended with 2:\n.*there is no API 'chatt'/s);
    return true;
  });
  await assert.rejects(check(right, { api: "chat", levl: "bytes" }), /no option 'levl'/);
  await assert.rejects(check(right), /needs to know the API/);
  await assert.rejects(check({}, { api: "chat" }), /takes a function/);
});
