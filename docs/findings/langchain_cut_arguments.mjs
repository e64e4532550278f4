// LangChain.js: arguments that the token limit cut off come out as a valid call.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { ChatOpenAI } from "@langchain/openai";

const body = readFileSync(new URL("./langchain_cut_arguments.sse", import.meta.url));
const server = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(body);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
const model = new ChatOpenAI({ model: "m", apiKey: "k", configuration: { baseURL: `${url}/v1` } });
let message;
for await (const chunk of await model.stream("Weather?")) message = message?.concat(chunk) ?? chunk;
console.log("tool_calls:", message.tool_calls.map(({ name, args }) => [name, args]));
console.log("invalid_tool_calls:", message.invalid_tool_calls);
server.close();
