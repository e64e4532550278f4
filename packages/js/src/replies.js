// Scenarios as JavaScript values, with the keys of scenario files. What is wrong in one is reported
// by the server, when a session is made of it.

import { MockllmError } from "./errors.js";

/** The mapping without keys that are undefined. */
const defined = (value) =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));

// Parts of a reply

export const text = (value, options = {}) => defined({ text: value, ...options });

export const reasoning = (value, options = {}) => defined({ reasoning: value, ...options });

export const refusal = (value, options = {}) => defined({ refusal: value, ...options });

export const tool = (name, args, options = {}) =>
  defined({ tool: name, arguments: args ?? undefined, ...options });

export const serverTool = (kind, options = {}) => defined({ server_tool: kind, ...options });

export const image = (source, options = {}) => defined({ image: source, ...options });

export const audio = (source, options = {}) => defined({ audio: source, ...options });

/** Tool calls whose fragments alternate; the last argument may be `{order}`. */
export function parallel(...calls) {
  const [parts, options] = withOptions(calls, "tool");
  return defined({ parallel: parts, ...options });
}

export const interleaved = (parts, order) => ({ interleaved: [...parts], order: [...order] });

export const pause = (duration) => ({ pause: duration });

/** A place at which the answer waits until the test calls `session.release(name)`. */
export const gate = (name, { limit } = {}) => ({ gate: limit === undefined ? name : { name, limit } });

export const frame = (api, fields, options = {}) =>
  defined({ frame: defined(fields), api, ...options });

export const native = (api, value) => ({ native: value, api });

export const error = (message, options = {}) => ({ error: defined({ message, ...options }) });

export const auto = () => ({ auto: true });

function withOptions(values, key) {
  const last = values.at(-1);
  const isOptions = last !== null && typeof last === "object" && !(key in last);
  return isOptions ? [values.slice(0, -1), last] : [values, {}];
}

// Turns and scenarios

const part = (value) => (typeof value === "string" ? text(value) : value);

const replyTurn = (parts) => ({ reply: parts.map(part) });

function errorTurn(status, { retryAfter, headers, ...fields } = {}) {
  const error = defined(fields);
  const http = { status, headers, retry_after: retryAfter };
  return { http: defined({ ...http, error: Object.keys(error).length ? error : undefined }) };
}

/** Refuses a text, parts or options in place of the keys: their characters would be sent as keys. */
function checkKeys(keys, more) {
  if (keys !== null && typeof keys === "object" && !Array.isArray(keys) && !more.length) return;
  const given = [keys, ...more].map((one) => JSON.stringify(one)).join(", ");
  throw new MockllmError(
    `turn() takes one object, such as turn({ reply: "Hello.", timing: { ttft: "1s" } }), got ${given}`,
  );
}

/** Whether a turn says itself which one is next. */
const jumps = (turn) => "go_to" in turn || [turn.when ?? [], turn.one_of ?? []].flat().some(jumps);

/** A conversation: an immutable value whose own properties are the keys of a scenario file.
 *
 * The methods return a scenario with one more turn, or with other keys. */
export class Scenario {
  constructor(keys) {
    Object.assign(this, keys);
    Object.freeze(this);
  }

  /** Adds a turn with these parts; a string is text. */
  reply(...parts) {
    return this.turn(replyTurn(parts));
  }

  /** Adds a turn that is an HTTP error. */
  httpError(status, options) {
    return this.turn(errorTurn(status, options));
  }

  /** Adds a turn with the keys of a scenario file; parts in `reply` may be strings. */
  turn(keysOfTurn, ...more) {
    checkKeys(keysOfTurn, more);
    const { reply, ...keys } = keysOfTurn;
    const parts = Array.isArray(reply) ? reply.map(part) : reply;
    const turn = defined({ reply: typeof parts === "string" ? part(parts) : parts, ...keys });
    const turns = [...this.turns, turn];
    // One turn answers any number of requests; several are given once each, as they were written.
    const once = turns.length > 1 && !this.then && !turns.some(jumps);
    return new Scenario(defined({ ...this, in_order: once || undefined, turns }));
  }

  /** Replaces keys of the scenario, such as `scenario` (its name), `match` and `tools`. */
  with(keys) {
    const once = keys.then ? undefined : this.in_order;
    return new Scenario(defined({ ...this, in_order: once, ...keys }));
  }
}

const EMPTY = new Scenario({ match: "any", turns: [] });

/** A scenario that answers any request with these parts. */
export const reply = (...parts) => EMPTY.reply(...parts);

/** A scenario that answers any request with an HTTP error. */
export const httpError = (status, options) => EMPTY.httpError(status, options);

/** A scenario that answers any request with a turn, which has the keys of a scenario file. */
export const turn = (...keys) => EMPTY.turn(...keys);

/** Scenarios as a list of YAML texts and objects, each object with a name; an MCP server has its own. */
export function scenarioList(scenarios) {
  const list = Array.isArray(scenarios) ? scenarios : [scenarios];
  const used = new Set(list.map((one) => one?.scenario));
  let count = 0;
  const freeName = () => {
    for (;;) {
      count += 1;
      const name = count === 1 ? "inline" : `inline-${count}`;
      if (!used.has(name)) return name;
    }
  };
  return list.map((one) =>
    one !== null && typeof one === "object" && !one.scenario && typeof one.mcp !== "string"
      ? { scenario: freeName(), ...one }
      : one,
  );
}
