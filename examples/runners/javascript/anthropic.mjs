// Puts the events of the Anthropic Messages API together. A name in brackets is a quirk of servers
// that a rule is there for; `mockllm list quirks NAME` describes it.
//
// A message is a list of blocks, each with a start, deltas and a stop.

import {
  Answer, argumentsText, count, isObjectText, list, messageOf, object, string,
} from "./answer.mjs";

export class Anthropic extends Answer {
  #started = false;
  #stopped = false;
  #blocks = new Map(); // by index, which is a key and no position [anth-index-gap]
  #begun = 0;
  #tokens = {};

  constructor() {
    super("a message_delta with its stop_reason, or message_stop");
  }

  feed(payload, event = null) {
    if (this.failed || this.#stopped) return;
    const value = object(payload);
    // The type in the JSON counts; the event line may be missing [anth-no-event-lines].
    const type = string(value.type) || (value.error ? "error" : (event ?? ""));
    const index = count(value.index);
    const block = this.#blocks.get(index);
    if (type === "message_start") {
      this.#startMessage(object(value.message));
    } else if (type === "content_block_start") {
      this.#start(index, object(value.content_block));
    } else if (type === "content_block_delta" && block) {
      this.#delta(block, object(value.delta));
    } else if (type === "content_block_delta") {
      this.fail(`a delta came for block ${index}, which has not started`); // [anth-start-missing]
    } else if (type === "content_block_stop" && block) {
      this.#endBlock(block);
    } else if (type === "message_delta") {
      this.#count(object(value.usage));
      this.#stop(string(object(value.delta).stop_reason));
    } else if (type === "message_stop") {
      this.complete = this.#stopped = true;
      this.#endBlocks();
    } else if (type === "error") {
      this.fail(messageOf(value.error || payload));
    }
  }

  // The message

  #startMessage(message) {
    if (this.#started) {
      // A proxy sent the request again [anth-message-start-twice].
      return this.fail("message_start came twice in one stream");
    }
    this.#started = true;
    this.identify(message.id, message.model);
    const usage = object(message.usage);
    const blocks = list(message.content).map(object);
    if (blocks.every(isPlaceholder)) {
      return this.#count({ ...usage, output_tokens: null }); // an estimate here
    }
    blocks.forEach((block, index) => {
      this.#start(index, block); // the message is complete in its start
      this.#endBlock(this.#blocks.get(index));
    });
    this.#count(usage);
    this.#stop(string(message.stop_reason));
  }

  #stop(reason) {
    if (!reason || this.failed) return; // null does not erase it [anth-two-message-delta]
    this.finish = reason;
    this.complete = true;
    this.#endBlocks();
  }

  /** Ends the blocks without a stop. If a limit ended the answer inside a call, its arguments may only
   * look complete [anth-tool-cut-by-limit]. */
  #endBlocks() {
    const cut = ![null, "tool_use", "end_turn"].includes(this.finish);
    for (const block of this.#blocks.values()) {
      const { call } = block;
      if (cut && call && !call.closed && !(call.arguments && isObjectText(call.arguments))) {
        call.problem = `was cut off by ${this.finish}`;
      }
      this.#endBlock(block);
    }
  }

  // Blocks

  #start(index, block) {
    const type = string(block.type);
    const slot = [index ?? 0, this.#begun++];
    const isCall = type === "tool_use";
    const call = isCall ? this.open(slot[0], index, string(block.id), string(block.name)) : null;
    const before = this.#blocks.get(index);
    if (before) this.#endBlock(before); // the same index is a new block [anth-index-all-zero]
    // The service sends {} if the arguments follow in deltas [anth-input-in-start].
    const empty = !block.input || !Object.keys(block.input).length;
    const begun = { type, slot, call, initial: empty ? "" : argumentsText(block.input), signature: "" };
    this.#blocks.set(index, begun);
    if (type === "text") {
      this.add("text", string(block.text), slot); // [anth-text-in-start]
    } else if (type === "thinking") {
      this.add("reasoning", string(block.thinking), slot);
      begun.signature = string(block.signature);
    } else if (type === "redacted_thinking") {
      this.keep(block.data);
    }
  }

  #delta(block, delta) {
    const kinds = `${block.type} ${string(delta.type)}`;
    if (kinds === "text text_delta") {
      this.add("text", string(delta.text), block.slot);
    } else if (kinds === "thinking thinking_delta") {
      this.add("reasoning", string(delta.thinking), block.slot);
    } else if (kinds === "thinking signature_delta") {
      block.signature += string(delta.signature); // one delta or several
    } else if (kinds === "tool_use input_json_delta" && !block.call.closed) {
      block.call.arguments += string(delta.partial_json);
    }
  }

  #endBlock({ call, signature, initial }) {
    this.keep(signature);
    if (!call || call.closed) return;
    call.arguments ||= initial;
    call.closed = true;
  }

  /** Each count is a total and replaces an earlier one; a missing one does not erase it. */
  #count(usage) {
    const thinking = object(usage.output_tokens_details).thinking_tokens;
    for (const [name, value] of Object.entries({ ...usage, thinking_tokens: thinking })) {
      if (count(value) !== null) this.#tokens[name] = value;
    }
    const tokens = this.#tokens;
    if (!Object.keys(tokens).length) return;
    const cached = tokens.cache_read_input_tokens ?? null;
    // Input tokens exclude those that are read from the cache or written to it.
    const written = tokens.cache_creation_input_tokens ?? 0;
    this.usage = {
      input: "input_tokens" in tokens ? tokens.input_tokens + (cached ?? 0) + written : null,
      output: tokens.output_tokens ?? null,
      reasoning: tokens.thinking_tokens ?? null,
      cached,
    };
  }
}

/** Whether a block in message_start is empty: proxies send one, and open the block later. */
function isPlaceholder({ type, text, thinking, signature }) {
  return !(text || thinking || signature) && (type === "text" || type === "thinking");
}
