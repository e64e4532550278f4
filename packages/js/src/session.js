// A session of a server: base URLs for the clients of one test, and the verdict on their requests.

import { Agent } from "./agent.js";
import { checkOptions, MockllmError, VerificationError } from "./errors.js";
import { scenarioList } from "./replies.js";
import { describe } from "./verification.js";

const LOOK = 20; // milliseconds between two looks at what is not over

const SESSION_OPTIONS = ["name", "scenarios", "quirks", "match", "served"];

/** The options of `verify`, and the parameters that the server has for them. */
export const VERIFY_OPTIONS = Object.freeze({
  depth: "depth",
  leaveOut: "leave_out",
  require: "require",
  once: "once",
  allowUnplayed: "allow_unplayed",
  allowNoRequests: "allow_no_requests",
});

/** One request to a control route; the JSON value of its answer. */
export async function control(url, { method = "GET", body } = {}) {
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    const reason = error.cause?.message || error.message;
    throw new MockllmError(
      `there is no answer from ${new URL(url).origin} (${reason}); ` +
        "does `mockllm serve` run there?",
    );
  }
  const text = await answer.text();
  const value = parse(text);
  if (answer.ok && value !== undefined) return value;
  const message = value?.error?.message ?? text.slice(0, 500);
  throw new MockllmError(`${method} ${url} was answered with ${answer.status}: ${message}`);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Makes a session of a server; the stack of an error begins at the caller of `from`. `command` is
 * that of mockllm, where the caller has named one. */
export async function createSession(root, options = {}, from = createSession, command) {
  checkOptions("session()", options, SESSION_OPTIONS);
  const { name, scenarios, quirks, match, served } = options;
  const body = {
    session: name,
    scenarios: scenarios === undefined ? undefined : scenarioList(scenarios),
    quirks,
    match,
    served,
  };
  const url = `${root}/_mockllm/sessions`;
  const called = {};
  Error.captureStackTrace(called, from); // before the first await: the caller's frames
  try {
    return new Session(root, await control(url, { method: "POST", body }), command);
  } catch (error) {
    error.message = withoutPositions(error.message, body.scenarios ?? []);
    error.stack = `${error.name}: ${error.message}${called.stack.slice(called.stack.indexOf("\n"))}`;
    throw error;
  }
}

/** A message without line and column in the JSON of scenarios that were given as values. */
function withoutPositions(message, scenarios) {
  return message.replace(/^(scenarios\[(\d+)\]):\d+:\d+:/gm, (found, scenario, index) =>
    typeof scenarios[index] === "string" ? found : `${scenario}:`,
  );
}

export class Session {
  #root;
  #command;

  constructor(root, created, command) {
    this.#root = root;
    this.#command = command;
    this.name = created.session;
    this.url = created.url;
    this.baseUrls = created.base_urls;
    this.env = created.variables;
    this.headers = created.header;
  }

  /** The URL of an MCP server of the session, a document `mcp: NAME`. */
  mcpUrl(name) {
    return `${this.url}/mcp/${name}`;
  }

  /** The program that is this MCP server over standard input and output. */
  mcpCommand(name) {
    return ["mockllm", "mcp", name, "--url", this.url];
  }

  /** The requests of the session, as the server's journal has them. */
  async journal() {
    return (await this.#get("journal")).exchanges;
  }

  /** A coding agent whose requests come to the session: `claude`, `codex`, `gemini` or `opencode`. */
  agent(name) {
    return new Agent(name, this, this.#command);
  }

  /** Opens a gate: for the answers that wait there, and for those that come later. */
  async release(gate) {
    const query = new URLSearchParams({ session: this.name });
    const url = `${this.#root}/_mockllm/gates/${encodeURIComponent(gate)}/release?${query}`;
    await control(url, { method: "POST" });
  }

  /** Resolves when an answer waits at a gate; `timeout` is in milliseconds. */
  async waitForGate(gate, options = {}) {
    checkOptions("waitForGate()", options, ["timeout"]);
    const { timeout = 10_000 } = options;
    const wait = `${Math.ceil(timeout)}ms`;
    const found = await this.#get(`gates/${encodeURIComponent(gate)}`, { wait });
    if (found.open) {
      throw new MockllmError(`the gate '${gate}' was released before, so no answer waits there`);
    }
    if (!found.waiting.length) {
      throw new MockllmError(`no answer came to the gate '${gate}' in ${timeout} ms`);
    }
  }

  /** Resolves with the journal when no answer is on its way: each was sent, or its client has left.
   * `timeout` is in milliseconds. */
  async waitUntilOver(options = {}) {
    checkOptions("waitUntilOver()", options, ["timeout"]);
    const { timeout = 10_000 } = options;
    for (const until = Date.now() + timeout; ; ) {
      const journal = await this.journal();
      const left = journal.find((one) => one.open);
      if (!left) return journal;
      if (Date.now() > until) {
        const gate = left.gates?.find((one) => !one.ended)?.gate;
        const why = gate ? `waits at the gate '${gate}'` : "goes on";
        throw new MockllmError(
          `the answer to request ${left.number} ${why} after ${timeout} ms, ` +
            "and its client has not left",
        );
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
  }

  /** The verdict on the requests, whatever it is. */
  async verification(options = {}) {
    checkOptions("verification()", options, Object.keys(VERIFY_OPTIONS));
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const parameters = given.map(([name, value]) => [VERIFY_OPTIONS[name], value]);
    return this.#get("verify", Object.fromEntries(parameters));
  }

  /** The verdict on the requests.
   *
   * Throws a `VerificationError` unless it is good. */
  async verify(options = {}) {
    const found = await this.verification(options);
    if (found.good) return found;
    throw new VerificationError(describe(found, await this.journal()), found, this.verify);
  }

  /** Deletes the session with all that the server knows of it. */
  async delete() {
    const url = `${this.#root}/_mockllm/sessions/${encodeURIComponent(this.name)}`;
    await control(url, { method: "DELETE" });
  }

  #get(route, parameters = {}) {
    const query = new URLSearchParams({ session: this.name, ...parameters });
    return control(`${this.#root}/_mockllm/${route}?${query}`);
  }
}
