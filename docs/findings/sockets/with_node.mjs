// openai-node's ResponsesWS, as its documentation has it: node with_node.mjs < URLS, as with_python.py.
// MODULES is the folder with node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const require = createRequire(pathToFileURL(`${process.env.MODULES}/package.json`));
const OpenAI = require("openai").default;
const { ResponsesWS } = require("openai/resources/responses/ws");
const LIMIT = 8000;

async function ask(url) {
  const outcome = { text: "", executed: [], error: "", waits: false };
  const socket = new ResponsesWS(new OpenAI({ baseURL: url, apiKey: "k" }));
  await new Promise((resolve) => {
    const timer = setTimeout(() => ((outcome.waits = true), resolve()), LIMIT);
    const end = () => (clearTimeout(timer), resolve());
    socket.on("response.output_text.delta", (event) => (outcome.text += event.delta));
    socket.on("response.completed", end);
    socket.on("error", (error) => ((outcome.error ||= `${error.name}: ${error.message}`), end()));
    socket.socket.on("close", (code, reason) => {
      outcome.error ||= `close event: ${code} ${reason}`.trim();
      end();
    });
    socket.socket.on("open", () =>
      socket.send({ type: "response.create", model: "gpt-5.2", input: "hi" }),
    );
  });
  try {
    socket.close();
  } catch {}
  return outcome;
}

for (const url of readFileSync(0, "utf8").split("\n").filter(Boolean))
  console.log(JSON.stringify(await ask(url)));
process.exit(0);
