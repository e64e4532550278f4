// LangChain.js: a cut answer of Gemini ends the Node process, despite the catch.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { ChatGoogleGenerativeAI } from "@langchain/google-genai";

const body = readFileSync(new URL("./langchain_js_google_process_ends.sse", import.meta.url));
const server = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(body);
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
process.on("exit", (code) => console.log("exit code:", code));
const model = new ChatGoogleGenerativeAI({ model: "m", apiKey: "k", baseUrl: url, maxRetries: 0 });
try {
  for await (const chunk of await model.stream("Hi")) console.log("chunk:", chunk.text);
} catch (error) {
  console.log("caught:", error.name);
}
server.close();
