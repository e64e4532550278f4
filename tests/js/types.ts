// Uses of the package that the compiler must accept; `@ts-expect-error` marks those that it must
// refuse.

import {
  check,
  ConformanceError,
  error,
  frame,
  httpError,
  interleaved,
  MockllmError,
  parallel,
  reply,
  Scenario,
  serverTool,
  start,
  text,
  tool,
  turn,
  VerificationError,
  type CheckResults,
  type Outcome,
  type Server,
  type Session,
} from "mockllm-harness";
import { mockllm as ofJest } from "mockllm-harness/jest";
import { mockllm, type TestMock } from "mockllm-harness/vitest";

const scenario: Scenario = reply("a", text("b", { split: { random: [1, 2] } }))
  .reply(parallel(tool("f", { x: 1 }), tool("g")), interleaved([text("a")], [0]))
  .reply(parallel(tool("f"), { order: [0] }), serverTool("web_search", { output: [] }))
  .httpError(429, { retryAfter: "1s" })
  .turn({ reply: ["a"], finish: "length", usage: "none" })
  .with({ scenario: "a", match: { user: "x" } });
const others: Scenario[] = [httpError(500), turn({ http: { status: 500 } }), reply(error("bad"))];

turn({ http: 429, retry_after: "1s" }).turn({ name: "b", fault: "refuse", go_to: "a", choices: [{}] });
// @ts-expect-error a turn has no such key
turn({ replies: "a" });
// @ts-expect-error a split rule that does not exist
text("a", { split: "lines" });
// @ts-expect-error a part is no number
reply(1);
// @ts-expect-error a status is a number
httpError("429");
// @ts-expect-error a frame is of one API
frame({ data: 1 });

export async function use(): Promise<void> {
  const server: Server = await start({ scenarios: [scenario, "scenarios/", ...others], port: 0 });
  const session: Session = await server.session({ scenarios: scenario, quirks: ["sse-crlf"] });
  const url: string = session.baseUrls.chat;
  const key: string = session.env["OPENAI_API_KEY"] ?? url;
  const verdict = await session.verify({ leaveOut: ["multi-hop"], allowNoRequests: true });
  const good: "good" | "bad" | "unknown" = verdict.verdict;
  await Promise.all([session.delete(), server.stop(), key, good]);
  // @ts-expect-error an option that does not exist
  await start({ prot: 1 });
  // @ts-expect-error an option that does not exist
  await server.session({ scenario });
}

const outcome: Outcome = { text: null, errors: [new Error("a"), "b", { message: "c" }] };

export async function judge(): Promise<CheckResults> {
  await check(() => ({ feed(data: Uint8Array) {}, outcome: () => outcome }), { api: "chat" });
  const payloads = { api: "chat", level: "payloads", only: ["a*"], limit: 1 } as const;
  await check(({ tools }) => ({ feed(payload, event) {}, outcome: async () => ({}), tools }), payloads);
  // @ts-expect-error the API is missing
  await check(() => ({ feed() {}, outcome: () => outcome }), {});
  // @ts-expect-error an accumulator needs an outcome
  await check(() => ({ feed(data: Uint8Array) {} }), { api: "chat" });
  const results = await check(() => ({ feed() {}, outcome: () => outcome }), { api: "chat" });
  results.assertRight();
  for (const { cost } of results.failures) if (cost === "wrong call") throw new Error(cost);
  return results;
}

export function read(thrown: unknown): unknown {
  if (thrown instanceof VerificationError) return thrown.verification.violations;
  if (thrown instanceof ConformanceError) return thrown.results.report;
  return thrown instanceof MockllmError && thrown.message;
}

export async function test(): Promise<void> {
  const mock: TestMock = mockllm({ scenarios: "scenarios/", verify: { allowNoRequests: true } });
  const session: Session = await mock.session({ scenarios: reply("a") });
  const url: string = mock.baseUrls.chat + session.url + (await ofJest().verify({ once: true })).verdict;
  // @ts-expect-error an option that does not exist
  mockllm({ verify: { depht: 3 }, url });
}
