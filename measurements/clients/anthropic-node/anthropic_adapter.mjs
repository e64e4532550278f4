// anthropic-sdk-typescript, through its own helpers for streams.
import Anthropic from "@anthropic-ai/sdk";

import { clientOf, limitOf, retriesOf, shown } from "../faults.mjs";
import { API_KEY, functionsOf, joined, withTools } from "../job.mjs";

/** `messages.stream()`, then `finalMessage()`. */
export const messages = (job) => run(anthropicOf(job).messages, job);

/** `beta.messages.stream()`, then `finalMessage()`. */
export const beta = (job) => run(anthropicOf(job).beta.messages, job);

const anthropicOf = (job) =>
  clientOf(
    job,
    () =>
      new Anthropic({
        baseURL: job.base_url,
        apiKey: API_KEY,
        maxRetries: retriesOf(job),
        timeout: limitOf(job),
      }),
  );

async function run(resource, job) {
  const tools = functionsOf(job).map(({ parameters: input_schema, ...rest }) => ({
    ...rest,
    input_schema,
  }));
  const stream = resource.stream({
    model: job.model,
    max_tokens: 1024,
    messages: [{ role: "user", content: job.prompt }],
    ...withTools(tools),
  });
  await shown(job, stream, ({ delta }) => delta?.text, () => stream.abort());
  const message = await stream.finalMessage();
  const { content } = message;
  return {
    text: joined(ofType(content, "text").map((block) => block.text)),
    reasoning: joined(ofType(content, "thinking").map((block) => block.thinking)),
    tool_calls: ofType(content, "tool_use").map(({ id, name, input }) => ({
      id,
      name,
      arguments: input,
    })),
    role: message.role,
    finish: message.stop_reason,
    usage: usageOf(message.usage),
    opaque: content.map((block) => OPAQUE[block.type]?.(block)).filter(Boolean),
    model: message.model,
    response_id: message.id,
  };
}

/** The values that have to be sent back unchanged. */
const OPAQUE = {
  thinking: ({ signature }) => signature,
  redacted_thinking: ({ data }) => data,
};

const ofType = (content, type) => content.filter((block) => block.type === type);

function usageOf(usage) {
  if (!usage) return null;
  const { input_tokens: fresh, cache_read_input_tokens: cached } = usage;
  const written = usage.cache_creation_input_tokens ?? 0;
  return {
    input: typeof fresh === "number" ? fresh + (cached ?? 0) + written : fresh,
    output: usage.output_tokens,
    reasoning: usage.output_tokens_details?.thinking_tokens,
    cached,
  };
}
