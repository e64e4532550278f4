// LangChain's chat models for JavaScript: `stream()`, whose chunks are joined with `concat()`.
// Each function imports the integration that it needs: together they take long to load.
import { API_KEY, asText, chatToolsOf, joined, timeoutOf } from "../job.mjs";
import { NOTHING } from "../troubles.mjs";

const options = { apiKey: API_KEY, maxRetries: 0 };

/** `ChatOpenAI`, which requests usage by default. */
export const chat = async (job) => run(await openai(job, false), job);

/** `ChatOpenAI` over the Responses API. */
export const responses = async (job) => run(await openai(job, true), job);

async function openai(job, useResponsesApi) {
  const { ChatOpenAI } = await import("@langchain/openai");
  const configuration = { baseURL: job.base_url };
  const timeout = timeoutOf(job);
  return new ChatOpenAI({ ...options, model: "gpt-4o", timeout, configuration, useResponsesApi });
}

export async function messages(job) {
  const { ChatAnthropic } = await import("@langchain/anthropic");
  const model = new ChatAnthropic({
    ...options,
    model: "claude-sonnet-4-5",
    anthropicApiUrl: job.base_url,
    clientOptions: { timeout: timeoutOf(job) },
  });
  return run(model, job);
}

export async function contents(job) {
  const { ChatGoogleGenerativeAI } = await import("@langchain/google-genai");
  const more = { model: "gemini-2.5-flash", baseUrl: job.base_url };
  return run(new ChatGoogleGenerativeAI({ ...options, ...more }), job);
}

async function run(model, job) {
  const tools = chatToolsOf(job);
  const bound = tools.length > 0 ? model.bindTools(tools) : model;
  let message;
  for await (const chunk of await bound.stream(job.prompt, { timeout: timeoutOf(job) })) {
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
