// @openai/agents: `run()` with a stream, ended after one answer of the model.
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run as runAgent,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";

import { API_KEY, functionsOf, joined, timeoutOf } from "../job.mjs";

setTracingDisabled(true);

export async function chat(job) {
  const { opaque, ...answer } = await run(OpenAIChatCompletionsModel, job);
  return answer; // Chat Completions has no such values
}

export const responses = (job) => run(OpenAIResponsesModel, job);

async function run(Model, job) {
  const client = new OpenAI({
    baseURL: job.base_url,
    apiKey: API_KEY,
    maxRetries: 0,
    timeout: timeoutOf(job),
  });
  const agent = new Agent({
    name: "tester",
    model: new Model(client, "gpt-4o"),
    tools: functionsOf(job).map(toolOf),
    toolUseBehavior: "stop_on_first_tool",
  });
  const result = await runAgent(agent, job.prompt, { stream: true, maxTurns: 1 });
  for await (const _ of result);
  await result.completed;
  return outcomeOf(result.rawResponses[0]);
}

const toolOf = ({ name, description, parameters }) =>
  tool({ name, description, parameters, strict: false, execute: () => "done" });

function outcomeOf({ output, usage, responseId }) {
  const ofType = (type) => output.filter((item) => item.type === type);
  const parts = ofType("message").flatMap((item) => item.content);
  return {
    text: joined(parts.filter((part) => part.type === "output_text").map((part) => part.text)),
    refusal: joined(parts.filter((part) => part.type === "refusal").map((part) => part.refusal)),
    reasoning: joined(ofType("reasoning").flatMap(thoughtsOf)),
    tool_calls: ofType("function_call").map(({ callId: id, name, arguments: text }) => ({
      id,
      name,
      arguments: text,
      raw_arguments: text,
    })),
    usage: usageOf(usage),
    opaque: ofType("reasoning")
      .map((item) => item.providerData?.encrypted_content)
      .filter(Boolean),
    response_id: responseId,
  };
}

/** The raw reasoning, which is in the provider's data for Responses, or its summary. */
const thoughtsOf = ({ rawContent, providerData, content }) =>
  ([rawContent, providerData?.content].find((parts) => parts?.length) ?? content).map(
    (part) => part.text,
  );

/** The usage; it has zeros if none was sent. */
function usageOf(usage) {
  if (!usage.totalTokens) return null;
  const detail = (details, name) => [details].flat().find((one) => name in (one ?? {}))?.[name];
  return {
    input: usage.inputTokens,
    output: usage.outputTokens,
    reasoning: detail(usage.outputTokensDetails, "reasoning_tokens"),
    cached: detail(usage.inputTokensDetails, "cached_tokens"),
  };
}
