// Puts the chunks of OpenAI Chat Completions together. A name in brackets is a quirk of servers that
// a rule is there for; `mockllm list quirks NAME` describes it.

import { Answer, count, list, messageOf, object, string, type Call, type Fields } from "./answer.ts";

export class Chat extends Answer {
  override readonly hasDone = true;
  #last: Call | null = null; // the call that the last fragment belongs to

  constructor() {
    super("a finish_reason");
  }

  feed(payload: unknown, event: string | null = null): void {
    if (this.failed) return;
    const chunk = object(payload);
    this.identify(chunk.id, chunk.model);
    const bare = event === "error" || chunk.object === "error"; // [err-event-line]
    const error = chunk.error || (bare ? payload : null);
    for (const choice of list(chunk.choices).map(object)) {
      if (!choice.index) this.#choice(choice, Boolean(error)); // n=1 [chat-n-choices]
    }
    this.#usage(object(chunk.usage ?? object(chunk.x_groq).usage));
    if (error) this.fail(messageOf(error));
  }

  #choice(choice: Fields, failing: boolean): void {
    // The delta first: the chunk with the finish may have one, and more deltas may follow it
    // [chat-finish-with-last-delta, chat-delta-after-finish].
    const delta = object(choice.delta);
    const [thoughts, content] = parts(delta.content);
    const details = list(delta.reasoning_details).map(object);
    const summary = details.map((one) => string(one.text) || string(one.summary)).join("");
    // Several fields repeat each other [chat-reasoning-fields].
    this.reasoning +=
      thoughts || string(delta.reasoning_content) || string(delta.reasoning) || summary;
    this.text += content;
    this.refusal += string(delta.refusal);
    for (const detail of details) {
      this.keep(detail.signature);
      this.keep(detail.data);
    }
    for (const entry of list(delta.tool_calls).map(object)) {
      if (!("custom" in entry) || "function" in entry) this.#fragment(entry);
    }
    const finish = string(choice.finish_reason);
    if (finish && !failing) {
      this.finish ||= finish; // the first one counts [chat-finish-twice]
      this.complete = true;
    }
  }

  /** Adds a fragment to its call. Null and "" mean absent, in every field. */
  #fragment(entry: Fields): void {
    const fn = object(entry.function);
    const index = count(entry.index);
    const [id, name] = [string(entry.id), string(fn.name)];
    const call = this.#find(index, id, name) ?? this.open(index ?? this.calls.length, index);
    this.#last = call;
    call.id ||= id; // the first id stays [chat-id-new-every-chunk]
    // The same name again is a repetition, another one is its next fragment
    // [chat-name-repeated, chat-name-split].
    if (name !== call.name) call.name += name;
    // Arguments may be an object [chat-args-object], or null.
    const whole = fn.arguments !== null && typeof fn.arguments === "object";
    call.arguments += whole ? JSON.stringify(fn.arguments) : string(fn.arguments);
    this.keep(object(object(entry.extra_content).google).thought_signature);
  }

  /** The call that a fragment continues; null if it begins a new one. */
  #find(index: number | null, id: string, name: string): Call | null {
    const same = this.calls.filter((call) => index === null || call.key === index);
    if (!same.length) return null;
    const known = same.findLast((call) => id && call.id === id);
    if (known) return known;
    const last = index === null ? this.#last : same.at(-1)!;
    if (!last) return null;
    let isNew = false;
    if (id && last.id) {
      // Servers give all calls the index 0 [chat-index-all-zero], leave it out
      // [chat-index-missing], or invent an id for each chunk [chat-id-new-every-chunk].
      isNew = Boolean(name) || index === null;
    } else if (name && last.name) {
      isNew = index === null || Boolean(name !== last.name && last.arguments);
    }
    return isNew ? null : last;
  }

  /** Each usage is a total, so the last one counts; null does not erase it. */
  #usage(usage: Fields): void {
    const [input, output] = [count(usage.prompt_tokens), count(usage.completion_tokens)];
    if (input === null && output === null) return;
    const reasoning = count(object(usage.completion_tokens_details).reasoning_tokens);
    const cached = count(object(usage.prompt_tokens_details).cached_tokens);
    this.usage = { input, output, reasoning, cached };
  }
}

/** The reasoning and the text of a content, which may be a list of parts [chat-content-parts]. */
function parts(content: unknown): [reasoning: string, text: string] {
  if (typeof content === "string") return ["", content];
  let [thoughts, text] = ["", ""];
  for (const part of list(content).map(object)) {
    if (part.type === "thinking") {
      const inner = part.thinking;
      thoughts += typeof inner === "string" ? inner : parts(inner)[1];
    } else {
      text += string(part.text);
    }
  }
  return [thoughts, text];
}
