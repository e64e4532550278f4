// LangChain's chat models for JavaScript: `stream()`, whose chunks are joined with `concat()`.
// Each function imports the integration that it needs: together they take long to load.
import { clientOf, limitOf, retriesOf, watched } from "../faults.mjs";
import { API_KEY, asText, chatToolsOf, joined } from "../job.mjs";
import { NOTHING } from "../troubles.mjs";

const optionsOf = (job) => ({ apiKey: API_KEY, maxRetries: retriesOf(job) });

/** `ChatOpenAI`, which requests usage by default. */
export const chat = (job) => openai(job, false);

/** `ChatOpenAI` over the Responses API. */
export const responses = (job) => openai(job, true);

async function openai(job, useResponsesApi) {
  const { ChatOpenAI } = await import("@langchain/openai");
  const configuration = { baseURL: job.base_url };
  const more = { model: "gpt-4o", timeout: limitOf(job), configuration, useResponsesApi };
  return run(() => new ChatOpenAI({ ...optionsOf(job), ...more }), job);
}

export async function messages(job) {
  const { ChatAnthropic } = await import("@langchain/anthropic");
  const clientOptions = { timeout: limitOf(job) };
  const more = { model: "claude-sonnet-4-5", anthropicApiUrl: job.base_url, clientOptions };
  return run(() => new ChatAnthropic({ ...optionsOf(job), ...more }), job);
}

export async function contents(job) {
  const { ChatGoogleGenerativeAI } = await import("@langchain/google-genai");
  const more = { model: "gemini-2.5-flash", baseUrl: job.base_url };
  return run(() => new ChatGoogleGenerativeAI({ ...optionsOf(job), ...more }), job);
}

export async function converse(job) {
  const { ChatBedrockConverse } = await import("@langchain/aws");
  const { bedrockOf, REGION: region, CREDENTIALS: credentials } = await import("../bedrock.mjs");
  // Its own `endpointHost` is always https.
  const more = { model: job.model, region, credentials };
  return run(
    () => new ChatBedrockConverse({ ...more, client: bedrockOf(job), maxRetries: 0 }),
    job,
  );
}

export async function ollama(job) {
  const { ChatOllama } = await import("@langchain/ollama");
  const more = { model: job.model, baseUrl: job.base_url, maxRetries: retriesOf(job) };
  return run(() => new ChatOllama(more), job);
}

async function run(make, job) {
  const model = clientOf(job, make);
  const tools = chatToolsOf(job);
  const bound = tools.length > 0 ? model.bindTools(tools) : model;
  const user = new AbortController();
  // The timeout of a call bounds the whole answer, so that it is none for a stream that stalls.
  const options = job.run ? { signal: user.signal } : { timeout: limitOf(job) };
  const stream = await bound.stream(job.prompt, options);
  let message;
  for await (const chunk of watched(job, stream, ({ text }) => text, () => user.abort())) {
    message = message === undefined ? chunk : message.concat(chunk);
  }
  return message === undefined ? NOTHING : outcomeOf(message);
}

/** The message; each of LangChain's `invalid_tool_calls` is an error. Without a role in the stream
 * the message is a `ChatMessageChunk`, which has no calls. */
function outcomeOf(message) {
  const { tool_calls: calls = [], invalid_tool_calls: invalid = [] } = message;
  const content = Array.isArray(message.content) ? message.content : [];
  const kept = message.additional_kwargs;
  return {
    text: asText(message.text),
    reasoning: reasoningOf(message),
    refusal: kept.refusal ?? joined(ofType(content, "refusal").map((block) => block.refusal)),
    tool_calls: calls.map(({ id, name, args }) => ({ id, name, arguments: args })),
    finish: finishOf(message),
    usage: usageOf(message.usage_metadata),
    errors: invalid.map(({ id, name, args, error }) => ({
      message: `invalid tool call ${name} (${id}): ${error ?? args}`,
    })),
    opaque: opaqueOf(message, content),
  };
}

const ofType = (blocks, type) => blocks.filter((block) => block.type === type);

const reasoningOf = ({ contentBlocks }) =>
  joined(ofType(contentBlocks, "reasoning").map((block) => block.reasoning));

/** What has to be sent back: signatures, redacted and encrypted reasoning. */
function opaqueOf({ additional_kwargs: kept }, content) {
  const blocks = content.flatMap(({ type, signature, data }) =>
    type === "redacted_thinking" ? [data] : [signature],
  );
  const calls = Object.values(kept.__gemini_function_call_thought_signatures__ ?? {});
  return [...blocks, kept.reasoning?.encrypted_content, ...calls].filter(Boolean);
}

/** The finish reason, whose key differs in each integration. */
function finishOf({ response_metadata: metadata, additional_kwargs: kept }) {
  return (
    metadata.finish_reason ??
    metadata.finishReason ??
    metadata.stop_reason ??
    metadata.messageStop?.stopReason ??
    metadata.done_reason ??
    kept.stop_reason ??
    kept.finishReason ??
    metadata.incomplete_details?.reason ??
    metadata.status ??
    null
  );
}

function usageOf(usage) {
  if (!usage) return null;
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    reasoning: usage.output_token_details?.reasoning,
    cached: usage.input_token_details?.cache_read,
  };
}
