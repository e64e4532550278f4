// The client under test: replace what is here by your client, and keep `runner.ts`.
//
// A client gets the answer of a model as it comes from the network, in reads of bytes
// (`feedBytes`), or as decoded events (`feedEvent`). `close` ends the input and returns what the
// client made of the answer, with the keys of the protocol of runners.

import type { Answer, Outcome } from "./answer.ts";
import { Chat } from "./chat.ts";
import { Events } from "./sse.ts";

export const CLIENT = {
  name: "example-typescript",
  version: "1.0",
  language: "typescript",
  entry_point: "Client.feedBytes()",
  adapter: "runner.ts runner.js",
};

export const APIS: Record<string, new () => Answer> = { chat: Chat };

/** A new client for one answer. */
export function create(api: string): Client {
  return new Client(new APIS[api]!());
}

export class Client {
  #answer: Answer;
  #events: Events;

  constructor(answer: Answer) {
    this.#answer = answer;
    this.#events = new Events(answer);
  }

  feedBytes(data: Uint8Array): void {
    this.#events.feed(data);
  }

  feedEvent(event: string | null, payload: unknown): void {
    this.#answer.feed(payload, event);
  }

  close(): Outcome {
    this.#events.close();
    return this.#answer.close();
  }
}
