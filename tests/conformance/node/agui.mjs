// The official client of AG-UI, which verifies every stream.
import { HttpAgent } from "@ag-ui/client";

import { asText, TIMEOUT, trouble } from "./common.mjs";

/** One run of an agent: its new messages, and what a subscriber is entries of its end. */
export async function agent({ base_url: url, prompt, tools }) {
  const agent = new HttpAgent({
    url,
    threadId: "thread-1",
    initialMessages: [{ id: "user-1", role: "user", content: prompt }],
  });
  const end = { finish: null, usage: null, errors: [] };
  const subscriber = {
    onRunErrorEvent: ({ event }) =>
      void end.errors.push({ message: `RUN_ERROR: ${event.message}`, crash: false }),
    onRunFinishedEvent: ({ event }) =>
      void Object.assign(end, { finish: event.type, usage: usageOf(event.usage) }),
  };
  // The client treats an AbortError as a normal end, but not an error of another name.
  const abortController = new AbortController();
  const late = () => abortController.abort(new DOMException("It took too long.", "TimeoutError"));
  const timer = setTimeout(late, TIMEOUT);
  try {
    const offered = tools.map(({ function: spec }) => spec);
    await agent.runAgent({ tools: offered, abortController }, subscriber);
  } catch (error) {
    end.errors.push(trouble(error));
  } finally {
    clearTimeout(timer);
  }
  // Messages of a failed run are kept as well.
  const newMessages = agent.messages.filter(({ id }) => id !== "user-1");
  return {
    text: textOf(newMessages, "assistant"),
    reasoning: textOf(newMessages, "reasoning"),
    tool_calls: newMessages
      .flatMap((message) => message.toolCalls ?? [])
      .map(({ id, function: called }) => ({ id, ...called })),
    ...end,
  };
}

const textOf = (messages, role) =>
  messages
    .filter((message) => message.role === role)
    .map((message) => asText(message.content))
    .join("");

const COUNTS = ["inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens"];

/** The sum over the models that a run used. */
function usageOf(entries) {
  if (!entries?.length) return null;
  return COUNTS.map((name) => {
    const numbers = entries.map((each) => each[name]).filter((number) => typeof number === "number");
    return numbers.length > 0 ? numbers.reduce((sum, number) => sum + number) : null;
  });
}
