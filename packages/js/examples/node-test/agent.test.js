import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { error, httpError, parallel, reply, start, text, tool, turn } from "mockllm-harness";
import OpenAI from "openai";
import { ask } from "./agent.js";

let mock;
before(async () => (mock = await start()));
after(() => mock.stop());

/** A session with a scenario, and the official SDK with its base URL. */
async function play(scenarios) {
  const session = await mock.session({ scenarios });
  return [session, new OpenAI({ baseURL: session.baseUrls.chat, apiKey: "any" })];
}

test("the agent calls both tools and streams the answer", async () => {
  const calls = parallel(
    tool("get_weather", { city: "Paris" }, { split: 3 }),
    tool("get_weather", { city: "Oslo" }, { split: 5 }),
  );
  const [session, client] = await play(
    reply("One moment. ", calls).reply(text("Rain in both.", { split: "words" })),
  );
  const [cities, fragments] = [[], []];
  const getWeather = (city) => {
    cities.push(city);
    return "rain";
  };
  const answer = await ask(client, "Weather?", getWeather, (one) => fragments.push(one));
  assert.deepEqual(cities, ["Paris", "Oslo"]);
  assert.equal(answer, "Rain in both.");
  assert.deepEqual(fragments, ["One moment. ", "Rain", " in", " both."]);
  await session.verify(); // results, ids and history were right, and every turn was played
});

test("a rate limit is tried again", async () => {
  const limited = turn({ attempts: [{ http: 429, retry_after: "0s" }], reply: "Sunny." });
  const [session, client] = await play(limited);
  assert.equal(await ask(client, "Weather?"), "Sunny.");
  const requests = await session.journal();
  assert.deepEqual(requests.map((one) => one.status), [429, 200]);
});

test("an error inside the stream reaches the caller", async () => {
  const [, client] = await play(reply("The weather is", error("overloaded")));
  await assert.rejects(ask(client, "Weather?"), /overloaded/);
});

test("a key that was revoked reaches the caller", async () => {
  const [, client] = await play(httpError(401, { message: "Your key was revoked." }));
  await assert.rejects(ask(client, "Weather?"), /Your key was revoked/);
});

test("the verdict names what the agent gets wrong", async () => {
  const [session, client] = await play(reply(tool("get_weather", { city: "Paris" })).reply("Rain."));
  await assert.rejects(ask(client, "Weather?", () => assert.fail("the tool is down")));
  await assert.rejects(session.verify(), /not played: turn 2 of inline/);
});
