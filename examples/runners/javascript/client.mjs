// The client under test: replace what is here by your client, and keep `runner.mjs`.
//
// A client gets the answer of a model as it comes from the network, in reads of bytes
// (`feedBytes`), or as decoded events (`feedEvent`). `close` ends the input and returns what the
// client made of the answer, with the keys of the protocol of runners.

import { AGUI } from "./agui.mjs";
import { Anthropic } from "./anthropic.mjs";
import { Bedrock } from "./bedrock.mjs";
import { Chat } from "./chat.mjs";
import { Cohere } from "./cohere.mjs";
import { Completions } from "./completions.mjs";
import { Frames } from "./frames.mjs";
import { Gemini } from "./gemini.mjs";
import { Ollama } from "./ollama.mjs";
import { Responses } from "./responses.mjs";
import { Events } from "./sse.mjs";

export const CLIENT = {
  name: "example-javascript",
  version: "1.0",
  language: "javascript",
  entry_point: "Client.feedBytes()",
  adapter: "runner.mjs",
};

export const APIS = {
  chat: Chat,
  responses: Responses,
  anthropic: Anthropic,
  gemini: Gemini,
  agui: AGUI,
  ollama: Ollama,
  completions: Completions,
  cohere: Cohere,
  bedrock: Bedrock,
};

/** A new client for one answer. */
export function create(api) {
  return new Client(new APIS[api](), api === "bedrock" ? Frames : Events);
}

class Client {
  constructor(answer, Reader) {
    this.answer = answer;
    this.events = new Reader(answer);
  }

  feedBytes(data) {
    this.events.feed(data);
  }

  feedEvent(event, payload) {
    this.answer.feed(payload, event);
  }

  close() {
    this.events.close();
    return this.answer.close();
  }
}
