// Puts the objects of Ollama's own API together, of `/api/chat` and of `/api/generate`. A name in
// brackets is a quirk of servers that a rule is there for; `mockllm list quirks NAME` describes it.
//
// Every line is an object with only what is new in it; calls are whole. No field is required.

import { Answer, count, list, messageOf, object, string } from "./answer.mjs";

export class Ollama extends Answer {
  jsonLines = true;
  rawArguments = false;

  constructor() {
    super("done: true");
  }

  feed(payload) {
    if (this.failed) return;
    const value = object(payload);
    // The status was sent before [ollama-error-line].
    if (value.error != null) return this.fail(messageOf(value.error));
    this.identify(null, value.model);
    // `/api/generate` has no message, and the text in `response`.
    const part = value.message ? object(value.message) : value;
    this.add("reasoning", string(part.thinking));
    this.add("text", string(part.content || part.response));
    for (const call of list(part.tool_calls).map(object)) this.#call(call);
    // The object that ends the answer may have calls, too [ollama-calls-in-last]. A reason is an end
    // without `done` as well [ollama-done-missing].
    const reason = string(value.done_reason);
    if (value.done === true || (reason && value.done == null)) {
      this.finish = reason || "stop";
      this.complete = true;
      this.#usage(value);
    }
  }

  /** Each entry is a call of its own, whatever its index [ollama-same-index]. */
  #call(value) {
    const { name, arguments: args } = object(value.function);
    const call = this.open(0, null, string(value.id), string(name));
    // Maybe as JSON text [ollama-args-string].
    if (args != null) call.arguments = typeof args === "string" ? args : JSON.stringify(args);
  }

  /** Counts of zero are left out, as is a prompt in the cache [ollama-counts-missing]. */
  #usage(value) {
    const names = ["prompt_eval_count", "eval_count", "prompt_eval_cached_count"];
    const counts = names.map((name) => count(value[name]));
    if (counts.every((found) => found === null)) return;
    const [input, output, cached] = counts.map((found) => found ?? 0);
    this.usage = { input, output, reasoning: 0, cached };
  }
}
