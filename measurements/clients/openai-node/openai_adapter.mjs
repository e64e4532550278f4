// openai-node, through its own helpers for streams.
import OpenAI from "openai";

import {
  API_KEY,
  asText,
  chatToolsOf,
  functionsOf,
  joined,
  withTools,
} from "../job.mjs";
import { clientOf, limitOf, retriesOf, shown, watched } from "../faults.mjs";
import { NOTHING } from "../troubles.mjs";

const openaiOf = (job) =>
  clientOf(
    job,
    () =>
      new OpenAI({
        baseURL: job.base_url,
        apiKey: API_KEY,
        maxRetries: retriesOf(job),
        timeout: limitOf(job),
      }),
  );

/** `chat.completions.stream()`, then `finalChatCompletion()`. */
export async function chat(job) {
  const stream = openaiOf(job).chat.completions.stream({
    model: job.model,
    messages: [{ role: "user", content: job.prompt }],
    stream_options: { include_usage: true },
    ...withTools(chatToolsOf(job)),
  });
  await shown(job, stream, ({ choices }) => choices[0]?.delta?.content, () => stream.abort());
  const completion = await stream.finalChatCompletion();
  const { model, id: response_id } = completion;
  const answer = { usage: usageOf(completion.usage, "prompt", "completion"), model, response_id };
  const choice = completion.choices[0];
  if (choice === undefined) return { ...NOTHING, role: null, ...answer };
  const { role, content, refusal, tool_calls: calls } = choice.message;
  return {
    ...answer,
    text: asText(content),
    refusal: asText(refusal),
    role,
    tool_calls: (calls ?? []).map(({ id, function: called }) => ({
      id,
      name: called.name,
      arguments: called.arguments,
      raw_arguments: called.arguments,
    })),
    finish: choice.finish_reason,
  };
}

/** `completions.create({stream: true})`, whose chunks users join themselves. */
export async function completions(job) {
  const user = new AbortController();
  const stream = await openaiOf(job).completions.create(
    {
      model: job.model,
      prompt: job.prompt,
      stream: true,
      stream_options: { include_usage: true },
    },
    { signal: user.signal },
  );
  const first = ({ choices }) => choices?.find(({ index }) => index === 0);
  let text = "";
  let answer = {};
  for await (const chunk of watched(job, stream, (one) => first(one)?.text, () => user.abort())) {
    const choice = first(chunk);
    text += asText(choice?.text);
    const { id: response_id, model } = chunk;
    const finish = choice?.finish_reason ?? answer.finish;
    answer = { response_id, model, finish, usage: chunk.usage ?? answer.usage };
  }
  return { ...answer, text, usage: usageOf(answer.usage, "prompt", "completion") };
}

/** `responses.stream()`, then `finalResponse()`. */
export async function responses(job) {
  const tools = functionsOf(job).map((spec) => ({ type: "function", strict: false, ...spec }));
  const request = { model: job.model, input: job.prompt, ...withTools(tools) };
  const stream = openaiOf(job).responses.stream(request);
  const isText = "response.output_text.delta";
  await shown(job, stream, ({ type, delta }) => type === isText && delta, () => stream.abort());
  const response = await stream.finalResponse();
  const parts = ofType(response.output, "message").flatMap((message) => message.content);
  const thoughts = ofType(response.output, "reasoning");
  return {
    text: asText(response.output_text),
    reasoning: joined(thoughts.flatMap(reasoningOf).map((part) => part.text)),
    refusal: joined(ofType(parts, "refusal").map((part) => part.refusal)),
    tool_calls: ofType(response.output, "function_call").map((call) => ({
      id: call.call_id,
      name: call.name,
      arguments: call.arguments,
      raw_arguments: call.arguments,
    })),
    finish: response.incomplete_details?.reason ?? response.status,
    usage: usageOf(response.usage, "input", "output"),
    errors: response.error ? [{ message: response.error.message }] : [],
    opaque: thoughts.map((item) => item.encrypted_content).filter(Boolean),
    model: response.model,
    response_id: response.id,
  };
}

const ofType = (items, type) => items.filter((item) => item.type === type);

/** The reasoning text if it is sent, else its summary. */
const reasoningOf = ({ content, summary }) => (content?.length ? content : (summary ?? []));

function usageOf(usage, input, output) {
  if (!usage) return null;
  return {
    input: usage[`${input}_tokens`],
    output: usage[`${output}_tokens`],
    reasoning: usage[`${output}_tokens_details`]?.reasoning_tokens,
    cached: usage[`${input}_tokens_details`]?.cached_tokens,
  };
}
