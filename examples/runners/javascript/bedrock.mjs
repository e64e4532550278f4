// Puts the events of Amazon Bedrock's Converse API together. A name in brackets is a quirk of servers
// that a rule is there for; `mockllm list quirks NAME` describes it.
//
// An event is an object with one key, its name. A message is a list of blocks; those of text and
// reasoning have no start.

import { Answer, count, object, string } from "./answer.mjs";

export class Bedrock extends Answer {
  #calls = new Map(); // the open ones, by the index of their block
  #signatures = new Map();

  constructor() {
    super("messageStop");
  }

  feed(payload) {
    for (const [name, value] of Object.entries(object(payload))) {
      if (!this.failed) this.#event(name, object(value));
    }
  }

  #event(name, value) {
    const index = count(value.contentBlockIndex) ?? 0;
    if (name === "error" || name.endsWith("Exception")) {
      // Also one with an unknown name [bedrock-exception-unknown].
      const message = string(value.message) || "the stream reports an error";
      this.fail(`${message} (${string(value.code) || name})`);
    } else if (name === "metadata") {
      this.#usage(object(value.usage)); // after the end
    } else if (this.complete) {
      return;
    } else if (name === "contentBlockStart") {
      this.#start(index, object(object(value.start).toolUse));
    } else if (name === "contentBlockDelta") {
      this.#delta(index, object(value.delta));
    } else if (name === "contentBlockStop") {
      this.#stop(index);
    } else if (name === "messageStop") {
      // Calls count, whatever the reason says [bedrock-end-turn-with-call].
      this.finish = string(value.stopReason) || null;
      this.complete = true;
      this.#stopAll();
    }
  }

  #start(index, use) {
    this.#stop(index);
    // The service runs its own tools [bedrock-server-tool-type].
    if (!Object.keys(use).length || use.type === "server_tool_use") return;
    this.#calls.set(index, this.open(index, index, string(use.toolUseId), string(use.name)));
  }

  #delta(index, delta) {
    const reasoning = object(delta.reasoningContent);
    this.add("text", string(delta.text), [index]);
    this.add("reasoning", string(reasoning.text), [index]);
    const signature = this.#signatures.get(index) ?? "";
    this.#signatures.set(index, signature + string(reasoning.signature)); // one delta or several
    this.keep(reasoning.redactedContent);
    const call = this.#calls.get(index);
    if (call) call.arguments += string(object(delta.toolUse).input);
  }

  #stop(index) {
    this.keep(this.#signatures.get(index));
    this.#signatures.delete(index);
    this.#calls.delete(index);
  }

  /** Ends the blocks without a stop [bedrock-no-block-stop]. If a limit ended the answer, a call
   * without arguments may have lost them. */
  #stopAll() {
    const cut = !["tool_use", "end_turn"].includes(this.finish);
    for (const call of this.#calls.values()) {
      if (cut && !call.arguments) call.problem = `was cut off by ${this.finish}`;
    }
    for (const index of [...this.#calls.keys(), ...this.#signatures.keys()]) this.#stop(index);
  }

  /** A second event may have no usage [bedrock-metadata-twice]. `inputTokens` excludes tokens that
   * are read from the cache or written to it. */
  #usage(usage) {
    const [input, output] = [count(usage.inputTokens), count(usage.outputTokens)];
    if (input === null && output === null) return;
    const cached = count(usage.cacheReadInputTokens);
    const written = count(usage.cacheWriteInputTokens) ?? 0;
    this.usage = { input: (input ?? 0) + (cached ?? 0) + written, output, reasoning: null, cached };
  }
}
