// Runs the client in `client.mjs` for `mockllm check`: reads a case a line, answers in a line.
// The protocol is described in docs/runner-protocol.md. Node 18 or newer, no dependencies.

import { createInterface } from "node:readline";
import { APIS, CLIENT, create } from "./client.mjs";

const answer = (value) => process.stdout.write(JSON.stringify(value) + "\n");

function outcome(client, level, feed) {
  try {
    for (const item of feed) {
      if (level === "bytes") client.feedBytes(Buffer.from(item, "base64"));
      else client.feedEvent(...item);
    }
    return client.close();
  } catch (error) {
    return { crash: { message: String(error), raised: raised(error) } };
  }
}

// The first frame of the stack, as `FILE:LINE in FUNCTION`.
function raised(error) {
  const frame = /^ +at (?:(.+?) \()?(?:file:\/\/)?(.+?):(\d+):\d+\)?$/m.exec(error?.stack ?? "");
  return frame ? `${frame[2]}:${frame[3]} in ${frame[1] ?? "<anonymous>"}` : "";
}

let hello;
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (!hello) {
    hello = message;
    if (!Object.hasOwn(APIS, hello.api) || !["bytes", "payloads"].includes(hello.level)) {
      console.error(`this runner has no ${hello.api} at level ${hello.level}`);
      process.exit(2);
    }
    answer({ mockllm: 1, client: CLIENT, unsupported: [], intermediate: false });
  } else {
    const client = create(hello.api);
    answer({ id: message.id, ...outcome(client, hello.level, message.feed) });
  }
}
