// A coding agent, led to a session: `mockllm agent` starts it with a HOME and settings of its own.

import path from "node:path";
import { checkOptions, MockllmError } from "./errors.js";
import { findCommand } from "./find.js";
import { run } from "./process.js";

const OPTIONS = ["cwd", "timeout", "env"];
const NOT_RUN = [2, 127]; // what mockllm itself ends with before the agent runs

export class Agent {
  #name;
  #session;
  #command;

  constructor(name, session, command) {
    this.#name = name;
    this.#session = session;
    this.#command = command;
  }

  /** Runs the agent to its end, in the folder `cwd`; `timeout` is in milliseconds. `prompt` may be
   * a list of words, with options of the agent's own. */
  async run(prompt, options = {}) {
    checkOptions("run()", options, OPTIONS);
    const { cwd, timeout = 120_000, env } = options;
    if (cwd === undefined) {
      throw new MockllmError("run() needs a folder in which the agent works: { cwd }");
    }
    const before = (await this.#session.journal()).at(-1)?.number ?? 0;
    const of = ["--url", this.#session.url, "--timeout", `${Math.ceil(timeout)}ms`, this.#name];
    const variables = { ...process.env, ...env };
    const installed = path.resolve("node_modules", ".bin"); // of the project, not of `cwd`
    variables.PATH = [installed, variables.PATH].join(path.delimiter);
    const command = findCommand(this.#command, { env: variables });
    const words = Array.isArray(prompt) ? prompt : [prompt];
    const ended = await run([...command, "agent", ...of, "--", ...words], { cwd, env: variables });
    if (NOT_RUN.includes(ended.code) && ended.stderr.startsWith("mockllm: ")) {
      throw new MockllmError(ended.stderr.slice("mockllm: ".length).trim());
    }
    const journal = (await this.#session.journal()).filter((one) => one.number > before);
    return Object.freeze({
      output: ended.stdout,
      errors: ended.stderr,
      exitCode: ended.code,
      journal,
    });
  }
}
