// Vercel's AI SDK: `streamText` with its providers, whose `fullStream` is read to its end.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, streamText, tool } from "ai";

import { API_KEY, TIMEOUT, trouble } from "./common.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const settings = (baseURL, more = {}) => ({ baseURL, apiKey: API_KEY, ...more });

export const chat = (job) => run(createOpenAI(settings(job.base_url)).chat(job.model), job);

export const responses = (job) =>
  run(createOpenAI(settings(job.base_url)).responses(job.model), job);

/** With `includeUsage`, which is not its default. */
export function compatible(job) {
  const more = { name: "mockllm", includeUsage: true };
  return run(createOpenAICompatible(settings(job.base_url, more))(job.model), job);
}

export const messages = (job) =>
  run(createAnthropic(settings(`${job.base_url}/v1`))(job.model), job);

export const contents = (job) =>
  run(createGoogleGenerativeAI(settings(`${job.base_url}/v1beta`))(job.model), job);

/** Tools without `execute`, so that calls are part of the outcome. */
const toolsOf = (tools) =>
  Object.fromEntries(
    tools.map(({ function: { name, description, parameters } }) => [
      name,
      tool({ description, inputSchema: jsonSchema(parameters) }),
    ]),
  );

// What each part of the stream adds to the outcome. A "tool-error" repeats an invalid call.
const ADD = {
  "text-delta": (outcome, { text }) => void (outcome.text += text),
  "reasoning-delta": (outcome, { text }) => void (outcome.reasoning += text),
  "tool-call": call,
  error: (outcome, { error }) => void outcome.errors.push(trouble(error)),
  abort: (outcome, { reason }) =>
    void outcome.errors.push({ message: `aborted: ${reason ?? "no reason"}`, crash: false }),
  "finish-step": finish,
};

/** A call; one that is flagged as invalid is never executed. Its input is text if it is not JSON;
 * if it is invalid for another reason, that is an error. */
function call(outcome, { toolCallId: id, toolName: name, input, invalid, error }) {
  if (invalid && typeof input !== "string") {
    const { message, crash } = trouble(error);
    outcome.errors.push({ message: `invalid tool call ${name} (${id}): ${message}`, crash });
    return;
  }
  outcome.tool_calls.push({ id, name, arguments: input });
}

const COUNTS = ["inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens"];

function finish(outcome, { finishReason, usage }) {
  outcome.finish = finishReason.replaceAll("-", "_");
  const counts = COUNTS.map((name) => usage[name]);
  outcome.usage = counts.every((number) => number === undefined) ? null : counts;
  if (finishReason === "error" && outcome.errors.length === 0) {
    outcome.errors.push({ message: "finishReason is 'error'", crash: false });
  }
}

async function run(model, { prompt, tools }) {
  const answer = streamText({
    model,
    prompt,
    tools: tools.length > 0 ? toolsOf(tools) : undefined,
    maxRetries: 0,
    timeout: TIMEOUT,
    onError: () => {}, // the default prints the error, which is also in the stream
  });
  const outcome = { text: "", reasoning: "", tool_calls: [], finish: null, usage: null, errors: [] };
  for await (const part of answer.fullStream) ADD[part.type]?.(outcome, part);
  return outcome;
}
