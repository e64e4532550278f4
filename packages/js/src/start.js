// A server for the tests of this process.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { checkOptions, MockllmError } from "./errors.js";
import { findCommand } from "./find.js";
import { ServerProcess } from "./process.js";
import { scenarioList } from "./replies.js";
import { control, createSession } from "./session.js";

const OPTIONS = ["scenarios", "url", "command", "port", "args", "cwd", "env", "log", "timeout"];
export { OPTIONS as START_OPTIONS };
const OF_PROCESS = OPTIONS.filter((name) => name !== "url");

// `mockllm serve` needs a scenario. This one answers only requests that name it.
const NOTHING = {
  scenario: "none-given",
  description: "start() was given no scenarios; sessions have their own.",
  turns: [{ reply: { text: "start() was given no scenarios." } }],
};

export class Server {
  #process;
  #command;

  constructor(url, process, command) {
    this.url = url;
    this.#process = process;
    this.#command = command;
  }

  /** A session: base URLs for one test, with scenarios of its own if it is given any. */
  session(options) {
    return createSession(this.url, options, this.session, this.#command);
  }

  /** Ends the server, if `start` started it. */
  async stop() {
    await this.#process?.stop();
  }
}

/** Starts `mockllm serve`, or uses a server that runs already. */
export async function start(options = {}) {
  checkOptions("start()", options, OPTIONS);
  if (options.url === undefined) return startProcess(options);
  const given = OF_PROCESS.filter((name) => options[name] !== undefined);
  if (given.length) {
    throw new MockllmError(
      `start() with a url starts no server, so it cannot use: ${given.join(", ")}. ` +
        "Leave these out, or the url; scenarios may be given to session().",
    );
  }
  const url = options.url.replace(/\/+$/, "");
  await control(`${url}/_mockllm/health`);
  return new Server(url);
}

async function startProcess(options) {
  const { port = 0, args = [], cwd, env = process.env, log, timeout = 60_000 } = options;
  const command = findCommand(options.command, { cwd, env });
  const folder = await mkdtemp(path.join(tmpdir(), "mockllm-"));
  try {
    const paths = await written(options.scenarios, folder, cwd);
    const words = ["serve", ...paths, "--port", String(port), "--grace", "1", ...args];
    const quiet = log ? [] : ["--quiet"];
    const server = new ServerProcess([...command, ...words, ...quiet], { cwd, env, log });
    return new Server(await server.url(timeout), server, command);
  } finally {
    await rm(folder, { recursive: true, force: true }); // the server has loaded them
  }
}

/** The paths to serve: those that were given, and files with the scenarios that were given. */
async function written(scenarios = NOTHING, folder, cwd = process.cwd()) {
  const paths = [];
  for (const [number, one] of scenarioList(scenarios).entries()) {
    if (typeof one === "string" && !one.includes("\n")) {
      paths.push(path.resolve(cwd, one));
      continue;
    }
    const file = path.join(folder, `${number}.yaml`);
    await writeFile(file, typeof one === "string" ? one : yaml(one));
    paths.push(file);
  }
  return paths;
}

// JSON allows these characters unescaped; YAML does not, or reads them as the end of a line.
const NOT_YAML = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/gu;

/** An object as JSON that is also YAML. */
function yaml(value) {
  return JSON.stringify(value, null, 2).replace(
    NOT_YAML,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
