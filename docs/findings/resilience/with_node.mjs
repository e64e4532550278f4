// SDKs under Node as their documentation has them, with a timeout of 0.5 s. Run it where the
// packages are installed: python raw_server.py chat stall -- node with_node.mjs openai
//
// CANCEL=leave, call or drop: after the first piece, the loop is left and the stream kept; what the
// client has to cancel is called; or nothing refers to the stream any more (node --expose-gc).
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(path.resolve(process.env.MODULES ?? ".", "x.js"));
const load = (name) => import(require.resolve(name));

const baseURL = process.env.BASE_URL;
const way = process.env.CANCEL;
const limit = way ? 20_000 : 500;
const messages = [{ role: "user", content: "hi" }];
const limits = { baseURL, apiKey: "k", timeout: limit };
const short = (value) => JSON.stringify(value)?.slice(0, 400);
const say = (...values) => console.log("  CLIENT returns:", values.map(short).join(" "));
const pause = (time) => new Promise((done) => setTimeout(done, time));
const kept = [];

/** Reads a stream; with CANCEL its user wants no more after the first piece. */
async function read(stream, cancel, each = () => {}) {
  const pieces = stream[Symbol.asyncIterator]();
  for (let next; !(next = await pieces.next()).done; ) {
    if (!way || next.value.type === "start" || next.value.type === "start-step") {
      each(next.value);
      continue;
    }
    if (way === "leave") {
      kept.push(stream);
      await pieces.return?.();
    }
    if (way === "call") await cancel();
    throw "enough";
  }
}

const openai = async () => new (await load("openai")).default(limits);

const CLIENTS = {
  async openai() {
    const stream = (await openai()).chat.completions.stream({ model: "m", messages });
    if (way) await read(stream, () => stream.abort());
    const { choices } = await stream.finalChatCompletion();
    say(choices);
  },
  async responses() {
    const stream = (await openai()).responses.stream({ model: "m", input: "hi" });
    if (way) await read(stream, () => stream.abort());
    const { status, output_text, output } = await stream.finalResponse();
    say(status, output_text, output);
  },
  async anthropic() {
    const Anthropic = (await load("@anthropic-ai/sdk")).default;
    const stream = new Anthropic(limits).messages.stream({ model: "m", max_tokens: 99, messages });
    if (way) await read(stream, () => stream.abort());
    const { content, stop_reason } = await stream.finalMessage();
    say(content, stop_reason);
  },
  async gemini() {
    const { GoogleGenAI } = await load("@google/genai");
    const httpOptions = { baseUrl: baseURL, timeout: limit, retryOptions: { attempts: 3 } };
    const ai = new GoogleGenAI({ apiKey: "k", httpOptions });
    const user = new AbortController();
    const config = { abortSignal: user.signal };
    const pieces = [];
    const stream = await ai.models.generateContentStream({ model: "m", contents: "hi", config });
    const each = (one) => pieces.push([one.text, one.functionCalls]);
    await read(stream, () => user.abort(), each);
    say(pieces);
  },
  ai: () => ai("@ai-sdk/openai", "createOpenAI", (provider) => provider.chat("m")),
  ai_responses: () => ai("@ai-sdk/openai", "createOpenAI", (provider) => provider.responses("m")),
  ai_anthropic: () => ai("@ai-sdk/anthropic", "createAnthropic", (provider) => provider("m"), "/v1"),
  ai_gemini: () =>
    ai("@ai-sdk/google", "createGoogleGenerativeAI", (provider) => provider("m"), "/v1beta"),
  langchain: async () => langchain(await chatOpenAI(false)),
  langchain_responses: async () => langchain(await chatOpenAI(true)),
  async langchain_anthropic() {
    const { ChatAnthropic } = await load("@langchain/anthropic");
    const clientOptions = { timeout: limit };
    const where = { anthropicApiUrl: baseURL, clientOptions };
    await langchain(new ChatAnthropic({ apiKey: "k", model: "m", maxRetries: 2, ...where }));
  },
  async langchain_gemini() {
    const { ChatGoogleGenerativeAI } = await load("@langchain/google-genai");
    const where = { baseUrl: baseURL, maxRetries: 2 };
    await langchain(new ChatGoogleGenerativeAI({ apiKey: "k", model: "gemini-2.5-flash", ...where }));
  },
};

async function ai(name, create, modelOf, under = "") {
  const { streamText, tool, jsonSchema } = await load("ai");
  const model = modelOf((await load(name))[create]({ baseURL: baseURL + under, apiKey: "k" }));
  const timeout = { firstChunkMs: limit, chunkMs: limit };
  const user = new AbortController();
  const get_weather = tool({
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
    execute: (input) => say("EXECUTES get_weather", input),
  });
  const more = { timeout, abortSignal: user.signal, onError: () => {}, tools: { get_weather } };
  const answer = streamText({ model, prompt: "hi", ...more });
  await read(answer.fullStream, () => user.abort(), ({ type, text, input, error, finishReason }) => {
    if (!type.startsWith("start")) say({ type, text, input, finishReason }, named(error));
  });
}

async function chatOpenAI(useResponsesApi) {
  const { ChatOpenAI } = await load("@langchain/openai");
  const more = { maxRetries: 2, timeout: limit, useResponsesApi };
  return new ChatOpenAI({ apiKey: "k", model: "gpt-4o", configuration: { baseURL }, ...more });
}

async function langchain(model) {
  const user = new AbortController();
  const stream = await model.stream("hi", { signal: user.signal });
  let message;
  await read(stream, () => user.abort(), (chunk) => {
    message = message === undefined ? chunk : message.concat(chunk);
  });
  say(message?.text, message?.tool_calls, message?.invalid_tool_calls, message?.response_metadata);
}

/** What tells a program the cause: the class, and what it has of a status, a code and a type. */
function named(error) {
  if (error === undefined) return undefined;
  const last = error.lastError ?? error;
  const { name, message, status, statusCode, code, type } = last;
  return { class: last.constructor?.name, name, message, status, statusCode, code, type };
}

process.on("unhandledRejection", (error) => console.log("  CLIENT leaves unhandled:", named(error)));
try {
  await CLIENTS[process.argv[2]]();
} catch (error) {
  if (error === "enough") {
    console.log(`  CLIENT cancels: ${way}`);
    for (let half = 0; half < 2; half++) {
      if (way === "drop") globalThis.gc();
      await pause(3000);
    }
    console.log("  CLIENT six seconds later");
    process.exit(0);
  } else console.log("  CLIENT throws:", short(named(error)));
}
