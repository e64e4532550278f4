// One conversation over OpenAI Realtime with the openai SDK, which dials TLS alone:
//
//   NODE_EXTRA_CA_CERTS=authority.pem node realtime.mjs URL SAY...
//
// Calls are answered with "rain". Prints the types and the transcripts of what came as one JSON
// object.
import { OpenAI } from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const [url, ...says] = process.argv.slice(2);
const seen = { types: [], text: "", error: null };
const client = new OpenAI({ apiKey: "mock-key", baseURL: `${url}/v1` });
const realtime = new OpenAIRealtimeWS({ model: "gpt-realtime" }, client);
const tools = [{ type: "function", name: "get_weather", parameters: { type: "object" } }];

function finish(code) {
  console.log(JSON.stringify(seen));
  process.exit(code);
}

function say(text) {
  const content = [{ type: "input_text", text }];
  realtime.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  realtime.send({ type: "response.create" });
}

realtime.on("error", (error) => {
  seen.error = error.error?.code ?? error.message;
  finish(0);
});
realtime.on("event", (event) => {
  seen.types.push(event.type);
  if (event.type === "session.created") {
    const session = { type: "realtime", output_modalities: ["text"], tools };
    realtime.send({ type: "session.update", session });
    say(says.shift());
  }
  if (event.type === "response.output_text.delta") seen.text += event.delta;
  if (event.type !== "response.done") return;
  const calls = event.response.output.filter((item) => item.type === "function_call");
  for (const { call_id } of calls) {
    const item = { type: "function_call_output", call_id, output: "rain" };
    realtime.send({ type: "conversation.item.create", item });
  }
  if (calls.length) realtime.send({ type: "response.create" });
  else if (says.length) say(says.shift());
  else finish(0);
});
