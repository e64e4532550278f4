// anthropic-sdk-typescript, through its own helper for streams.
import Anthropic from "@anthropic-ai/sdk";

import { API_KEY, asText, TIMEOUT } from "./common.mjs";

/** `messages.stream()`, then `finalMessage()`. */
export async function messages({ base_url: baseURL, body }) {
  const client = new Anthropic({ baseURL, apiKey: API_KEY, maxRetries: 0, timeout: TIMEOUT });
  const message = await client.messages.stream(body).finalMessage();
  const ofType = (type) => message.content.filter((block) => block.type === type);
  return {
    text: ofType("text")
      .map((block) => asText(block.text))
      .join(""),
    reasoning: ofType("thinking")
      .map((block) => asText(block.thinking))
      .join(""),
    tool_calls: ofType("tool_use").map(({ id, name, input }) => ({ id, name, arguments: input })),
    finish: message.stop_reason,
    usage: usageOf(message.usage),
  };
}

function usageOf(usage) {
  if (!usage) return null;
  const { input_tokens: fresh, cache_read_input_tokens: cached } = usage;
  const written = usage.cache_creation_input_tokens ?? 0;
  const given = typeof fresh === "number" ? fresh + (cached ?? 0) + written : fresh;
  return [given, usage.output_tokens, usage.output_tokens_details?.thinking_tokens, cached];
}
