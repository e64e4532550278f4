// Feeds the cases of `mockllm check` to accumulators of this process. mockllm writes the cases to a
// file, and judges the file with the answers; nothing is judged here.

import { createReadStream, createWriteStream } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { play } from "./accumulate.js";
import { checkOptions, ConformanceError, MockllmError } from "./errors.js";
import { findCommand } from "./find.js";
import { run } from "./process.js";

const CHOOSING = ["api", "level", "only", "policy", "variations", "seed", "scenarios"];
const JUDGING = ["knownFailing", "unsupported", "client", "adapter", "results", "args"];
const OPTIONS = [...CHOOSING, ...JUDGING, "limit", "command", "cwd", "env"];
const VERSION = 1; // of the protocol of runners
const COSTS = ["wrong call", "data lost", "wrong metadata", "loud failure"];

/** Feeds each case to a new accumulator that `factory` makes, and returns the results. */
export async function check(factory, options) {
  checkOptions("check()", options ?? {}, OPTIONS);
  if (typeof factory !== "function") {
    throw new MockllmError("check() takes a function that makes an accumulator for each stream");
  }
  if (typeof options?.api !== "string") {
    throw new MockllmError("check() needs to know the API: check(factory, { api: 'chat' })");
  }
  const { cwd, env = process.env } = options;
  const command = findCommand(options.command, { cwd, env });
  const folder = await mkdtemp(path.join(tmpdir(), "mockllm-check-"));
  const mockllm = (...words) => run([...command, "check", ...words], { cwd, env });
  try {
    const cases = path.join(folder, "cases.jsonl");
    const emitted = await mockllm(...choice(options), "--emit", cases);
    if (emitted.code !== 0) throw failed("--emit", emitted);
    const answers = path.join(folder, "answers.jsonl");
    await answer(factory, options, cases, answers);
    return await judge(mockllm, options, folder, answers);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** An option with its value, or with each of its values. */
function repeated(option, value) {
  const values = value === undefined ? [] : Array.isArray(value) ? value : [value];
  return values.flatMap((one) => [option, String(one)]);
}

/** The options of the command that choose the cases. */
function choice({ api, level = "bytes", only, policy = {}, variations, seed, scenarios }) {
  return [
    "--api",
    api,
    "--level",
    level,
    ...repeated("--scenarios", scenarios),
    ...repeated("--only", only),
    ...repeated("--variations", variations),
    ...repeated("--seed", seed),
    ...Object.entries(policy).flatMap(([key, value]) => ["--policy", `${key}=${value}`]),
  ];
}

/** Writes an answer for each case. */
async function answer(factory, options, cases, answers) {
  const { api, level = "bytes", limit = 5000 } = options;
  const output = createWriteStream(answers);
  const write = (value) => output.write(`${JSON.stringify(value)}\n`);
  const input = createReadStream(cases);
  const written = finished(output);
  write(hello(options));
  let isFirst = true;
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    const message = JSON.parse(line);
    if (isFirst && message.mockllm !== VERSION) throw otherVersion(message);
    if (!isFirst) write({ id: message.id, ...(await play(factory, message, { api, level, limit })) });
    isFirst = false;
  }
  output.end();
  await written;
}

function otherVersion(message) {
  return new MockllmError(
    `mockllm writes cases of version ${message.mockllm}; this package reads version ${VERSION}. ` +
      "Install versions of mockllm-harness that belong together, from PyPI and from npm",
  );
}

function hello({ client = {}, adapter, unsupported = [] }) {
  const file = adapter?.startsWith("file:") ? fileURLToPath(adapter) : adapter;
  const known = { name: "accumulator", version: "", ...client, language: "javascript" };
  if (file !== undefined) known.adapter = file;
  return { mockllm: VERSION, client: known, unsupported, intermediate: false };
}

async function judge(mockllm, options, folder, answers) {
  const { knownFailing, results, args = [], cwd = process.cwd() } = options;
  const file = path.join(folder, "results.json");
  const words = [...choice(options), ...repeated("--known-failing", knownFailing)];
  const done = await mockllm(...words, "--output", file, ...args, "--judge", answers);
  const data = await read(file);
  if (data === null) throw failed("--judge", done);
  const kept = results === undefined ? undefined : path.resolve(cwd, results);
  if (kept !== undefined) {
    await mkdir(path.dirname(kept), { recursive: true });
    await copyFile(file, kept);
  }
  const report = `${done.stdout}${done.stderr}`.replaceAll(`RESULTS: ${file}`, keptLine(kept));
  return new CheckResults(done.code, report.trim(), data);
}

const keptLine = (file) => (file === undefined ? "" : `RESULTS: ${file}`);

async function read(file) {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

function failed(option, { code, stdout, stderr }) {
  const output = `${stderr}${stdout}`.trim().replaceAll("\n", "\n  ");
  return new MockllmError(`\`mockllm check ${option}\` ended with ${code}:\n  ${output}`);
}

// What a results file leaves out where it is empty.
const TEXTS = { invariant: "", baseline: "", exception: "", reason: "" };
const EMPTY = { cost: null, differences: [], ...TEXTS };

class CheckResults {
  constructor(exitCode, report, data) {
    this.exitCode = exitCode;
    this.report = report;
    this.data = data;
    this.cases = data.cases.map((one) => ({ ...EMPTY, ...one }));
  }

  get good() {
    return this.exitCode === 0;
  }

  get failures() {
    const rank = (one) => COSTS.indexOf(one.cost);
    return this.cases.filter((one) => one.cost && !one.baseline).sort((a, b) => rank(a) - rank(b));
  }

  assertRight() {
    if (this.good) return;
    const [wrong, all] = [this.failures.length, this.cases.length];
    const summary = wrong
      ? `The client gets ${wrong} of ${all} streams wrong.`
      : "The client was not judged in full, or not as its list of known failures says.";
    throw new ConformanceError(`${summary}\n\n${this.report}\n`, this, this.assertRight);
  }
}
