// Turns the bytes of a stream into events: JSON in server-sent events, JSON lines, or plain
// JSON.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

/** Passes events on to `answer.feed(payload, event)`, and errors to `answer.fail(message)`. */
export class Events {
  #decoder = new TextDecoder(); // it also removes the byte order mark
  #afterCr = false;
  #ended = false;
  #partial = []; // of the line that has not ended; joined once, since it may be long
  #event = "";
  #data = [];
  #body = [];

  constructor(answer) {
    this.answer = answer;
  }

  /** Takes one read, which may end anywhere, also within a character or a line end. */
  feed(bytes) {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (!text) return;
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
    this.#afterCr = text.endsWith("\r");
    const [first, ...lines] = text.split(/\r\n|\r|\n/);
    this.#partial.push(first);
    for (const line of lines) {
      this.#line(this.#partial.join(""));
      this.#partial = [line];
    }
  }

  #line(line) {
    if (this.#ended) return;
    if (this.answer.jsonLines) {
      this.#data = [line.trim()]; // nothing in a blank one [ollama-blank-lines]
      return this.#dispatch();
    }
    if (!line) return this.#dispatch();
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (!["", "id", "retry"].includes(name) && (this.#body.length || /^[{[]/.test(line))) {
      this.#body.push(line); // an error or an answer as plain JSON
    }
  }

  /** A blank line ends an event. */
  #dispatch() {
    const data = this.#data.join("\n");
    const event = this.#event;
    this.#data = [];
    this.#event = "";
    if (!data || this.#isDone(data)) return;
    const payload = parse(data);
    if (payload === undefined) {
      // To leave it out would lose a part of the answer silently.
      this.answer.fail(`the data of an event are no JSON: ${data.slice(0, 200)}`);
      this.#ended = true;
    } else {
      this.answer.feed(payload, event || null);
    }
  }

  /** In APIs that do not end with [DONE] it has no meaning, but proxies send it. */
  #isDone(data) {
    if (data.trimEnd() !== "[DONE]") return false;
    this.#ended = this.answer.hasDone;
    return true;
  }

  /** Ends the input. The last event may lack its blank line if its JSON is complete. */
  close() {
    this.#partial.push(this.#decoder.decode());
    const rest = this.#partial.join("");
    if (rest) this.#line(rest);
    if (!this.#ended) this.#dispatch();
    if (this.#ended || !this.#body.length) return;
    const value = parse(this.#body.join("\n")); // undefined: it was cut, so it has no end
    for (const payload of Array.isArray(value) ? value : value === undefined ? [] : [value]) {
      this.answer.feed(payload, null);
    }
  }
}

/** The JSON value of a text; undefined if it is none. */
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
