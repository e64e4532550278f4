// The builders give what a scenario file would have. No server runs here.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as mockllm from "../../packages/js/src/index.js";
import { scenarioList } from "../../packages/js/src/replies.js";

const { error, frame, httpError, interleaved, parallel, pause, reply, Scenario, tool, turn } =
  mockllm;
const json = (value) => JSON.parse(JSON.stringify(value));

test("a reply is a scenario that answers any request", () => {
  assert.deepEqual(json(reply("Hi")), { match: "any", turns: [{ reply: [{ text: "Hi" }] }] });
});

test("each part has the keys of a scenario file", () => {
  const parts = [
    [mockllm.text("a", { split: "words" }), { text: "a", split: "words" }],
    [mockllm.reasoning("a", { signature: "s" }), { reasoning: "a", signature: "s" }],
    [mockllm.refusal("no"), { refusal: "no" }],
    [tool("f"), { tool: "f" }],
    [tool("f", null), { tool: "f" }],
    [tool("f", { x: 1 }, { id: "c" }), { tool: "f", arguments: { x: 1 }, id: "c" }],
    [tool("f", "{", { malformed: true }), { tool: "f", arguments: "{", malformed: true }],
    [mockllm.serverTool("web_search", { input: {} }), { server_tool: "web_search", input: {} }],
    [parallel(tool("f"), tool("g")), { parallel: [{ tool: "f" }, { tool: "g" }] }],
    [
      parallel(tool("f", { x: 1 }), { order: [0] }),
      { parallel: [{ tool: "f", arguments: { x: 1 } }], order: [0] },
    ],
    [interleaved([mockllm.text("a")], [0]), { interleaved: [{ text: "a" }], order: [0] }],
    [pause("1s"), { pause: "1s" }],
    [frame("chat", { comment: "x" }), { frame: { comment: "x" }, api: "chat" }],
    [
      mockllm.native("agui", { type: "STEP_STARTED", stepName: "plan" }),
      { native: { type: "STEP_STARTED", stepName: "plan" }, api: "agui" },
    ],
    [error("bad", { code: "c" }), { error: { message: "bad", code: "c" } }],
    [error(), { error: {} }],
    [mockllm.auto(), { auto: true }],
  ];
  for (const [part, keys] of parts) assert.deepEqual(json(part), keys);
});

test("turn takes the keys of a turn, and no text", () => {
  const calls = [() => turn("Hi", { fault: "cut" }), () => turn(["Hi"]), () => turn(), () => turn({}, {})];
  for (const call of calls) {
    assert.throws(call, { name: "MockllmError", message: /^turn\(\) takes one object, such as turn/ });
  }
});

test("each further turn gives another scenario", () => {
  const first = reply("a");
  const second = first.httpError(429, { message: "slow", retryAfter: "1s" }).turn({ reply: "b" });
  assert.equal(first.turns.length, 1);
  assert.deepEqual(json(second.turns), [
    { reply: [{ text: "a" }] },
    { http: { status: 429, retry_after: "1s", error: { message: "slow" } } },
    { reply: { text: "b" } },
  ]);
  assert.deepEqual(json(httpError(500).turns), [{ http: { status: 500 } }]);
  assert.deepEqual(json(turn({ reply: ["a"], finish: "length" }).turns), [
    { reply: [{ text: "a" }], finish: "length" },
  ]);
});

test("several turns answer once each, in order, unless they say themselves what is next", () => {
  const two = reply("a").reply("b");
  assert.equal(two.in_order, true);
  assert.equal(two.with({ then: "restart" }).in_order, undefined);
  assert.equal(reply("a").turn({ reply: "b", go_to: "first" }).in_order, undefined);
  const either = [{ request: { user: "x" }, reply: "c", go_to: "first" }];
  assert.equal(reply("a").turn({ reply: "b", when: either }).in_order, undefined);
});

test("keys of the scenario are replaced, and may be left out", () => {
  const named = reply("a").with({ scenario: "weather", match: { user: "rain" } });
  assert.ok(named instanceof Scenario);
  assert.equal(named.scenario, "weather");
  assert.deepEqual(named.match, { user: "rain" });
  assert.ok(!("match" in named.with({ match: undefined })));
});

test("a scenario cannot be changed by mistake", () => {
  assert.throws(() => {
    reply("a").match = { user: "x" };
  }, TypeError);
});

test("scenarios without a name get one that is free", () => {
  const names = (...given) => scenarioList(given).map((one) => one.scenario ?? one);
  assert.deepEqual(names(reply("a"), reply("b")), ["inline", "inline-2"]);
  assert.deepEqual(names(reply("a"), reply("b").with({ scenario: "inline" }), "yaml"), [
    "inline-2",
    "inline",
    "yaml",
  ]);
});
