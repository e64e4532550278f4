// Has conversations with mockllm through Vercel's AI SDK and its providers.
//
//   node run.mjs 6 < jobs.json
//
// The argument is the major version of the SDK: 6 or 7.
//
// Jobs come as a list. One is {id, api: a key of MODELS, provider: another key for the same API, url, model, headers, providerOptions, userMessages: [text of each user message], tools: [{name, description,
// parameters}], results: {"name input": text}, automatic, whole, maxSteps}. The tools run here: the result
// of a call is in the table under its name and its input as JSON, or it is "ok". With `automatic`
// the SDK runs the tools, and one whose result begins with "Error" throws; otherwise they run
// between requests. With `whole` the
// answers are not streamed. A conversation ends after its last message, after an error, or after `maxSteps`
// answers.
//
// Prints one line of JSON for each job, in the order in which they end: {id, steps: [{text,
// reasoning, calls: [{id, name, input, invalid}], finish, usage, sources, warnings, errors}]}.
const VERSION = process.argv[2];
const PACKAGES = {
  6: (name) => (name === "ai" ? name : `@ai-sdk/${name}`),
  7: (name) => `${name}-7`, // an alias in package.json
};
const load = (name) => import(PACKAGES[VERSION](name));
const { createAmazonBedrock } = await load("amazon-bedrock");
const { createAnthropic } = await load("anthropic");
const { createCohere } = await load("cohere");
const { createGoogleGenerativeAI } = await load("google");
const { createOllama } = await load("ollama");
const { createOpenAI } = await load("openai");
const { createOpenAICompatible } = await load("openai-compatible");
const { generateText, jsonSchema, stepCountIs, streamText, tool } = await load("ai");

globalThis.AI_SDK_LOG_WARNINGS = false; // they are reported with their step instead

const AT_ONCE = 8;

const AWS = { region: "us-east-1", accessKeyId: "mock-key", secretAccessKey: "mock-key" };

const MODELS = {
  chat: (settings, model) => createOpenAI(settings).chat(model),
  responses: (settings, model) => createOpenAI(settings).responses(model),
  anthropic: (settings, model) => createAnthropic(settings)(model),
  gemini: (settings, model) => createGoogleGenerativeAI(settings)(model),
  bedrock: ({ baseURL, headers }, model) =>
    createAmazonBedrock({ baseURL, headers, ...AWS })(model),
  cohere: (settings, model) => createCohere(settings)(model),
  compatible: (settings, model) =>
    createOpenAICompatible({ ...settings, name: "mock", includeUsage: true })(model),
  ollama: ({ baseURL, headers }, model) => createOllama({ baseURL, headers })(model),
};

const resultOf = (job, name, input) => job.results[`${name} ${JSON.stringify(input)}`] ?? "ok";

function toolsOf(job) {
  const execute = (name) => async (input) => {
    const result = resultOf(job, name, input);
    if (result.startsWith("Error")) throw new Error(result);
    return result;
  };
  return Object.fromEntries(
    job.tools.map(({ name, description, parameters }) => {
      const inputSchema = jsonSchema(parameters);
      const run = job.automatic ? { execute: execute(name) } : {};
      return [name, tool({ description, inputSchema, ...run })];
    }),
  );
}

const emptyStep = () => ({
  text: "",
  reasoning: "",
  calls: [],
  finish: null,
  usage: null,
  sources: [],
  warnings: [],
  errors: [],
});

const isOver = (step) => step === undefined || step.finish !== null;

/** A source; a document has no URL. */
const sourceOf = ({ url = "", title = "" }) => ({ url, title });

/** The counts of a usage. Version 6 has the details in two places, version 7 in one. */
const usageOf = (usage) => ({
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  reasoningTokens: usage.outputTokenDetails?.reasoningTokens,
  cachedInputTokens: usage.inputTokenDetails?.cacheReadTokens,
});

/** The message of the service; after several attempts, that of the last. */
const messageOf = (error) => String((error.lastError ?? error).message ?? JSON.stringify(error));

// What each part of the SDK's stream adds to the step that it belongs to.
const ADD = {
  "text-delta": (step, { text }) => void (step.text += text),
  "reasoning-delta": (step, { text }) => void (step.reasoning += text),
  "tool-call": (step, { toolCallId: id, toolName: name, input, invalid = false }) =>
    void step.calls.push({ id, name, input, invalid }),
  source: (step, source) => void step.sources.push(sourceOf(source)),
  error: (step, { error }) => void step.errors.push(messageOf(error)),
  "start-step": (step, { warnings }) => void step.warnings.push(...warnings),
  "finish-step": (step, { finishReason: finish, usage }) =>
    void Object.assign(step, { finish, usage: usageOf(usage) }),
};

/** What `streamText` and `generateText` are given for some messages. */
function settingsOf(job, messages, tools) {
  const { api, provider = api, url, model, headers, providerOptions } = job;
  return {
    model: MODELS[provider]({ baseURL: url, apiKey: "test-key", headers }, model),
    messages,
    tools,
    providerOptions,
    stopWhen: stepCountIs(job.automatic ? job.maxSteps : 1),
  };
}

/** The steps of one `generateText`, and their messages. */
async function sendWhole(settings) {
  let answer;
  try {
    answer = await generateText(settings);
  } catch (error) {
    return { steps: [{ ...emptyStep(), errors: [messageOf(error)] }], failed: true };
  }
  const steps = answer.steps.map((step) => {
    const { text, reasoningText = "", finishReason: finish, usage, warnings, sources } = step;
    const calls = step.toolCalls.map(({ toolCallId: id, toolName: name, input, invalid = false }) => {
      return { id, name, input, invalid };
    });
    return {
      ...emptyStep(),
      text,
      reasoning: reasoningText,
      calls,
      finish,
      usage: usageOf(usage),
      sources: sources.map(sourceOf),
      warnings: warnings ?? [],
    };
  });
  return { steps, failed: false, newMessages: answer.response.messages };
}

/** The steps of one `streamText`, and their messages. */
async function sendStreamed(settings) {
  const onError = () => {}; // it would be printed; the stream has it too
  const answer = streamText({ ...settings, onError });
  const steps = [];
  const add = (part) => {
    // A request that fails has no "start-step"; its error is a step of its own.
    const opens = part.type === "start-step" || (part.type === "error" && isOver(steps.at(-1)));
    if (opens) steps.push(emptyStep());
    ADD[part.type]?.(steps.at(-1), part);
  };
  try {
    for await (const part of answer.fullStream) add(part);
  } catch (error) {
    add({ type: "error", error }); // a provider may also throw
  }
  const failed = steps.some((step) => step.errors.length > 0);
  return { steps, failed, newMessages: failed ? [] : (await answer.response).messages };
}

/** The missing results of the new messages: one message, or none. */
function execute(job, newMessages) {
  const parts = newMessages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const answered = new Set(parts.filter((p) => p.type === "tool-result").map((p) => p.toolCallId));
  const waiting = parts.filter((p) => p.type === "tool-call" && !answered.has(p.toolCallId));
  const content = waiting.map(({ toolCallId, toolName, input }) => ({
    type: "tool-result",
    toolCallId,
    toolName,
    output: { type: "text", value: resultOf(job, toolName, input) },
  }));
  const message = content.length > 0 ? [{ role: "tool", content }] : [];
  return { message, called: parts.some((p) => p.type === "tool-call") };
}

async function converse(given) {
  const job = { headers: {}, tools: [], results: {}, automatic: false, whole: false, maxSteps: 8, ...given };
  const tools = toolsOf(job);
  const userTexts = [...job.userMessages];
  const messages = [];
  const steps = [];
  let called = false;
  while (steps.length < job.maxSteps && (called || userTexts.length > 0)) {
    if (!called) messages.push({ role: "user", content: userTexts.shift() });
    const settings = settingsOf(job, messages, tools);
    const answer = await (job.whole ? sendWhole(settings) : sendStreamed(settings));
    steps.push(...answer.steps);
    if (answer.failed) break;
    const { message, called: more } = execute(job, answer.newMessages);
    messages.push(...answer.newMessages, ...message);
    called = more && !job.automatic;
  }
  return { id: job.id, steps };
}

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const waiting = JSON.parse(Buffer.concat(chunks).toString("utf8"));

async function work() {
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
    process.stdout.write(`${JSON.stringify(await converse(job))}\n`);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
