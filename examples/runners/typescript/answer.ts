// What all APIs share: the answer so far, its calls, and how to read JSON of any type.

import { parse, type Sink } from "./sse.ts";

/** What a client made of an answer, with the keys of the protocol of runners. */
export interface Outcome {
  text: string;
  reasoning: string;
  refusal: string;
  role: string;
  finish: string | null;
  tool_calls: { id: string; name: string; arguments: string; raw_arguments: string }[];
  usage: Usage | null;
  errors: string[];
  crash: null;
  opaque: string[];
  model: string | null;
  response_id: string | null;
}

export interface Usage {
  input: number | null;
  output: number | null;
  reasoning: number | null;
  cached: number | null;
}

/** A call while its fragments arrive. `key` is what the API identifies it by. */
export interface Call {
  position: number;
  key: number | null;
  id: string;
  name: string;
  arguments: string;
}

/** The answer so far. `end` is what ends a stream of the API, for the error message. */
export abstract class Answer implements Sink {
  readonly hasDone: boolean = false;
  text = "";
  reasoning = "";
  refusal = "";
  id: string | null = null;
  model: string | null = null;
  finish: string | null = null;
  usage: Usage | null = null;
  calls: Call[] = [];
  errors: string[] = [];
  opaque = new Set<string>(); // what has to be sent back unchanged, such as signatures
  complete = false;
  failed = false;

  #end: string;

  constructor(end: string) {
    this.#end = end;
  }

  /** Takes one event. */
  abstract feed(payload: unknown, event: string | null): void;

  /** The first id and model that are not empty stay. */
  identify(id: unknown, model: unknown): void {
    this.id ||= string(id) || null;
    this.model ||= string(model) || null;
  }

  keep(opaque: unknown): void {
    if (typeof opaque === "string" && opaque) this.opaque.add(opaque);
  }

  /** Begins a call. */
  open(position: number, key: number | null): Call {
    const call = { position, key, id: "", name: "", arguments: "" };
    this.calls.push(call);
    return call;
  }

  /** Ends the answer with an error: there is no finish, and what follows is ignored. */
  fail(message: string): void {
    if (this.failed) return;
    this.failed = true;
    this.finish = null;
    this.errors.push(message);
  }

  /** Ends the input, and returns the outcome. Only an answer that is complete has calls: if it was
   * cut, their arguments may be incomplete even if they are JSON. */
  close(): Outcome {
    if (!this.complete) this.fail(`the stream was cut: it ended without ${this.#end}`);
    const calls = this.failed ? [] : [...this.calls].sort((a, b) => a.position - b.position);
    const good: Outcome["tool_calls"] = [];
    calls.forEach((call, number) => {
      const problem = problemOf(call);
      if (problem) this.errors.push(`call ${number} (${call.name}, ${call.id}) ${problem}`);
      else {
        good.push({
          id: call.id || unusedId(number, calls),
          name: call.name,
          arguments: call.arguments || "{}",
          raw_arguments: call.arguments,
        });
      }
    });
    return {
      text: this.text,
      reasoning: this.reasoning,
      refusal: this.refusal,
      role: "assistant",
      finish: this.finish,
      tool_calls: good,
      usage: this.usage,
      errors: this.errors,
      crash: null,
      opaque: [...this.opaque],
      model: this.model,
      response_id: this.id,
    };
  }
}

/** Why a call must not run; "" if it may. Broken arguments are not repaired: that would be to guess
 * what the tool should do. */
function problemOf(call: Call): string {
  if (!call.name) return "never got a name";
  if (call.id === "null" || call.name === "null") return "has the text null for an id or a name";
  const value = parse(call.arguments || "{}"); // empty text means no arguments
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return "";
  return `has arguments that are no JSON object: ${call.arguments.slice(0, 200)}`;
}

/** An id for a call that got none, the same each time. */
function unusedId(number: number, calls: Call[]): string {
  let id = `call_${number}`;
  while (calls.some((call) => call.id === id)) id += "_";
  return id;
}

// A server may send null, or another type, for every field.

export type Fields = Record<string, unknown>;

export const object = (value: unknown): Fields =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Fields) : {};

export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const string = (value: unknown): string => (typeof value === "string" ? value : "");

export const count = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) ? value : null;

/** The message of an error in the shape of any service, with its code or type. */
export function messageOf(error: unknown): string {
  while (object(error).error) error = object(error).error;
  if (typeof error === "string") return error;
  const { code, status, type, message } = object(error);
  const text = string(message) || JSON.stringify(error);
  const kind = code || status || type;
  return kind ? `${text} (${kind})` : text;
}
