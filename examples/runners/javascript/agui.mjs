// Puts the events of AG-UI together. A name in brackets is a quirk of servers that a rule is there
// for; `mockllm list quirks NAME` describes it.
//
// AG-UI says what a client must refuse: events for calls that are not open, and a run that finishes
// while anything is open.

import { Answer, count, list, messageOf, object, string } from "./answer.mjs";

const MESSAGES = { TEXT: "text", REASONING: "reasoning", THINKING_TEXT: "reasoning" };
const SPANS = {
  STEP_STARTED: ["step", "stepName", true],
  STEP_FINISHED: ["step", "stepName", false],
  REASONING_START: ["reasoning", "messageId", true],
  REASONING_END: ["reasoning", "messageId", false],
};

export class AGUI extends Answer {
  #messages = new Map(); // the place of each
  #others = new Set(); // messages that are not the answer's
  #called = new Set();
  #openCalls = new Map();
  #openSpans = new Set();
  #chunked = new Set(); // calls that began with a chunk, which have no end
  #latest = { call: "", text: "", reasoning: "" }; // what a chunk without an id continues

  constructor() {
    super("RUN_FINISHED or RUN_ERROR");
  }

  feed(payload) {
    if (this.failed) return;
    const value = object(payload);
    const type = string(value.type);
    const [kind, stage] = type.split("_MESSAGE_");
    if (stage && Object.hasOwn(MESSAGES, kind)) {
      this.#message(MESSAGES[kind], stage, value);
    } else if (Object.hasOwn(SPANS, type)) {
      const [span, key, begins] = SPANS[type];
      this.#span(`${span} ${string(value[key])}`, begins);
    } else if (type.startsWith("TOOL_CALL_")) {
      this.#call(type.slice("TOOL_CALL_".length), value);
    } else if (type === "REASONING_ENCRYPTED_VALUE") {
      this.keep(value.encryptedValue);
    } else if (type === "RUN_STARTED") {
      this.complete = false; // a stream may have several runs; the last end counts
      this.finish = null;
    } else if (type === "RUN_FINISHED") {
      this.#finished(value);
    } else if (type === "RUN_ERROR" || (!type && value.error)) {
      this.#usage(value);
      this.fail(messageOf(value));
    }
  }

  #span(name, begins) {
    if (begins) this.#openSpans.add(name);
    else this.#openSpans.delete(name);
  }

  #finished(value) {
    for (const id of this.#chunked) this.#endCall(id);
    const open = [...this.#openCalls.values()].map((call) => call.name);
    open.push(...this.#openSpans);
    if (open.length) {
      // A call may be incomplete [agui-open-call-at-finish].
      return this.fail(`RUN_FINISHED came while these were open: ${open.join(", ")}`);
    }
    this.#usage(value);
    this.finish = "RUN_FINISHED";
    this.complete = true;
  }

  /** Adds up the entries, one for each model. */
  #usage(value) {
    const entries = list(value.usage).map(object);
    const total = (name) => {
      const known = entries.map((one) => count(one[name])).filter((one) => one !== null);
      return known.length ? known.reduce((a, b) => a + b) : null;
    };
    if (!entries.length) return;
    this.usage = {
      input: total("inputTokens"),
      output: total("outputTokens"),
      reasoning: total("reasoningTokens"),
      cached: total("cachedInputTokens"),
    };
  }

  /** An event of a message: START, CONTENT or END; or CHUNK, which is the first two. */
  #message(kind, stage, value) {
    let id = string(value.messageId);
    if (stage === "CHUNK") id = this.#latest[kind] = id || this.#latest[kind];
    if (stage === "START" || (stage === "CHUNK" && !this.#messages.has(id))) {
      this.#messages.set(id, this.#messages.size);
      if ([undefined, null, "assistant", "reasoning"].includes(value.role)) this.#others.delete(id);
      else this.#others.add(id);
    }
    if (stage === "START" || stage === "END") {
      this.#span(`${kind} message ${id}`, stage === "START");
    } else if (["CONTENT", "CHUNK"].includes(stage) && !this.#others.has(id)) {
      if (!this.#messages.has(id)) this.#messages.set(id, this.#messages.size);
      this.add(kind, string(value.delta), [this.#messages.get(id)]);
    }
  }

  #call(stage, value) {
    let id = string(value.toolCallId);
    if (stage === "CHUNK") {
      // Chunks of several calls may alternate, so they end with the run.
      id = this.#latest.call = id || this.#latest.call;
      if (!this.#openCalls.has(id)) {
        if (!string(value.toolCallName)) {
          return this.fail(`the first TOOL_CALL_CHUNK of ${id} has no toolCallName`);
        }
        this.#startCall(id, value);
        this.#chunked.add(id);
      }
    }
    if (stage === "START") {
      this.#startCall(id, value);
    } else if (stage === "END") {
      this.#endCall(id);
    } else if (stage === "ARGS" || stage === "CHUNK") {
      const call = this.#openCalls.get(id);
      if (call) call.arguments += string(value.delta);
      // Another call would run with these arguments [agui-args-wrong-id].
      else this.fail(`TOOL_CALL_ARGS for ${id}, which is not open`);
    }
  }

  #startCall(id, value) {
    if (this.#called.has(id)) {
      // It would run twice, or with half of its arguments [agui-start-replayed].
      return this.fail(`TOOL_CALL_START of ${id}, which has begun already`);
    }
    this.#called.add(id);
    this.#openCalls.set(id, this.open(0, null, id, string(value.toolCallName)));
  }

  #endCall(id) {
    this.#chunked.delete(id);
    if (!this.#openCalls.delete(id)) this.fail(`TOOL_CALL_END of ${id}, which is not open`);
  }
}
