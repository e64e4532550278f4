// LangChain.js: output tokens of Anthropic's message_start and message_delta are added.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { ChatAnthropic } from "@langchain/anthropic";

const body = readFileSync(new URL("./langchain_js_anthropic_output_tokens.sse", import.meta.url));
const server = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(body);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
const model = new ChatAnthropic({ model: "m", apiKey: "k", anthropicApiUrl: url });
let message;
for await (const chunk of await model.stream("Hi")) message = message?.concat(chunk) ?? chunk;
console.log("text:", message.text);
console.log("output_tokens:", message.usage_metadata.output_tokens);
server.close();
