// Sessions of a real server: what the builders give is played, and the verdict is reported.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as mockllm from "../../packages/js/src/index.js";

const { MockllmError, reply, start, tool, VerificationError } = mockllm;
let mock;
before(async () => (mock = await start()));
after(() => mock.stop());

const QUESTION = { role: "user", content: "Hello?" };

async function post(session, messages, fields = {}) {
  const answer = await fetch(`${session.baseUrls.chat}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer x" },
    body: JSON.stringify({ model: "gpt-4o", messages, ...fields }),
  });
  return { status: answer.status, body: await answer.text() };
}

const message = (answer) => JSON.parse(answer.body).choices[0].message;

test("every builder gives what the server accepts", async () => {
  const scenarios = [
    reply(mockllm.reasoning("hm", { signature: "c2ln" }), "a", mockllm.pause("1ms"))
      .reply(mockllm.refusal("no"))
      .reply(mockllm.parallel(tool("f", { x: 1 }), tool("g", { y: 2 }), { order: [0, 1] }))
      .reply(mockllm.interleaved([mockllm.text("a"), tool("f")], [0, 1]))
      .reply(mockllm.serverTool("web_search", { input: { query: "a" }, output: [] }))
      .reply(mockllm.frame("chat", { comment: "ping" }), "a", mockllm.error("bad"))
      .reply(mockllm.auto())
      .reply(mockllm.gate("a"), "b", mockllm.gate("c", { limit: "1ms" }))
      .turn({ reply: "b", gate: { name: "d", limit: "5s" } })
      .reply(tool("f", "{", { malformed: true }))
      .httpError(429, { message: "slow", retryAfter: "1s", headers: { "x-a": "b" } })
      .turn({ reply: "cut", finish: "length", usage: { input: 1 } }),
  ];
  const session = await mock.session({ scenarios });
  assert.equal((await post(session, [QUESTION])).status, 200);
});

test("an MCP server, a model and a client in one session", async () => {
  const weather = {
    mcp: "weather",
    tools: [{ name: "get_forecast" }],
    calls: [{ tool: "get_forecast", answer: { text: "Rain" } }],
  };
  const talk = reply(tool("weather.get_forecast", { city: "Oslo" }, { id: "c1" })).reply("Done.");
  const session = await mock.session({ scenarios: [weather, talk] });
  const rpc = async (method, params) => {
    const message = { jsonrpc: "2.0", id: 1, method, params };
    const body = JSON.stringify(message);
    return (await (await fetch(session.mcpUrl("weather"), { method: "POST", body })).json()).result;
  };
  const [listed] = (await rpc("tools/list")).tools;
  const offered = { name: `mcp__weather__${listed.name}`, parameters: listed.inputSchema };
  const tools = [{ type: "function", function: offered }];
  const asked = message(await post(session, [QUESTION], { tools }));
  assert.equal(asked.tool_calls[0].function.name, "mcp__weather__get_forecast");
  const { content } = await rpc("tools/call", { name: listed.name, arguments: { city: "Oslo" } });
  const result = { role: "tool", tool_call_id: "c1", content: content[0].text };
  assert.equal(message(await post(session, [QUESTION, asked, result], { tools })).content, "Done.");
  assert.deepEqual(session.mcpCommand("weather").slice(0, 3), ["mockllm", "mcp", "weather"]);
  await session.verify();
});

test("text of any kind arrives unchanged", async () => {
  const text = "Grüße\u2028\ufeff\x85 👩‍🚀 \"quoted\" # no comment";
  const session = await mock.session({ scenarios: reply(text) });
  assert.equal(message(await post(session, [QUESTION])).content, text);
});

test("a session of several scenarios, one of them YAML", async () => {
  const yaml = "scenario: yaml\nmatch: {user: Hello}\nturns:\n  - reply: {text: From YAML.}\n";
  const session = await mock.session({ scenarios: [reply("Other."), yaml] });
  assert.equal(message(await post(session, [QUESTION])).content, "From YAML.");
});

test("quirks are played, and `match` names the scenario", async () => {
  const scenarios = [
    reply("a").with({ scenario: "a" }),
    reply("b").with({ scenario: "b", match: undefined }),
  ];
  const session = await mock.session({ scenarios, match: "b", quirks: ["sse-crlf"] });
  const { body } = await post(session, [QUESTION], { stream: true });
  assert.match(body, /"content":"b"/);
  assert.match(body, /\r\n\r\n/);
});

test("the variables lead to the session", async () => {
  const session = await mock.session({ name: "mine", scenarios: reply("a") });
  assert.equal(session.name, "mine");
  assert.equal(session.env.OPENAI_BASE_URL, session.baseUrls.chat);
  assert.equal(session.env.MOCKLLM_URL, session.url);
  assert.match(session.url, /\/s\/mine$/);
  assert.deepEqual(session.headers, { "x-mockllm-session": "mine" });
});

test("a good verdict is returned, and a deleted session has none", async () => {
  const session = await mock.session({ scenarios: reply("a") });
  await post(session, [QUESTION]);
  const verdict = await session.verify({ depth: 3, leaveOut: ["multi-hop"], once: true });
  assert.equal(verdict.good, true);
  assert.equal((await session.journal()).length, 1);
  await session.delete();
  await assert.rejects(session.verify(), /There is no session/);
});

test("a bad verdict throws the report", async () => {
  const session = await mock.session({
    scenarios: reply(tool("f", { x: 1 }, { id: "call_1" })).reply("b").reply("c"),
  });
  const answer = message(await post(session, [QUESTION]));
  answer.tool_calls[0].function.arguments = '{"x":2}';
  const result = { role: "tool", tool_call_id: "call_1", content: "" };
  await post(session, [QUESTION, answer, result]);
  await post(session, []);
  const error = await session.verify().then(assert.fail, (one) => one);
  assert.ok(error instanceof VerificationError && error instanceof assert.AssertionError);
  assert.equal(error.name, "VerificationError");
  assert.match(error.message, /is bad:\n {2}history-faithful: request 2: .*'{"x":2}'/);
  assert.match(error.message, /refused: request 3, POST \/v1\/chat\/completions: /);
  assert.match(error.message, /not played: turn 3 of inline/);
  assert.equal(error.verification.verdict, "bad");
  assert.equal((await session.verification()).verdict, "bad");
});

test("a request that no scenario answers is reported with its reason", async () => {
  const session = await mock.session({ scenarios: [reply("a").with({ match: { user: "x" } })] });
  await post(session, [QUESTION]);
  await assert.rejects(session.verify(), /no scenario answers request 1, POST .*\n.*inline/s);
});

test("no request is no success, unless it is allowed", async () => {
  const session = await mock.session({ scenarios: reply("a") });
  await assert.rejects(session.verify(), /no request came/);
  assert.equal((await session.verify({ allowNoRequests: true })).good, true);
});

test("what is wrong in a scenario is reported with its place", async () => {
  const wrong = reply("a").with({ turns: [{ reply: 5 }] });
  await assert.rejects(
    mock.session({ scenarios: wrong }),
    (error) => error instanceof MockllmError && /turns\[0\]\.reply: must be a text, a part or a list/.test(error.message),
  );
});

test("a mistake in a value shows the caller's line, and no line that nobody wrote", async () => {
  const scenarios = [mockllm.turn({ reply: "a", finsh: "x" }), "scenario: b\nturns:\n  - repy: a\n"];
  const thrown = await mock.session({ scenarios }).catch((error) => error);
  assert.match(thrown.message, /^scenarios\[0\]: turns\[0\]: unknown key 'finsh'/m);
  assert.match(thrown.message, /^scenarios\[1\]:3:5: turns\[0\]/m);
  const [first] = thrown.stack.split("\n").filter((line) => line.startsWith("    at "));
  assert.match(first, /session\.test\.mjs:/);
  assert.ok(!thrown.stack.includes("/src/session.js"));
});

test("options that do not exist are refused", async () => {
  const session = await mock.session({ scenarios: reply("a") });
  await assert.rejects(mock.session({ scenario: "a" }), /no option 'scenario'; there are: name/);
  await assert.rejects(session.verify({ leave_out: ["a"] }), /no option 'leave_out'/);
  await assert.rejects(start({ prot: 1 }), /no option 'prot'/);
  await assert.rejects(start(null), /takes an object/);
});

test("an answer waits at a gate until it is opened", async () => {
  const session = await mock.session({ scenarios: mockllm.turn({ reply: "Hi.", gate: "door" }) });
  const answer = post(session, [QUESTION]);
  await session.waitForGate("door");
  await assert.rejects(session.waitUntilOver({ timeout: 1 }), {
    name: "MockllmError",
    message: /^the answer to request 1 waits at the gate 'door' after 1 ms, and its client/,
  });
  await session.release("door");
  assert.equal(message(await answer).content, "Hi.");
  await assert.rejects(session.waitForGate("door"), /'door' was released before, so no answer/);
  await assert.rejects(session.release("dor"), /did you mean 'door'/);
  await assert.rejects(session.waitForGate("door", { seconds: 1 }), /no option 'seconds'/);
});

test("a wait in vain, and a gate that nobody opens", async () => {
  const gate = { name: "door", limit: "1ms" };
  const session = await mock.session({ scenarios: mockllm.turn({ reply: "Hi.", gate }) });
  await assert.rejects(session.waitForGate("door", { timeout: 1 }), /no answer came to the gate/);
  await post(session, [QUESTION]);
  await assert.rejects(session.verify(), {
    name: "VerificationError",
    message: /request 1: nobody opened the gate 'door' within its limit/,
  });
});
