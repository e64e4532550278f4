// Puts the chunks of Gemini together. A name in brackets is a quirk of servers that a rule is there
// for; `mockllm list quirks NAME` describes it.
//
// Every chunk is a whole response with only what is new in it. Calls have no index, most have no id.

import { Answer, count, list, messageOf, object, string } from "./answer.mjs";

const PATH_KEY = /\.([^.[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\['([^']*)'\]/y;
const VALUES = ["stringValue", "numberValue", "boolValue", "nullValue"];

export class Gemini extends Answer {
  rawArguments = false;
  #partial = null; // a call whose arguments go on, and these

  constructor() {
    super("a finishReason");
  }

  feed(payload) {
    // Without alt=sse the stream is an array, and errors come in one [gem-array-form].
    for (const chunk of Array.isArray(payload) ? payload : [payload]) {
      if (!this.failed) this.#chunk(object(chunk));
    }
  }

  #chunk(chunk) {
    if (chunk.error) return this.fail(messageOf(chunk.error));
    this.identify(chunk.responseId, chunk.modelVersion);
    this.#usage(object(chunk.usageMetadata));
    for (const candidate of list(chunk.candidates).map(object)) {
      if (candidate.index) continue;
      for (const part of list(object(candidate.content).parts)) this.#part(object(part));
      // The last parts are in the chunk with the reason; STOP also ends calls.
      this.#end(string(candidate.finishReason));
    }
    // A blocked prompt has no candidate [gem-empty-candidate].
    this.#end(string(object(chunk.promptFeedback).blockReason));
  }

  #end(reason) {
    if (!reason || reason === "FINISH_REASON_UNSPECIFIED") return;
    this.finish = reason;
    this.complete = true;
    if (this.#partial) {
      this.#partial.call.problem = `was cut off by ${reason}, with arguments still to come`;
    }
    this.#partial = null;
  }

  #part(part) {
    this.keep(part.thoughtSignature); // of thoughts, texts and calls alike
    const call = part.functionCall;
    if (call && call === object(call)) this.#call(call);
    this.add(part.thought ? "reasoning" : "text", string(part.text));
  }

  /** A whole call, or a part of one if `willContinue` says so [gem-partial-args]. */
  #call(value) {
    const name = string(value.name);
    if (name) {
      this.#endCall();
      const call = this.open(0, null, string(value.id), name);
      this.#partial = { call, values: new PartialArguments() };
    }
    if (!this.#partial) return;
    const { call, values } = this.#partial;
    // A string is malformed [gem-args-string].
    if (value.args !== undefined && value.args !== null) call.arguments = JSON.stringify(value.args);
    for (const partial of list(value.partialArgs)) values.add(object(partial));
    if (value.willContinue !== true) this.#endCall();
  }

  #endCall() {
    if (this.#partial) this.#partial.call.arguments ||= this.#partial.values.text();
    this.#partial = null;
  }

  /** Each count is the total so far. Those of zero are left out by the service. */
  #usage(usage) {
    const [prompt, candidates] = [count(usage.promptTokenCount), count(usage.candidatesTokenCount)];
    if (prompt === null && candidates === null) return;
    const reasoning = count(usage.thoughtsTokenCount) ?? 0;
    this.usage = {
      input: (prompt ?? 0) + (count(usage.toolUsePromptTokenCount) ?? 0),
      output: (candidates ?? 0) + reasoning,
      reasoning,
      cached: count(usage.cachedContentTokenCount) ?? 0,
    };
  }
}

/** Arguments that arrive as values, each with its JSON path. Objects and arrays are both maps here;
 * one with numbers as keys is an array. */
class PartialArguments {
  #root = new Map();
  #unusable = "";

  add(partial) {
    const path = string(partial.jsonPath);
    const keys = pathKeys(path);
    const field = VALUES.find((name) => name in partial);
    let node = this.#root;
    for (const key of keys.slice(0, -1)) {
      if (node instanceof Map && !node.has(key)) node.set(key, new Map());
      node = node instanceof Map ? node.get(key) : null;
    }
    if (!keys.length || !field || !(node instanceof Map)) {
      this.#unusable ||= path || "none";
      return;
    }
    const value = field === "nullValue" ? null : partial[field];
    const before = node.get(keys.at(-1));
    const both = typeof before === "string" && typeof value === "string";
    node.set(keys.at(-1), both ? before + value : value);
  }

  text() {
    return this.#unusable ? `unusable path: ${this.#unusable}` : JSON.stringify(valueOf(this.#root));
  }
}

/** The keys of a path such as `$.stops[0].city`; none if it is no path. */
function pathKeys(path) {
  const keys = [];
  PATH_KEY.lastIndex = 1;
  while (path.startsWith("$") && PATH_KEY.lastIndex < path.length) {
    const match = PATH_KEY.exec(path);
    if (!match) return [];
    const [, name, index, quoted, single] = match;
    keys.push(index ? Number(index) : quoted ? JSON.parse(quoted) : (name ?? single));
  }
  return keys;
}

function valueOf(node) {
  if (!(node instanceof Map)) return node;
  const entries = [...node].map(([key, value]) => [key, valueOf(value)]);
  const isArray = entries.length && entries.every(([key]) => typeof key === "number");
  if (!isArray) return Object.fromEntries(entries);
  return entries.sort(([a], [b]) => a - b).map(([, value]) => value);
}
