// Sends requests to mockllm with official SDKs, one after the other.
//
//   node run.mjs
//
// A line of its input is one request: {sdk, url, operation, request, attempts, http2}. `bedrock` has
// the operations of the AWS SDK, such as "ConverseStream"; `ollama` has "chat"; `interactions` has
// "create", and with an `id` "get", "cancel" and "delete"; `responses` sends its
// requests for one URL over one WebSocket. Each line of its
// output is the answer: {events, error}. An answer that does not stream is one event; bytes are
// text; `error`, of an SDK that raised one after these events, is {name, message, status}.
import * as aws from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { Ollama } from "ollama";
import { OpenAI } from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { createInterface } from "node:readline";

const CREDENTIALS = { accessKeyId: "mock-key", secretAccessKey: "mock-key" };

const sockets = new Map();
const ENDINGS = ["response.completed", "response.incomplete", "response.failed", "error"];

function socketOf(url) {
  if (!sockets.has(url)) {
    sockets.set(url, new ResponsesWS(new OpenAI({ baseURL: `${url}/v1`, apiKey: "mock-key" })));
  }
  return sockets.get(url);
}

const SDKS = {
  async *responses({ url, request }) {
    const socket = socketOf(url);
    const messages = socket.stream();
    socket.send({ type: "response.create", ...request });
    for await (const { type, message, error, code } of messages) {
      const event = message ?? error?.error;
      if (event) yield event;
      if (type === "error" && !event) throw error;
      if (type === "close") throw { name: "Closed", message: `${code}` };
      if (ENDINGS.includes(event?.type)) return;
    }
  },
  async bedrock({ url, operation, request, attempts = 3, http2 = false }) {
    const client = new aws.BedrockRuntimeClient({
      endpoint: url,
      region: "us-east-1",
      credentials: CREDENTIALS,
      maxAttempts: attempts,
      ...(!http2 && { requestHandler: new NodeHttpHandler() }),
    });
    const answer = await client.send(new aws[`${operation}Command`](request));
    return answer.stream ?? (operation.endsWith("Stream") ? answer.body : [answer]);
  },
  async interactions({ url, operation, request, id }) {
    const client = new GoogleGenAI({ apiKey: "mock-key", httpOptions: { baseUrl: url } });
    const before = id === undefined ? [] : [id];
    const answer = await client.interactions[operation](...before, request, { maxRetries: 0 });
    return request.stream ? answer : [answer ?? null];
  },
  async ollama({ url, operation, request }) {
    const answer = await new Ollama({ host: url })[operation](request);
    return request.stream ? answer : [answer];
  },
};

const written = (_key, value) =>
  value instanceof Uint8Array ? new TextDecoder().decode(value) : value;

async function answerTo(job) {
  const events = [];
  try {
    for await (const event of await SDKS[job.sdk](job)) events.push(event);
    return { events, error: null };
  } catch ({ name, message, status, status_code, $metadata }) {
    const code = status ?? status_code ?? $metadata?.httpStatusCode;
    return { events, error: { name, message, status: code } };
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify(await answerTo(JSON.parse(line)), written)}\n`);
}
process.exit(0); // sockets that stay open would keep it
