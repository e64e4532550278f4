// Has a conversation with an AG-UI agent through the official client, which verifies every stream.
//
//   node run.mjs URL < job.json
//
// The job: {userMessages: [text of each user message], tools: [AG-UI tools], results: {call id or
// tool name: content}, resultPosition: "end" | "behind", maxRuns: 8}. The tools run here, in the
// front end. Each call gets its result from the table (or "ok"), at the end of the history or, as
// in some user interfaces, right behind the message with the call. Then the agent runs again,
// until it makes no more calls, or after `maxRuns` runs.
//
// Prints one line of JSON: {runs: [{text, reasoning, calls, usage, error}], text, calls, errors,
// warnings, messages, state, outcome of the last run}.
import { HttpAgent } from "@ag-ui/client";

const warnings = [];
console.warn = console.error = (...values) => warnings.push(values.map(String).join(" "));

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const job = { userMessages: [], tools: [], results: {}, resultPosition: "end", maxRuns: 8 };
Object.assign(job, JSON.parse(Buffer.concat(chunks).toString("utf8")));

const agent = new HttpAgent({ url: process.argv[2], threadId: "thread_of_test" });
const runs = [];
let ids = 0;
let outcome = null;

const callsOf = (messages) => messages.flatMap((message) => message.toolCalls ?? []);
const textOf = (messages, role) =>
  messages
    .filter((message) => message.role === role)
    .map((message) => message.content ?? "")
    .join("");

async function runOnce() {
  const run = { error: null, usage: null };
  const subscriber = {
    onRunErrorEvent: ({ event }) => void (run.error = event.message),
    onRunFinishedEvent: ({ event }) => {
      run.usage = event.usage ?? null;
      outcome = event.outcome ?? null;
    },
  };
  let newMessages = [];
  try {
    const parameters = { runId: `run_${++ids}`, tools: job.tools };
    newMessages = (await agent.runAgent(parameters, subscriber)).newMessages;
  } catch (error) {
    run.error = String(error.message ?? error);
  }
  run.text = textOf(newMessages, "assistant");
  run.reasoning = textOf(newMessages, "reasoning");
  run.calls = callsOf(newMessages).map(({ id, function: { name, arguments: text } }) => ({
    id,
    name,
    arguments: text,
  }));
  runs.push(run);
  return run.error === null;
}

function execute() {
  const answered = new Set(agent.messages.map((message) => message.toolCallId));
  const waiting = callsOf(agent.messages).filter((call) => !answered.has(call.id));
  for (const call of waiting) {
    const content = job.results[call.id] ?? job.results[call.function.name] ?? "ok";
    const message = { id: `result_${++ids}`, role: "tool", toolCallId: call.id, content };
    const owner = agent.messages.findIndex((one) => one.toolCalls?.includes(call));
    const index = job.resultPosition === "behind" ? owner + 1 : agent.messages.length;
    agent.messages.splice(index, 0, message);
  }
  return waiting.length > 0;
}

conversation: for (const content of job.userMessages) {
  agent.addMessage({ id: `user_${++ids}`, role: "user", content });
  do {
    if (!(await runOnce())) break conversation;
  } while (execute() && runs.length < job.maxRuns);
}

const result = {
  runs,
  text: runs.map((run) => run.text).join(""),
  calls: runs.flatMap((run) => run.calls),
  errors: runs.map((run) => run.error).filter((error) => error !== null),
  warnings,
  messages: agent.messages,
  state: agent.state,
  outcome,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
