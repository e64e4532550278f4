// Vercel's AI SDK: `streamText` with its providers, whose `fullStream` is read to its end.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, streamText, tool } from "ai";

import { API_KEY, TIMEOUT, trouble } from "./telling.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const settings = (baseURL, more = {}) => ({ baseURL, apiKey: API_KEY, ...more });

export const chat = (job) => ask(createOpenAI(settings(job.base_url)).chat(job.model), job);

export const responses = (job) =>
  ask(createOpenAI(settings(job.base_url)).responses(job.model), job);

/** Told to ask for the usage, which it does not do by itself. */
export function compatible(job) {
  const more = { name: "mockllm", includeUsage: true };
  return ask(createOpenAICompatible(settings(job.base_url, more))(job.model), job);
}

export const messages = (job) =>
  ask(createAnthropic(settings(`${job.base_url}/v1`))(job.model), job);

export const contents = (job) =>
  ask(createGoogleGenerativeAI(settings(`${job.base_url}/v1beta`))(job.model), job);

/** Tools that nothing executes: the calls are what the user ends up with. */
const toolsOf = (tools) =>
  Object.fromEntries(
    tools.map(({ function: { name, description, parameters } }) => [
      name,
      tool({ description, inputSchema: jsonSchema(parameters) }),
    ]),
  );

// What each part of the stream says. A "tool-error" says again what an invalid call says.
const SAYS = {
  "text-delta": (said, { text }) => void (said.text += text),
  "reasoning-delta": (said, { text }) => void (said.reasoning += text),
  "tool-call": call,
  error: (said, { error }) => void said.errors.push(trouble(error)),
  abort: (said, { reason }) =>
    void said.errors.push({ message: `aborted: ${reason ?? "no reason"}`, crash: false }),
  "finish-step": finish,
};

/** A call; one that is flagged as invalid is never executed. Its input is text where that is no
 * JSON; where it is invalid for another reason, that is an error. */
function call(said, { toolCallId: id, toolName: name, input, invalid, error }) {
  if (invalid && typeof input !== "string") {
    const { message, crash } = trouble(error);
    said.errors.push({ message: `invalid tool call ${name} (${id}): ${message}`, crash });
    return;
  }
  said.tool_calls.push({ id, name, arguments: input });
}

const COUNTS = ["inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens"];

function finish(said, { finishReason, usage }) {
  said.finish = finishReason.replaceAll("-", "_");
  const told = COUNTS.map((name) => usage[name]);
  said.usage = told.every((number) => number === undefined) ? null : told;
  if (finishReason === "error" && said.errors.length === 0) {
    said.errors.push({ message: "finishReason is 'error'", crash: false });
  }
}

async function ask(model, { prompt, tools }) {
  const answer = streamText({
    model,
    prompt,
    tools: tools.length > 0 ? toolsOf(tools) : undefined,
    maxRetries: 0,
    timeout: TIMEOUT,
    onError: () => {}, // it would be printed; the stream has it too
  });
  const said = { text: "", reasoning: "", tool_calls: [], finish: null, usage: null, errors: [] };
  for await (const part of answer.fullStream) SAYS[part.type]?.(said, part);
  return said;
}
