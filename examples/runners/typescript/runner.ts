// Runs the client in `client.ts` for `mockllm check`: reads a case a line, answers in a line.
// The protocol is described in docs/runner-protocol.md.

import { createInterface } from "node:readline";
import { APIS, CLIENT, create, type Client } from "./client.ts";
import type { Outcome } from "./answer.ts";

interface Hello { mockllm: number; api: string; level: "bytes" | "payloads" | "http" }
interface Case { id: number; feed: (string | [event: string | null, payload: unknown])[] }

const answer = (value: object) => process.stdout.write(JSON.stringify(value) + "\n");

function outcome(client: Client, feed: Case["feed"]): Partial<Outcome> | { crash: object } {
  try {
    for (const item of feed) {
      if (typeof item === "string") client.feedBytes(Buffer.from(item, "base64"));
      else client.feedEvent(...item);
    }
    return client.close();
  } catch (error) {
    return { crash: { message: String(error), raised: raised(error) } };
  }
}

// The first frame of the stack, as `FILE:LINE in FUNCTION`.
function raised(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const frame = /^ +at (?:(.+?) \()?(?:file:\/\/)?(.+?):(\d+):\d+\)?$/m.exec(stack);
  return frame ? `${frame[2]}:${frame[3]} in ${frame[1] ?? "<anonymous>"}` : "";
}

let hello: Hello | undefined;
for await (const line of createInterface({ input: process.stdin })) {
  if (!hello) {
    hello = JSON.parse(line) as Hello;
    if (!Object.hasOwn(APIS, hello.api) || (hello.level !== "bytes" && hello.level !== "payloads")) {
      console.error(`this runner has no ${hello.api} at level ${hello.level}`);
      process.exit(2);
    }
    answer({ mockllm: 1, client: CLIENT, unsupported: [], intermediate: false });
  } else {
    const { id, feed } = JSON.parse(line) as Case;
    answer({ id, ...outcome(create(hello.api), feed) });
  }
}
