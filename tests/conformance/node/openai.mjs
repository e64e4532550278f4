// openai-node, through its own helpers for streams.
import OpenAI from "openai";

import { API_KEY, asText, TIMEOUT } from "./common.mjs";

const client = ({ base_url: baseURL }) =>
  new OpenAI({ baseURL, apiKey: API_KEY, maxRetries: 0, timeout: TIMEOUT });

/** `chat.completions.stream()`, then `finalChatCompletion()`. */
export async function chat(job) {
  const stream_options = { include_usage: true };
  const stream = client(job).chat.completions.stream({ ...job.body, stream_options });
  const completion = await stream.finalChatCompletion();
  const usage = usageOf(completion.usage, "prompt", "completion");
  const choice = completion.choices[0];
  if (choice === undefined) return { usage };
  const { content, refusal, tool_calls: calls } = choice.message;
  return {
    text: asText(content),
    refusal: asText(refusal),
    tool_calls: (calls ?? []).map(({ id, function: called }) => ({ id, ...called })),
    finish: choice.finish_reason,
    usage,
  };
}

/** `responses.stream()`, then `finalResponse()`. */
export async function responses(job) {
  const response = await client(job).responses.stream(job.body).finalResponse();
  const parts = ofType(response.output, "message").flatMap((message) => message.content);
  const reasoning = ofType(response.output, "reasoning").flatMap(reasoningOf);
  return {
    text: asText(response.output_text),
    reasoning: reasoning.map((part) => part.text).join(""),
    refusal: ofType(parts, "refusal")
      .map((part) => part.refusal)
      .join(""),
    tool_calls: ofType(response.output, "function_call").map(
      ({ call_id: id, name, arguments: text }) => ({ id, name, arguments: text }),
    ),
    finish: response.incomplete_details?.reason ?? response.status,
    usage: usageOf(response.usage, "input", "output"),
    errors: response.error ? [{ message: response.error.message, crash: false }] : [],
  };
}

const ofType = (items, type) => items.filter((item) => item.type === type);

/** The reasoning text if it is sent, else its summary. */
const reasoningOf = ({ content, summary }) => (content?.length ? content : (summary ?? []));

function usageOf(usage, input, output) {
  if (!usage) return null;
  return [
    usage[`${input}_tokens`],
    usage[`${output}_tokens`],
    usage[`${output}_tokens_details`]?.reasoning_tokens,
    usage[`${input}_tokens_details`]?.cached_tokens,
  ];
}
