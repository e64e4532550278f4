// @ag-ui/client: a broken connection ends the Node process, despite the catch.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { HttpAgent } from "@ag-ui/client";

const body = readFileSync(new URL("./ag_ui_process_ends.sse", import.meta.url));
const server = createServer((request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(body, () => setImmediate(() => response.socket.destroy()));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}`;
process.on("exit", (code) => console.log("exit code:", code));
const agent = new HttpAgent({ url, threadId: "t" });
try {
  console.log("resolved:", await agent.runAgent({ runId: "r" }));
} catch (error) {
  console.log("caught:", error.name);
}
server.close();
