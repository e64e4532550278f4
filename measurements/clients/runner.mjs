// Runs a client under Node as a runner: `node runner.mjs FILE FUNCTION`, until its input ends.
//
// FILE is an adapter. Its FUNCTION gets a job (see `job.mjs`) and returns the outcome with the keys
// of the protocol of runners (docs/runner-protocol.md, level `http`); a key that is left out is a
// field that the client has no place for. `client.toml` beside the adapter says what the client is:
// the entry whose command ends with FUNCTION.
//
// A thread has one job at a time. So if a client ends its thread, the job is known and gets the
// error, and no other job is affected.
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

import { NOTHING } from "./troubles.mjs";

const AT_ONCE = 2;
const FEW = 20; // jobs for which another thread, which loads the client again, does not pay
const SPARE = 15_000; // milliseconds that a client has after its own deadline

const [file, name] = process.argv.slice(2);
const waiting = [];
const threads = new Set();
let over = false;

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const write = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

/** A thread for the cases with faults, which run side by side: most of their time they wait. */
class FaultThread {
  #jobs = new Map();
  #worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    workerData: { file: path.resolve(file), name },
    stdout: true,
    stderr: true,
  });

  constructor() {
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    this.#worker.on("message", ({ id, result, missing }) => {
      if (missing) fail(`${file}: ${missing}`);
      this.#jobs.delete(id);
      write({ id, ...result });
      this.stopIfOver();
    });
    this.#worker.on("exit", () => {
      faultThread = null;
      for (const id of this.#jobs.keys()) {
        write({ id, ...NOTHING, crash: "the client ended the program" });
      }
    });
  }

  give(job) {
    this.#jobs.set(job.id, job);
    this.#worker.postMessage(job);
  }

  stopIfOver() {
    if (over && this.#jobs.size === 0) void this.#worker.terminate();
  }
}

let faultThread = null;

class Thread {
  #job = null;
  #watchdog = null;
  #end = "it ended the program";
  #worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    workerData: { file: path.resolve(file), name },
    stdout: true, // clients print and warn, which must not be mixed with the answers
    stderr: true,
  });

  constructor() {
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    this.#worker.on("message", ({ result, broken, missing }) => {
      if (missing) fail(`${file}: ${missing}`);
      this.#done(result);
      if (broken) this.stop();
      else proceed();
    });
    this.#worker.on("error", (error) => (this.#end = `${error.name}: ${error.message}`));
    this.#worker.on("exit", () => {
      threads.delete(this);
      this.#done({ ...NOTHING, crash: `the client failed: ${this.#end}` });
      proceed();
    });
  }

  isIdle = () => this.#job === null;

  give(job) {
    this.#job = job;
    const limit = job.deadline * 1000 + SPARE;
    this.#watchdog = setTimeout(() => {
      this.#end = `it did not end within ${limit / 1000} seconds`;
      this.stop();
    }, limit);
    this.#worker.postMessage(job);
  }

  stop() {
    threads.delete(this);
    void this.#worker.terminate();
  }

  #done(result) {
    clearTimeout(this.#watchdog);
    if (this.#job === null) return;
    write({ id: this.#job.id, ...result });
    this.#job = null;
  }
}

/** An idle thread; undefined if all are busy and there are enough. */
function idle() {
  const found = [...threads].find((thread) => thread.isIdle());
  const enough = waiting.length > FEW ? AT_ONCE : 1;
  if (found !== undefined || threads.size >= enough) return found;
  const thread = new Thread();
  threads.add(thread);
  return thread;
}

/** Gives waiting jobs to idle threads, and ends when no job is left. */
function proceed() {
  for (let thread; waiting.length > 0 && (thread = idle()); ) thread.give(waiting.shift());
  if (over && waiting.length === 0) {
    for (const thread of threads) if (thread.isIdle()) thread.stop();
  }
}

/** The client of `client.toml` that the function is the adapter of. */
async function entry() {
  const toml = path.join(path.dirname(file), "client.toml");
  const { parse } = await import("smol-toml").catch(() =>
    fail("the clients are not installed: `npm install` in measurements/clients installs them"),
  );
  const clients = parse(readFileSync(toml, "utf8")).client;
  const found = clients.find(({ command }) => command.at(-1) === name);
  const names = clients.map(({ command }) => command.at(-1)).join(", ");
  return found ?? fail(`${toml} has no client ${name}; there are: ${names}`);
}

function version(wanted) {
  const manifest = new URL(`./node_modules/${wanted}/package.json`, import.meta.url);
  try {
    return JSON.parse(readFileSync(manifest, "utf8")).version;
  } catch {
    return fail(`${wanted} is not here: \`npm install\` in measurements/clients installs it`);
  }
}

/** The versions of packages and of all that they need, as far as it is installed. */
function libraries(names) {
  const top = new URL("./node_modules/", import.meta.url);
  const versions = {};
  const add = (wanted, within) => {
    const found = [new URL("node_modules/", within), top]
      .map((folder) => new URL(`${wanted}/`, folder))
      .find((folder) => existsSync(new URL("package.json", folder)));
    if (found === undefined) return;
    const manifest = JSON.parse(readFileSync(new URL("package.json", found), "utf8"));
    const nested = found.href.startsWith(within.href) && within !== top;
    const key = nested ? `${wanted} ${manifest.version}` : wanted;
    if (key in versions) return;
    versions[key] = manifest.version;
    for (const one of Object.keys({ ...manifest.peerDependencies, ...manifest.dependencies }))
      add(one, found);
  };
  for (const name of names) add(name, top);
  return Object.fromEntries(Object.entries(versions).sort());
}

function hello({ mockllm, api, level = "http" }, client) {
  if (api !== client.api) fail(`${client.name} speaks the API ${client.api}, not ${api}`);
  if (level !== "http") fail(`${client.name} is a whole client: run it with --http, not ${level}`);
  const others = (client.with ?? []).map((one) => `${one} ${version(one)}`);
  const { name, language, entry_point, notes = "", unsupported = [] } = client;
  const versions = [version(client.package), ...others].join(" with ");
  const adapter = file.split(path.sep).join("/");
  const used = libraries([client.package, ...(client.with ?? [])]);
  const described = {
    ...{ name, version: versions, language, entry_point, adapter, notes },
    libraries: { node: process.versions.node, ...used },
  };
  const declared = client.resilience ? { resilience: client.resilience } : {};
  return { mockllm, client: described, unsupported, intermediate: false, ...declared };
}

if (file === undefined || name === undefined) fail("usage: node runner.mjs FILE FUNCTION");
const client = await entry();
createInterface({ input: process.stdin, crlfDelay: Infinity })
  .on("line", (line) => {
    const job = JSON.parse(line);
    if ("mockllm" in job) return void write(hello(job, client));
    if ("tries" in job) return void (faultThread ??= new FaultThread()).give(job);
    waiting.push(job);
    proceed();
  })
  .on("close", () => {
    over = true;
    faultThread?.stopIfOver();
    proceed();
  });
