// Cohere's client, whose users join the events of a stream themselves.
import { CohereClientV2 } from "cohere-ai";

import { API_KEY, chatToolsOf, joined, withTools } from "../job.mjs";

/** `chatStream()`. */
export async function chat(job) {
  const client = new CohereClientV2({
    token: API_KEY,
    environment: job.base_url,
    maxRetries: 0,
    timeoutInSeconds: job.deadline,
  });
  const stream = await client.chatStream({
    model: job.model,
    messages: [{ role: "user", content: job.prompt }],
    ...withTools(chatToolsOf(job)),
  });
  const events = [];
  for await (const event of stream) events.push(event);
  const start = events.find(({ type }) => type === "message-start");
  const end = events.findLast(({ type }) => type === "message-end")?.delta;
  const messages = events.map(({ delta }) => delta?.message);
  return {
    text: joined(messages.map((message) => message?.toolPlan ?? message?.content?.text)),
    reasoning: joined(messages.map((message) => message?.content?.thinking)),
    tool_calls: callsOf(events),
    role: start?.delta?.message?.role,
    finish: end?.finishReason,
    usage: usageOf(end?.usage),
    errors: end?.error ? [{ message: end.error }] : [],
    response_id: start?.id,
  };
}

/** Calls begin with their name, and their arguments follow by index. */
function callsOf(events) {
  const calls = new Map();
  for (const { type, index, delta } of events) {
    const call = delta?.message?.toolCalls;
    if (type === "tool-call-start") {
      const { name, arguments: given = "" } = call.function;
      calls.set(index, { id: call.id, name, arguments: given });
    }
    if (type === "tool-call-delta") calls.get(index).arguments += call.function.arguments;
  }
  return [...calls.values()];
}

function usageOf(usage) {
  if (!usage) return null;
  const { tokens, cachedTokens: cached } = usage;
  return { input: tokens?.inputTokens, output: tokens?.outputTokens, cached };
}
