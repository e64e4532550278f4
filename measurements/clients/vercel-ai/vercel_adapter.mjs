// Vercel's AI SDK: `streamText` with its providers, whose `fullStream` is read to its end.
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createCohere } from "@ai-sdk/cohere";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, streamText, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";

import { CREDENTIALS, REGION } from "../bedrock.mjs";
import { limitOf, retriesOf, watched } from "../faults.mjs";
import { API_KEY, functionsOf, timeoutOf, withTools } from "../job.mjs";
import { addTrouble, NOTHING } from "../troubles.mjs";

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

export const converse = (job) =>
  run(createAmazonBedrock({ baseURL: job.base_url, region: REGION, ...CREDENTIALS })(job.model), job);

export const cohere = (job) => run(createCohere(settings(`${job.base_url}/v2`))(job.model), job);

export const ollama = (job) =>
  run(createOllama({ baseURL: `${job.base_url}/api` })(job.model), job);

export const completions = (job) =>
  run(createOpenAI(settings(job.base_url)).completion(job.model), job);

/** Tools that are executed: the calls of the outcome are those that the SDK executes. */
const toolsOf = (job) =>
  functionsOf(job).map(({ name, description, parameters }) => [
    name,
    tool({ description, inputSchema: jsonSchema(parameters), execute: () => "done" }),
  ]);

// What each part of the stream adds to the outcome. A "tool-error" repeats an invalid call.
const ADD = {
  "text-delta": (outcome, { text }) => void (outcome.text += text),
  "reasoning-delta": (outcome, { text }) => void (outcome.reasoning += text),
  "tool-call": call,
  "tool-result": (outcome, { toolCallId }) => void outcome.executed.add(toolCallId),
  error: (outcome, { error }) => addTrouble(outcome, error),
  abort: (outcome, { reason }) => addTrouble(outcome, `aborted: ${reason ?? "no reason"}`),
  "finish-step": finish,
};

/** A call; one that is flagged as invalid is never executed, and has the SDK's error. */
function call(outcome, { toolCallId: id, toolName: name, input, invalid, error }) {
  if (invalid) addTrouble(outcome, error, `invalid tool call ${name} (${id}): `);
  else outcome.tool_calls.push({ id, name, arguments: input });
}

function finish(outcome, { finishReason, usage, response }) {
  outcome.finish = finishReason.replaceAll("-", "_");
  outcome.usage = usageOf(usage);
  outcome.response_id = response.id;
  outcome.model = response.modelId;
}

function usageOf({ inputTokens, outputTokens, inputTokenDetails, outputTokenDetails }) {
  const counts = {
    input: inputTokens,
    output: outputTokens,
    reasoning: outputTokenDetails?.reasoningTokens,
    cached: inputTokenDetails?.cacheReadTokens,
  };
  return Object.values(counts).every((number) => number === undefined) ? null : counts;
}

/** Where the providers keep what has to be sent back unchanged. */
const OPAQUE = ["signature", "redactedData", "thoughtSignature", "reasoningEncryptedContent"];

/** Each value once: every part of an item repeats it. */
function opaqueOf({ content }) {
  const kept = content.flatMap((part) => Object.values(part.providerMetadata ?? {}));
  const values = kept.flatMap((metadata) => OPAQUE.map((key) => metadata[key]));
  return [...new Set(values.filter(Boolean))];
}

async function run(model, job) {
  const { tools } = withTools(toolsOf(job));
  const user = new AbortController(); // how its users cancel
  const answer = streamText({
    model,
    prompt: job.prompt,
    tools: tools && Object.fromEntries(tools),
    maxRetries: retriesOf(job),
    ...(job.run && { abortSignal: user.signal }),
    timeout: job.run ? { firstChunkMs: limitOf(job), chunkMs: limitOf(job) } : timeoutOf(job),
    onError: () => {}, // the default prints the error, which is also in the stream
  });
  const outcome = { ...NOTHING, tool_calls: [], errors: [], causes: [], executed: new Set() };
  const textOf = ({ type, text }) => type === "text-delta" && text;
  for await (const part of watched(job, answer.fullStream, textOf, () => user.abort())) {
    const known = outcome.errors.length;
    ADD[part.type]?.(outcome, part);
    if (outcome.errors.length > known) outcome.causes.push(part.error ?? null);
  }
  const { executed, causes, ...told } = outcome;
  told.tool_calls = told.tool_calls.filter(({ id }) => executed.has(id));
  if (job.run) told.causes = causes;
  // There is no step if the stream failed.
  const step = await answer.finalStep.catch(() => null);
  return step === null ? told : { ...told, opaque: opaqueOf(step) };
}
