// openai-node: the final response of a stream that ended early is `in_progress`.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import OpenAI from "openai";

const body = readFileSync(new URL("./openai_node_in_progress.sse", import.meta.url));
const server = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(body);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}/v1`;
const client = new OpenAI({ baseURL: url, apiKey: "k", maxRetries: 0 });
try {
  const response = await client.responses.stream({ model: "m", input: "hi" }).finalResponse();
  console.log("status:", response.status, "text:", response.output_text);
} catch (error) {
  console.log(`${error.constructor.name}: ${error.message}`);
}
server.close();
