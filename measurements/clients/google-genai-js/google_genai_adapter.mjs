// @google/genai: `generateContentStream()`, whose chunks the user joins.
import { GoogleGenAI } from "@google/genai";

import { clientOf, limitOf, retriesOf, watched } from "../faults.mjs";
import { API_KEY, functionsOf, joined } from "../job.mjs";

/** The chunks' `text`, `functionCalls` and thoughts, the last finish or block reason, and the last
 * usage. */
export async function contents(job) {
  const httpOptions = {
    baseUrl: job.base_url,
    timeout: limitOf(job),
    retryOptions: { attempts: retriesOf(job) + 1 },
  };
  const ai = clientOf(
    job,
    () => new GoogleGenAI({ apiKey: API_KEY, vertexai: false, httpOptions }),
  );
  const functionDeclarations = functionsOf(job).map(({ parameters, ...rest }) => ({
    ...rest,
    parametersJsonSchema: parameters,
  }));
  const user = new AbortController();
  const config = job.run ? { abortSignal: user.signal } : {};
  if (functionDeclarations.length > 0) config.tools = [{ functionDeclarations }];
  const request = { model: job.model, contents: job.prompt, config };
  const chunks = [];
  const stream = await ai.models.generateContentStream(request);
  for await (const chunk of watched(job, stream, ({ text }) => text, () => user.abort()))
    chunks.push(chunk);
  return outcomeOf(chunks);
}

function outcomeOf(chunks) {
  const last = (values) => values.filter((value) => value !== undefined && value !== null).at(-1);
  const candidates = chunks.map((chunk) => chunk.candidates?.[0]);
  const parts = candidates.flatMap((candidate) => candidate?.content?.parts ?? []);
  const calls = chunks.flatMap((chunk) => chunk.functionCalls ?? []);
  return {
    text: joined(chunks.map((chunk) => chunk.text)),
    reasoning: joined(parts.filter((part) => part.thought).map((part) => part.text)),
    tool_calls: calls.map(({ id, name, args }) => ({ id, name, arguments: args })),
    finish:
      last(candidates.map((candidate) => candidate?.finishReason)) ??
      last(chunks.map((chunk) => chunk.promptFeedback?.blockReason)) ??
      null,
    usage: usageOf(last(chunks.map((chunk) => chunk.usageMetadata))),
    opaque: parts.map((part) => part.thoughtSignature).filter(Boolean),
    ...given("role", last(candidates.map((candidate) => candidate?.content?.role))),
    ...given("model", last(chunks.map((chunk) => chunk.modelVersion))),
    ...given("response_id", last(chunks.map((chunk) => chunk.responseId))),
  };
}

const given = (key, value) => (value === undefined ? {} : { [key]: value });

/** The usage; the API leaves out counts of zero. */
function usageOf(usage) {
  if (!usage) return null;
  const thoughts = usage.thoughtsTokenCount ?? 0;
  return {
    input: usage.promptTokenCount,
    output: (usage.candidatesTokenCount ?? 0) + thoughts,
    reasoning: thoughts,
    cached: usage.cachedContentTokenCount ?? 0,
  };
}
