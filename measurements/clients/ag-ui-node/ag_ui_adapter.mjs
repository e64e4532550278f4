// The official client of AG-UI, which verifies every stream.
import { HttpAgent } from "@ag-ui/client";

import { functionsOf, joined, timeoutOf } from "../job.mjs";
import { addTrouble } from "../troubles.mjs";

/** One run of an agent: its new messages, and what a subscriber receives of its end. */
export async function agent(job) {
  const agent = new HttpAgent({
    url: job.base_url,
    threadId: "thread-1",
    initialMessages: [{ id: "user-1", role: "user", content: job.prompt }],
  });
  const end = { finish: null, usage: null, errors: [] };
  const subscriber = {
    onRunErrorEvent: ({ event }) => addTrouble(end, `RUN_ERROR: ${event.message}`),
    onRunFinishedEvent: ({ event }) =>
      void Object.assign(end, { finish: event.type, usage: usageOf(event.usage) }),
  };
  // The client treats an AbortError as a normal end, but not an error of another name.
  const abortController = new AbortController();
  const late = () => abortController.abort(new DOMException("It took too long.", "TimeoutError"));
  const timer = setTimeout(late, timeoutOf(job));
  try {
    await agent.runAgent({ tools: functionsOf(job), abortController }, subscriber);
  } catch (error) {
    addTrouble(end, error);
  } finally {
    clearTimeout(timer);
  }
  // Messages of a failed run are kept as well.
  return { ...outcomeOf(agent.messages.filter(({ id }) => id !== "user-1")), ...end };
}

function outcomeOf(messages) {
  const calls = messages.flatMap((message) => message.toolCalls ?? []);
  const encrypted = [...messages, ...calls].map((one) => one.encryptedValue);
  const answer = messages.find(({ role }) => role !== "reasoning");
  return {
    text: textOf(messages, "assistant"),
    reasoning: textOf(messages, "reasoning"),
    tool_calls: calls.map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: called.arguments,
      raw_arguments: called.arguments,
    })),
    opaque: encrypted.filter(Boolean),
    ...(answer && { role: answer.role }),
  };
}

const textOf = (messages, role) =>
  joined(messages.filter((one) => one.role === role).map(({ content }) => content));

/** The sum over the models that a run used. */
function usageOf(entries) {
  if (!entries?.length) return null;
  const total = (name) => {
    const numbers = entries.map((each) => each[name]).filter((one) => typeof one === "number");
    return numbers.length > 0 ? numbers.reduce((sum, number) => sum + number) : null;
  };
  return {
    input: total("inputTokens"),
    output: total("outputTokens"),
    reasoning: total("reasoningTokens"),
    cached: total("cachedInputTokens"),
  };
}
