// Puts the events of Cohere's Chat API, version 2, together. A name in brackets is a quirk of servers
// that a rule is there for; `mockllm list quirks NAME` describes it.
//
// The deltas have the places of a whole message, but objects where the message has lists.

import { Answer, count, messageOf, object, string } from "./answer.mjs";

export class Cohere extends Answer {
  hasDone = true;
  #calls = new Map(); // the open ones, by index

  constructor() {
    super("message-end");
  }

  feed(payload, event = null) {
    if (this.failed || this.complete) return;
    const value = object(payload);
    const type = string(value.type) || event;
    const [index, delta] = [count(value.index), object(value.delta)];
    const part = object(delta.message);
    if (type === "message-start") {
      this.identify(value.id, null);
    } else if (type === "content-start" || type === "content-delta") {
      // Blocks of reasoning and of text may have the same index [cohere-content-index].
      const content = object(part.content);
      this.add("reasoning", string(content.thinking));
      this.add("text", string(content.text));
    } else if (type === "tool-plan-delta") {
      this.add("text", string(part.tool_plan)); // what the model says before its calls
    } else if (type === "tool-call-start" || type === "tool-call-delta") {
      const { id, function: fn } = object(part.tool_calls);
      const { name, arguments: fragment } = object(fn);
      if (type === "tool-call-start") {
        this.#calls.set(index, this.open(0, index, string(id), string(name)));
      }
      this.#addArguments(this.#calls.get(index), string(fragment));
    } else if (type === "tool-call-end") {
      this.#calls.delete(index);
    } else if (type === "message-end") {
      this.#end(delta);
    } else if (value.error || string(value.message)) {
      this.fail(messageOf(value)); // an error of a proxy has no type of its own
    }
  }

  #addArguments(call, fragment) {
    // A call without arguments may have the text null [cohere-zero-arg].
    if (call && (call.arguments || fragment !== "null")) call.arguments += fragment;
  }

  #end(delta) {
    this.#usage(object(delta.usage));
    const [finish, error] = [string(delta.finish_reason), string(delta.error)];
    if (error || ["ERROR", "TIMEOUT"].includes(finish)) {
      // No other event says it [cohere-error-finish].
      return this.fail(error || `the answer ended in ${finish}`);
    }
    this.finish = finish || null;
    this.complete = true;
  }

  /** The tokens that the model read and wrote; fewer are billed [cohere-two-usages]. */
  #usage(usage) {
    const tokens = object(usage.tokens || usage.billed_units);
    const [input, output] = [count(tokens.input_tokens), count(tokens.output_tokens)];
    if (input === null && output === null) return;
    this.usage = { input, output, reasoning: null, cached: count(usage.cached_tokens) };
  }
}
