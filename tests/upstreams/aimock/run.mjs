// Serves fixtures.json with aimock on a free port until the standard input ends:
//
//   node run.mjs
//
// Prints its URL when it listens.
import { readFile } from "node:fs/promises";

import { LLMock } from "@copilotkit/aimock";

const { fixtures } = JSON.parse(await readFile(new URL("fixtures.json", import.meta.url), "utf8"));
const mock = new LLMock({ port: 0 });
mock.addFixturesFromJSON(fixtures);
await mock.start();
console.log(mock.url);

for await (const _ of process.stdin);
await mock.stop();
