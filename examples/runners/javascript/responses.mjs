// Puts the events of the OpenAI Responses API together. A name in brackets is a quirk of servers
// that a rule is there for; `mockllm list quirks NAME` describes it.
//
// An answer is a list of items, each with the events `added`, deltas and `done`. A `done` repeats all
// that the deltas have sent.

import {
  Answer, argumentsText, count, isObjectText, list, messageOf, object, string,
} from "./answer.mjs";

// The middle of an event's name: the type of its item, the kind of text, the list that has it.
const TEXT_EVENTS = {
  output_text: ["message", "text", "content"],
  refusal: ["message", "refusal", "content"],
  reasoning_summary_text: ["reasoning", "reasoning", "summary"],
  reasoning_text: ["reasoning", "reasoning", "content"],
};

// The type of a part: the kind of text, and the field that has it.
const PARTS = {
  output_text: ["text", "text"],
  refusal: ["refusal", "refusal"],
  summary_text: ["reasoning", "text"],
  reasoning_text: ["reasoning", "text"],
};

const indexOf = (value) => count(value.output_index) ?? 0;

export class Responses extends Answer {
  #items = [];

  constructor() {
    super("response.completed, .incomplete or .failed");
  }

  feed(payload, event = null) {
    const value = object(payload);
    const type = string(value.type) || (value.error ? "error" : (event ?? ""));
    const response = object(value.response);
    this.identify(response.id, response.model);
    if (this.failed && type === "response.failed") this.#usage(object(response.usage));
    if (this.failed || this.complete) return; // [resp-after-completed]
    if (type === "error") return this.fail(messageOf(value.error || payload)); // [resp-error-shape]
    const [, name, stage] = type.split(".");
    if (type === `response.${name}` && ["completed", "incomplete", "failed"].includes(name)) {
      this.#end(name, response);
    } else if (type === "response.output_item.added") {
      const fields = object(value.item);
      const item = this.#begin(string(fields.type), indexOf(value));
      this.#name(item, fields);
      item.initial = argumentsText(fields.arguments); // [resp-args-in-added]
    } else if (type === "response.output_item.done") {
      this.#itemDone(value, object(value.item));
    } else if (name === "function_call_arguments") {
      this.#arguments(stage, value);
    } else if (["content_part", "reasoning_summary_part"].includes(name) && stage === "done") {
      this.#partDone(value, object(value.part));
    } else if (Object.hasOwn(TEXT_EVENTS, name ?? "") && ["delta", "done"].includes(stage)) {
      this.#textEvent(name, stage, value);
    }
  }

  // Items

  /** The item of an event; a new one if there was no `added` [resp-missing-openers]. Its index
   * identifies it, since ids change from event to event [resp-item-id-rotates]. If several items
   * share an index, a known id decides, else the last one counts. */
  #find(type, value) {
    const same = this.#items.filter((one) => one.index === indexOf(value) && one.type === type);
    const known = same.find((one) => one.ids.has(string(value.item_id)));
    return known ?? same.at(-1) ?? this.#begin(type, indexOf(value));
  }

  /** The item of a call that is sent as a whole: its call_id identifies it. */
  #findCall(index, fields) {
    const id = string(fields.call_id);
    const calls = this.#items.filter((one) => one.call);
    const same = calls.filter((one) => one.index === index);
    return (
      [...same, ...calls].find((one) => id && one.call.id === id) ??
      same.findLast((one) => !(id && one.call.id)) ??
      this.#begin("function_call", index)
    );
  }

  #begin(type, index) {
    const call = type === "function_call" ? this.open(index) : null;
    const item = {
      type, index, call, number: this.#items.length, ids: new Set(), final: new Set(), initial: "",
    };
    this.#items.push(item);
    return item;
  }

  /** Takes the ids and the name; the first ones stay. */
  #name(item, fields) {
    if (string(fields.id)) item.ids.add(fields.id);
    if (!item.call || item.call.closed) return;
    item.call.id ||= string(fields.call_id);
    item.call.name ||= string(fields.name);
  }

  #itemDone(value, fields) {
    const type = string(fields.type);
    const item =
      type === "function_call"
        ? this.#findCall(indexOf(value), fields)
        : this.#find(type, { ...value, item_id: fields.id });
    this.#name(item, fields);
    for (const where of ["summary", "content"]) {
      list(fields[where]).forEach((part, index) => {
        this.#finalPart(item, slotOf(item, where, index), object(part));
      });
    }
    this.keep(fields.encrypted_content);
    if (!item.call) return;
    this.#finalArguments(item.call, fields);
    if (fields.status !== "incomplete") this.#endCall(item);
  }

  // Texts

  #textEvent(name, stage, value) {
    const [type, kind, where] = TEXT_EVENTS[name];
    const item = this.#find(type, value);
    const slot = slotOf(item, where, value[`${where}_index`]);
    if (stage === "done") this.#finalText(item, slot, kind, value[name === "refusal" ? name : "text"]);
    else if (!item.final.has(String(slot))) this.add(kind, string(value.delta), slot);
  }

  #partDone(value, part) {
    const [kind] = PARTS[string(part.type)] ?? [];
    if (!kind) return;
    const item = this.#find(kind === "reasoning" ? "reasoning" : "message", value);
    const where = part.type === "summary_text" ? "summary" : "content";
    this.#finalPart(item, slotOf(item, where, value[`${where}_index`]), part);
  }

  #finalPart(item, slot, part) {
    const [kind, key] = PARTS[string(part.type)] ?? [];
    if (kind) this.#finalText(item, slot, kind, part[key]);
  }

  /** Replaces the deltas [resp-dup-done]; empty text is no value, but left out. */
  #finalText(item, slot, kind, whole) {
    if (!string(whole)) return;
    item.final.add(String(slot));
    this.replace(kind, whole, slot);
  }

  // Calls

  #arguments(stage, value) {
    const item = this.#find("function_call", value);
    const { call } = item;
    if (call.closed) return;
    if (stage === "delta") {
      call.arguments += string(value.delta);
    } else if (stage === "done") {
      this.#finalArguments(call, value);
      if (call.name && call.id && call.arguments) this.#endCall(item);
    }
  }

  #finalArguments(call, fields) {
    if (!call.closed) call.arguments = argumentsText(fields.arguments) || call.arguments;
  }

  #endCall({ call, initial }) {
    if (!call.closed) call.arguments ||= initial;
    call.closed = true;
  }

  // The end

  #end(status, response) {
    this.#usage(object(response.usage));
    if (status === "failed" || response.error) {
      return this.fail(messageOf(response.error || "the response failed"));
    }
    this.#fill(list(response.output).map(object));
    this.finish = string(object(response.incomplete_details).reason) || status;
    this.complete = true;
    for (const item of this.#items.filter((one) => one.call && !one.call.closed)) {
      const { arguments: text } = item.call;
      if (status === "incomplete" && !(text && isObjectText(text))) {
        item.call.problem = `was cut off by ${this.finish}`;
      }
      this.#endCall(item);
    }
  }

  /** Takes what only the final response has [resp-completed-output-empty]. Positions in it need not
   * be the indexes of the items. */
  #fill(output) {
    const had = new Set(Object.keys(this.texts).filter((kind) => this.texts[kind].size));
    output.forEach((fields, index) => {
      if (fields.type === "function_call") {
        const item = this.#findCall(index, fields);
        this.#name(item, fields);
        this.#finalArguments(item.call, fields);
        return;
      }
      for (const where of ["summary", "content"]) {
        list(fields[where]).map(object).forEach((part, position) => {
          const [kind, key] = PARTS[string(part.type)] ?? [];
          const slot = [index, this.#items.length, Number(where === "content"), position];
          if (kind && !had.has(kind)) this.replace(kind, string(part[key]), slot);
        });
      }
    });
  }

  #usage(usage) {
    if (!Object.keys(usage).length) return;
    this.usage = {
      input: count(usage.input_tokens),
      output: count(usage.output_tokens),
      reasoning: count(object(usage.output_tokens_details).reasoning_tokens),
      cached: count(object(usage.input_tokens_details).cached_tokens),
    };
  }
}

/** The place of a part; summaries come before contents. */
function slotOf(item, where, index) {
  return [item.index, item.number, Number(where === "content"), count(index) ?? 0];
}
