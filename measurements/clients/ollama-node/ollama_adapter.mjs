// ollama-js, whose users join the chunks of a stream themselves.
import { Ollama } from "ollama";

import { chatToolsOf, joined, withTools } from "../job.mjs";

/** `chat({stream: true})`. */
export async function chat(job) {
  const stream = await new Ollama({ host: job.base_url }).chat({
    model: job.model,
    messages: [{ role: "user", content: job.prompt }],
    stream: true,
    ...withTools(chatToolsOf(job)),
  });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const messages = chunks.map(({ message }) => message);
  const { model, done_reason: finish, ...counts } = chunks.at(-1) ?? {};
  return {
    text: joined(messages.map(({ content }) => content)),
    reasoning: joined(messages.map(({ thinking }) => thinking)),
    tool_calls: messages
      .flatMap(({ tool_calls: calls }) => calls ?? [])
      .map(({ function: { name, arguments: given } }) => ({ name, arguments: given })),
    role: messages[0]?.role,
    finish,
    usage: usageOf(counts),
    model,
  };
}

function usageOf({ prompt_eval_count: input, eval_count: output }) {
  return input === undefined && output === undefined ? null : { input, output };
}
