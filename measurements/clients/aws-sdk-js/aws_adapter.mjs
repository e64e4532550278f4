// The AWS SDK for JavaScript, whose users join the events of a stream themselves.
import { ConverseStreamCommand } from "@aws-sdk/client-bedrock-runtime";

import { bedrockOf } from "../bedrock.mjs";
import { clientOf, watched } from "../faults.mjs";
import { functionsOf, joined, withTools } from "../job.mjs";

/** `ConverseStreamCommand`; the deltas of a block are joined by its `contentBlockIndex`. */
export async function converse(job) {
  const client = clientOf(job, () => bedrockOf(job));
  const { tools } = withTools(functionsOf(job).map(toolOf));
  const user = new AbortController();
  const command = new ConverseStreamCommand({
    modelId: job.model,
    messages: [{ role: "user", content: [{ text: job.prompt }] }],
    ...(tools && { toolConfig: { tools } }),
  });
  const { stream } = await client.send(command, { abortSignal: user.signal });
  const textOf = ({ contentBlockDelta }) => contentBlockDelta?.delta.text;
  const blocks = []; // by index
  let role, finish, usage;
  for await (const event of watched(job, stream, textOf, () => user.abort())) {
    const { messageStart, contentBlockStart, contentBlockDelta, messageStop, metadata } = event;
    if (messageStart) role = messageStart.role;
    if (contentBlockStart) start(blocks, contentBlockStart);
    if (contentBlockDelta) add(blocks, contentBlockDelta);
    if (messageStop) finish = messageStop.stopReason;
    if (metadata?.usage) usage = metadata.usage;
  }
  return {
    text: joined(blocks.map(({ text }) => text)),
    reasoning: joined(blocks.map(({ reasoning }) => reasoning)),
    tool_calls: blocks.filter(isCall).map(callOf),
    role,
    finish,
    usage: usageOf(usage),
    opaque: blocks.map(({ signature }) => signature).filter(Boolean),
  };
}

const toolOf = ({ parameters, ...rest }) => ({
  toolSpec: { ...rest, inputSchema: { json: parameters } },
});

function start(blocks, { contentBlockIndex: index, start: { toolUse } }) {
  if (toolUse) blocks[index] = { toolUse, input: "" };
}

function add(blocks, { contentBlockIndex: index, delta }) {
  const block = (blocks[index] ??= {});
  const { text, toolUse, reasoningContent } = delta;
  if (text) block.text = (block.text ?? "") + text;
  if (toolUse) block.input += toolUse.input;
  if (reasoningContent?.text) block.reasoning = (block.reasoning ?? "") + reasoningContent.text;
  if (reasoningContent?.signature) block.signature = reasoningContent.signature;
}

/** Whether a block is a call of the client: the service runs others by itself. */
const isCall = ({ toolUse }) => toolUse && toolUse.type !== "server_tool_use";

const callOf = ({ toolUse: { toolUseId: id, name }, input }) => ({
  id,
  name,
  arguments: input,
  raw_arguments: input,
});

function usageOf(usage) {
  if (!usage) return null;
  const { inputTokens: fresh, cacheReadInputTokens: cached, cacheWriteInputTokens: written } = usage;
  return { input: fresh + (cached ?? 0) + (written ?? 0), output: usage.outputTokens, cached };
}
