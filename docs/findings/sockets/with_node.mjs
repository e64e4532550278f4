// Clients for Node, as their documentation has them: node with_node.mjs CLIENT < CASES, as
// with_python.py. MODULES is the folder with node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const require = createRequire(pathToFileURL(`${process.env.MODULES}/package.json`));
const { OpenAI } = require("openai");
const HOLD = 3000;
const parameters = { type: "object", properties: { city: { type: "string" } } };
const tool = { type: "function", name: "get_weather", parameters };

// `user` has what its client calls: heard(text), end() and fail(error).
function openaiEvents(socket, user, end, lifecycle = socket.socket) {
  socket.on("response.output_text.delta", (event) => user.heard(event.delta));
  socket.on(end, user.end);
  socket.on("error", (error) => user.fail(`${error.name}: ${error.message}`));
  lifecycle.on("close", (code, reason) => user.closed(code, reason));
  return () => socket.close();
}

function responses(url, user, options) {
  const { ResponsesWS } = require("openai/resources/responses/ws");
  const socket = new ResponsesWS(new OpenAI({ baseURL: `${url}/v1`, apiKey: "k" }), options);
  socket.socket.on("open", () =>
    socket.send({
      type: "response.create",
      model: "gpt-5.2",
      input: "hi",
      tools: [{ ...tool, strict: false }],
    }),
  );
  // One that opens the connection again tells of its end itself.
  return openaiEvents(socket, user, "response.completed", options ? socket : undefined);
}

function realtime(url, user) {
  const { OpenAIRealtimeWS } = require("openai/realtime/ws");
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "k" });
  const socket = new OpenAIRealtimeWS({ model: "gpt-realtime" }, client);
  socket.socket.on("open", () => {
    const session = { type: "realtime", output_modalities: ["text"], tools: [tool] };
    const content = [{ type: "input_text", text: "hi" }];
    socket.send({ type: "session.update", session });
    socket.send({
      type: "conversation.item.create",
      item: { type: "message", role: "user", content },
    });
    socket.send({ type: "response.create" });
  });
  return openaiEvents(socket, user, "response.done");
}

async function live(url, user) {
  const { GoogleGenAI, Modality } = require("@google/genai");
  const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: url } });
  const session = await client.live.connect({
    model: "gemini-live",
    config: {
      responseModalities: [Modality.TEXT],
      tools: [{ functionDeclarations: [{ name: "get_weather", parameters }] }],
    },
    callbacks: {
      onmessage(message) {
        for (const part of message.serverContent?.modelTurn?.parts ?? []) user.heard(part.text);
        if (message.serverContent?.turnComplete) user.end();
        if (!message.toolCall) return;
        const functionResponses = message.toolCall.functionCalls.map(({ id, name, args }) => {
          user.executed(args.city);
          return { id, name, response: { output: "rain" } };
        });
        session.sendToolResponse({ functionResponses });
      },
      onerror: (event) => user.fail(`${event.error?.name ?? "Error"}: ${event.message}`),
      onclose: (event) => user.closed(event.code, event.reason),
    },
  });
  session.sendClientContent({ turns: "hi" });
  return () => session.close();
}

const CLIENTS = {
  "openai-node": (url, user) => responses(url, user),
  "openai-node-reconnecting": (url, user) =>
    responses(url, user, { reconnect: { onReconnecting() {} } }),
  "openai-node-realtime": realtime,
  "google-genai-node": live,
};

async function outcome(client, { url, limit, cancel }) {
  const seen = { text: "", executed: [], error: "", waits: false };
  let close = () => {};
  let words = 0;
  await new Promise((resolve) => {
    const timer = setTimeout(() => ((seen.waits = true), resolve()), limit * 1000);
    const user = {
      end: () => (clearTimeout(timer), setTimeout(resolve, 50)), // what fails comes a bit later
      fail: (error) => ((seen.error ||= error), user.end()),
      closed: (code, reason) => user.fail(`close event: ${code} ${reason}`.trim()),
      executed: (city) => seen.executed.push(city),
      heard(text) {
        seen.text += text;
        words += 1;
        if (cancel !== "call" || words !== 2) return;
        close();
        setTimeout(user.end, HOLD);
      },
    };
    fatal = user.fail;
    Promise.resolve(client(url, user)).then(
      (made) => (close = made),
      (error) => user.fail(`${error.name}: ${error.message}`),
    );
  });
  try {
    close();
  } catch {}
  return seen;
}

// What would end the program of a user who has no such handler.
let fatal = () => {};
process.on("unhandledRejection", (error) => fatal(`unhandled ${error.name}: ${error.message}`));
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean))
  console.log(JSON.stringify(await outcome(CLIENTS[process.argv[2]], JSON.parse(line))));
process.exit(0);
