import { check } from "mockllm-harness";
import { expect, test } from "vitest";
import { Accumulator } from "./accumulator.js";

/** The accumulator under test, with its outcome in the form of `mockllm check`. */
function attach() {
  const accumulator = new Accumulator();
  return {
    feed: (data: Uint8Array) => accumulator.feed(data),
    close: () => accumulator.close(),
    outcome: () => ({
      text: accumulator.text,
      tool_calls: accumulator.calls,
      finish: accumulator.finish,
      usage: accumulator.usage,
      errors: accumulator.errors,
    }),
  };
}

test("nothing is wrong but what the list of known mistakes has", async () => {
  const results = await check(attach, {
    api: "chat",
    // Bytes that are cut anywhere, other line ends, and servers that leave out the index; without
    // `only` these would be all cases.
    only: ["sse-chunk-boundaries*", "sse-crlf:crlf*", "chat/sample-*+chat-index-missing"],
    knownFailing: "known-failing.txt",
  });
  results.assertRight(); // it throws if another case fails, and if a listed one passes
  expect(results.failures.map((one) => one.cost)).toEqual(["data lost", "data lost"]);
  expect(results.cases.length).toBeGreaterThan(20);
});
