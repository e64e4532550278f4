// The MCP SDK for TypeScript and the OpenAI SDK: a loop.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import OpenAI from "openai";

const [url, prompt, servers] = process.argv.slice(2);
const [server] = Object.values(JSON.parse(servers));
const timeout = { timeout: 5000 };

const client = new Client({ name: "loop", version: "1.0.0" });
await client.connect(
  Array.isArray(server)
    ? new StdioClientTransport({ command: server[0], args: server.slice(1) })
    : new StreamableHTTPClientTransport(new URL(server)),
);
const tools = (await client.listTools()).tools.map(({ name, inputSchema }) => ({
  type: "function",
  function: { name, parameters: inputSchema },
}));

const model = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any" });
const messages = [{ role: "user", content: prompt }];
let message;
for (;;) {
  const chat = await model.chat.completions.create({ model: "gpt-5", messages, tools });
  message = chat.choices[0].message;
  if (!message.tool_calls) break;
  messages.push(message);
  for (const { id, function: called } of message.tool_calls) {
    const params = { name: called.name, arguments: JSON.parse(called.arguments) };
    const { content } = await client.callTool(params, undefined, timeout);
    messages.push({ role: "tool", tool_call_id: id, content: JSON.stringify(content) });
  }
}
console.log(message.content);
await client.close();
