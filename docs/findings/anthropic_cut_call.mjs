// @anthropic-ai/sdk: a call whose connection ended is an error, as it should be.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import Anthropic from "@anthropic-ai/sdk";

const body = readFileSync(new URL("./anthropic_cut_call.sse", import.meta.url));
const server = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(body);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 });
const messages = [{ role: "user", content: "Clean up." }];
const stream = client.messages.stream({ model: "m", max_tokens: 9, messages });
try {
  console.log((await stream.finalMessage()).content);
} catch (error) {
  console.log(`${error.constructor.name}: ${error.message}`);
}
server.close();
