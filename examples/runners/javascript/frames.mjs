// Turns the bytes of a stream into events: JSON in the binary frames of AWS. A name in brackets is a
// quirk of servers that a rule is there for; `mockllm list quirks NAME` describes it.
// https://smithy.io/2.0/aws/amazon-eventstream.html

import zlib from "node:zlib"; // `crc32` came with Node 20.15
import { parse } from "./sse.mjs";

const [PRELUDE, CHECKSUM] = [12, 4]; // bytes: two lengths with their checksum; that of the frame
const SIZES = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 }; // of a header's value, by type
const STRING = 7; // this type, and bytes, have a length

/** Passes events on to `answer.feed({ name: payload })`, and errors to `answer.fail(message)`. */
export class Frames {
  #rest = Buffer.alloc(0); // of the frame that has not ended

  constructor(answer) {
    this.answer = answer;
  }

  /** Takes one read, which may end anywhere. */
  feed(bytes) {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= PRELUDE && !this.answer.failed) {
      const size = this.#rest.readUInt32BE(0);
      const headersEnd = PRELUDE + this.#rest.readUInt32BE(4);
      if (!isIntact(this.#rest, 8) || size < headersEnd + CHECKSUM) {
        // It may be no frame at all [bedrock-json-for-stream].
        this.answer.fail("the lengths of a frame have a wrong checksum");
      } else if (this.#rest.length < size) {
        return;
      } else {
        const frame = this.#rest.subarray(0, size);
        this.#rest = this.#rest.subarray(size);
        this.#frame(frame, headersEnd, size - CHECKSUM);
      }
    }
  }

  #frame(frame, headersEnd, payloadEnd) {
    if (!isIntact(frame, payloadEnd)) return this.answer.fail("a frame has a wrong checksum");
    const headers = headersOf(frame.subarray(PRELUDE, headersEnd));
    const name = headers[":exception-type"] || headers[":event-type"];
    const payload = frame.toString("utf8", headersEnd, payloadEnd);
    const value = parse(payload || "{}"); // [bedrock-empty-stop]
    if (":error-code" in headers) {
      const error = { code: headers[":error-code"], message: headers[":error-message"] };
      this.answer.feed({ error });
    } else if (name && value === undefined) {
      this.answer.fail(`the payload of ${name} is no JSON: ${payload.slice(0, 200)}`);
    } else if (name) {
      this.answer.feed({ [name]: value });
    }
  }

  /** Ends the input. HTTP may end properly within a frame [bedrock-truncated-frame]. */
  close() {
    if (this.#rest.length) this.answer.fail("the stream was cut inside of a frame");
  }
}

/** Whether the bytes before a place have the checksum that stands there. */
function isIntact(bytes, end) {
  return zlib.crc32(bytes.subarray(0, end)) === bytes.readUInt32BE(end);
}

/** The headers that are strings, in whatever order [bedrock-header-order]. */
function headersOf(data) {
  const found = {};
  for (let at = 0; at < data.length; ) {
    const nameEnd = at + 1 + data[at];
    const name = data.toString("utf8", at + 1, nameEnd);
    const type = data[nameEnd];
    const fixed = type in SIZES;
    const start = nameEnd + (fixed ? 1 : 3);
    const end = start + (fixed ? SIZES[type] : data.readUInt16BE(nameEnd + 1));
    if (type === STRING) found[name] = data.toString("utf8", start, end);
    at = end;
  }
  return found;
}
