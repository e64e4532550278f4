// What all APIs share: the answer so far, its calls, and how to read JSON of any type.

import { parse } from "./sse.mjs";

/** The answer so far. `end` is what ends a stream of the API, for the error message. */
export class Answer {
  hasDone = false; // whether the API ends its streams with [DONE]
  jsonLines = false; // whether the API sends JSON lines instead of server-sent events
  rawArguments = true; // whether the API sends arguments as text
  texts = { text: new Map(), reasoning: new Map(), refusal: new Map() }; // by slot
  id = null;
  model = null;
  finish = null;
  usage = null;
  calls = [];
  errors = [];
  opaque = new Set(); // what has to be sent back unchanged, such as signatures
  complete = false;
  failed = false;

  constructor(end) {
    this.end = end;
  }

  /** The first id and model that are not empty stay. */
  identify(id, model) {
    this.id ||= string(id) || null;
    this.model ||= string(model) || null;
  }

  keep(opaque) {
    if (string(opaque)) this.opaque.add(opaque);
  }

  /** Appends to a text. Texts of several slots are joined in the order of the slots, which are
   * lists of numbers. */
  add(kind, fragment, slot = []) {
    if (!fragment) return;
    const slots = this.texts[kind];
    const found = slots.get(String(slot)) ?? { slot, fragments: [] };
    slots.set(String(slot), found);
    found.fragments.push(fragment);
  }

  /** Replaces what was appended to a text by its final value. */
  replace(kind, whole, slot) {
    this.texts[kind].set(String(slot), { slot, fragments: [whole] });
  }

  joined(kind) {
    const inOrder = [...this.texts[kind].values()].sort((a, b) => compare(a.slot, b.slot));
    return inOrder.flatMap((one) => one.fragments).join("");
  }

  /** Begins a call. `key` is what the API identifies it by; `closed` will mean that its arguments are
   * final; `problem` is why it must not run. */
  open(position, key = null, id = "", name = "") {
    const call = { position, key, id, name, arguments: "", closed: false, problem: "" };
    this.calls.push(call);
    return call;
  }

  /** Ends the answer with an error: there is no finish, and what follows is ignored. */
  fail(message) {
    if (this.failed) return;
    this.failed = true;
    this.finish = null;
    this.errors.push(message);
  }

  /** Ends the input, and returns the outcome. Only an answer that is complete has calls: if it was
   * cut, their arguments may be incomplete even if they are JSON. */
  close() {
    if (!this.complete) this.fail(`the stream was cut: it ended without ${this.end}`);
    const calls = this.failed ? [] : [...this.calls].sort((a, b) => a.position - b.position);
    calls.forEach((call, number) => {
      call.problem ||= problemOf(call);
      if (call.problem) {
        this.errors.push(`call ${number} (${call.name}, ${call.id}) ${call.problem}`);
      }
      call.id ||= unusedId(number, calls);
    });
    return {
      text: this.joined("text"),
      reasoning: this.joined("reasoning"),
      refusal: this.joined("refusal"),
      role: "assistant",
      finish: this.finish,
      tool_calls: calls.filter((call) => !call.problem).map((call) => this.#json(call)),
      usage: this.usage,
      errors: this.errors,
      crash: null,
      opaque: [...this.opaque],
      model: this.model,
      response_id: this.id,
    };
  }

  #json({ id, name, arguments: text }) {
    if (!this.rawArguments) return { id, name, arguments: parse(text || "{}") };
    return { id, name, arguments: text || "{}", raw_arguments: text };
  }
}

/** Why a call must not run; "" if it may. Broken arguments are not repaired: that would be to guess
 * what the tool should do. */
function problemOf(call) {
  if (!call.name) return "never got a name";
  if (call.id === "null" || call.name === "null") return "has the text null for an id or a name";
  if (isObjectText(call.arguments)) return "";
  return `has arguments that are no JSON object: ${call.arguments.slice(0, 200)}`;
}

/** Whether arguments are an object. Empty text means no arguments. */
export function isObjectText(text) {
  const value = parse(text || "{}");
  return value === object(value);
}

/** An id for a call that got none, the same each time. */
function unusedId(number, calls) {
  let id = `call_${number}`;
  while (calls.some((call) => call.id === id)) id += "_";
  return id;
}

function compare(a, b) {
  const at = a.findIndex((number, index) => number !== b[index]);
  return at < 0 ? 0 : a[at] - b[at];
}

// A server may send null, or another type, for every field.

export const object = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};

export const list = (value) => (Array.isArray(value) ? value : []);

export const string = (value) => (typeof value === "string" ? value : "");

export const count = (value) => (Number.isInteger(value) ? value : null);

/** Arguments as text, also if they came as an object; null is empty. */
export const argumentsText = (value) =>
  value !== null && typeof value === "object" ? JSON.stringify(value) : string(value);

/** The message of an error in the shape of any service, with its code or type. */
export function messageOf(error) {
  while (object(error).error) error = error.error;
  if (typeof error === "string") return error;
  const { code, status, type, message } = object(error);
  const text = string(message) || JSON.stringify(error);
  const kind = code || status || type;
  return kind ? `${text} (${kind})` : text;
}
