import { error, httpError, reply, start, tool, type Server } from "mockllm-harness";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chat } from "./accumulator.js";

let mock: Server;
beforeAll(async () => {
  mock = await start();
});
afterAll(() => mock.stop());

test("fragments of arguments are put together", async () => {
  const call = tool("get_weather", { city: "Paris" }, { id: "call_1", split: 3 });
  const session = await mock.session({ scenarios: reply("One moment.", call) });
  const answer = await chat(session.baseUrls.chat, "How is the weather in Paris?");
  expect(answer.text).toBe("One moment.");
  expect(answer.calls).toEqual([
    { id: "call_1", name: "get_weather", arguments: '{"city":"Paris"}' },
  ]);
  await session.verify();
});

test("line ends of other servers make no difference", async () => {
  const session = await mock.session({ scenarios: reply("Hello!"), quirks: ["sse-crlf"] });
  expect((await chat(session.baseUrls.chat, "Hi")).text).toBe("Hello!");
});

test("an error inside the stream is kept", async () => {
  const session = await mock.session({ scenarios: reply("Hel", error("overloaded")) });
  const answer = await chat(session.baseUrls.chat, "Hi");
  expect(answer).toMatchObject({ text: "Hel", errors: ["overloaded"] });
});

test("an HTTP error is thrown", async () => {
  const scenarios = httpError(503, { message: "Try again later." });
  const session = await mock.session({ scenarios });
  await expect(chat(session.baseUrls.chat, "Hi")).rejects.toThrow("Try again later.");
});

test("a scenario may be YAML", async () => {
  const scenarios = `
scenario: yaml
turns:
  - reply: {text: From YAML., split: chars}
`;
  const session = await mock.session({ scenarios });
  expect((await chat(session.baseUrls.chat, "Hi")).text).toBe("From YAML.");
});
