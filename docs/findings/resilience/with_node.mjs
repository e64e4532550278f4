// SDKs under Node as their documentation has them, with a timeout of 0.5 s. Run it where the
// packages are installed: python raw_server.py chat stall -- node with_node.mjs openai
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(path.join(process.env.MODULES ?? process.cwd(), "x.js"));
const load = (name) => import(require.resolve(name));

const baseURL = process.env.BASE_URL;
const messages = [{ role: "user", content: "hi" }];
const limits = { baseURL, apiKey: "k", timeout: 500 };
const say = (...values) => console.log("  CLIENT returns:", JSON.stringify(values));

const CLIENTS = {
  async openai() {
    const OpenAI = (await load("openai")).default;
    const stream = new OpenAI(limits).chat.completions.stream({ model: "m", messages });
    const { choices } = await stream.finalChatCompletion();
    say(choices);
  },
  async responses() {
    const OpenAI = (await load("openai")).default;
    const stream = new OpenAI(limits).responses.stream({ model: "m", input: "hi" });
    say((await stream.finalResponse()).output_text);
  },
  async anthropic() {
    const Anthropic = (await load("@anthropic-ai/sdk")).default;
    const stream = new Anthropic(limits).messages.stream({ model: "m", max_tokens: 99, messages });
    const { content, stop_reason } = await stream.finalMessage();
    say(content, stop_reason);
  },
  async gemini() {
    const { GoogleGenAI } = await load("@google/genai");
    const httpOptions = { baseUrl: baseURL, timeout: 500, retryOptions: { attempts: 3 } };
    const ai = new GoogleGenAI({ apiKey: "k", httpOptions });
    const pieces = [];
    for await (const one of await ai.models.generateContentStream({ model: "m", contents: "hi" }))
      pieces.push([one.text, one.functionCalls]);
    say(pieces);
  },
  async gemini_cancel() {
    const { GoogleGenAI } = await load("@google/genai");
    const ai = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: baseURL } });
    for await (const one of await ai.models.generateContentStream({ model: "m", contents: "hi" })) {
      say(one.text, "and leaves the loop");
      break;
    }
    await new Promise((done) => setTimeout(done, 6000));
    say("six seconds later");
  },
  async ai() {
    const { streamText } = await load("ai");
    const { createOpenAI } = await load("@ai-sdk/openai");
    const model = createOpenAI({ baseURL, apiKey: "k" }).chat("m");
    const timeout = { firstChunkMs: 500, chunkMs: 500 };
    const answer = streamText({ model, prompt: "hi", timeout, onError: () => {} });
    for await (const part of answer.fullStream)
      if (!part.type.startsWith("start")) say(part.type, part.text, String(part.error ?? ""));
  },
};

try {
  await CLIENTS[process.argv[2]]();
} catch (error) {
  const { name, message, cause } = error;
  console.log(`  CLIENT throws: ${error.constructor.name} (${name}): ${message}; ${cause}`);
}
