// The AI SDK with @ai-sdk/mcp.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Stdio } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";

const [url, prompt, servers] = process.argv.slice(2);
const [server] = Object.values(JSON.parse(servers));

const client = await createMCPClient({
  transport: Array.isArray(server)
    ? new Stdio({ command: server[0], args: server.slice(1) })
    : { type: "http", url: server },
});
try {
  const provider = createOpenAICompatible({ name: "mock", baseURL: `${url}/v1`, apiKey: "any" });
  const { text } = await generateText({
    model: provider("gpt-5"),
    tools: await client.tools(),
    stopWhen: stepCountIs(20),
    prompt,
  });
  console.log(text);
} finally {
  await client.close();
}
