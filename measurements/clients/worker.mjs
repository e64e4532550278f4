// A thread of `runner.mjs`: runs one job after another and posts their results.
import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";

import { withFaults } from "./faults.mjs";
import { addTrouble, NOTHING, trouble } from "./troubles.mjs";

const MOMENT = 10; // milliseconds in which a rejection that a client left behind is reported

/** All traffic is loopback: no proxies, telemetry or settings of SDKs from outside. */
const FOREIGN =
  /_proxy$|^(ai_sdk|anthropic|aws|bedrock|co|cohere|gemini|google|langchain|langsmith|mistral|ollama|openai)_/i;
for (const key of Object.keys(process.env)) if (FOREIGN.test(key)) delete process.env[key];
process.env.OPENAI_AGENTS_DISABLE_TRACING = "1";

let uncaught = () => {};
const inCase = new AsyncLocalStorage();
const cases = new Map(); // with faults: what each left behind, by its id
let watching = false;
process.on("uncaughtException", (error) => uncaught(error));

const adapter = await import(pathToFileURL(workerData.file)).catch(
  (error) => void parentPort.postMessage({ missing: trouble(error).message }),
);
const run = adapter?.[workerData.name];
if (adapter && !run) parentPort.postMessage({ missing: `it exports no ${workerData.name}` });

async function resultOf(job) {
  try {
    return await run(job);
  } catch (error) {
    const outcome = { ...NOTHING };
    addTrouble(outcome, error);
    return outcome;
  }
}

/** An error that ends a program, since its author cannot catch it. */
function fatal(error) {
  const found = trouble(error);
  return { ...found, message: `uncaught ${found.message}` };
}

/** A value that the protocol has as a text. A client may have any value there, null and undefined
 * included; others are reported as JSON. */
const text = (value) =>
  value === undefined || value === null || typeof value === "string"
    ? (value ?? null)
    : JSON.stringify(value);

const TEXTS = ["finish", "role", "model", "response_id"];

/** A result in the types of the protocol; what a client leaves undefined is null. */
function typed(result) {
  const texts = TEXTS.filter((name) => name in result).map((name) => [name, text(result[name])]);
  const calls = result.tool_calls?.map(({ id, name, arguments: given, ...rest }) => ({
    id: text(id),
    name: text(name),
    arguments: given ?? null,
    ...rest,
  }));
  return { ...result, ...Object.fromEntries(texts), ...(calls && { tool_calls: calls }) };
}

/** The result of a client; with uncaught errors, after which it may never return. */
async function answered(job) {
  const left = [];
  const failed = new Promise((resolve) => {
    uncaught = (error) => resolve(left.push(fatal(error)));
  });
  const result = await Promise.race([resultOf(job), failed.then(() => pause(MOMENT, NOTHING))]);
  await pause(MOMENT);
  const crash = result.crash ?? left[0] ?? null;
  return { result: { ...typed(result), crash }, broken: left.length > 0 };
}

/** A case with a fault; they run side by side, so the case of an error that nothing catches has to
 * be found: by its promise, or because no other case runs. */
async function answeredWithFault(job) {
  const left = [];
  cases.set(job.id, left);
  const result = await inCase.run(job.id, () => withFaults(run, job, () => left.length > 0));
  await pause(MOMENT);
  cases.delete(job.id);
  const clean = ({ earlier = [], ...one }) => ({ ...typed(one), earlier: earlier.map(typed) });
  return { id: job.id, result: { ...clean(result), crash: result.crash ?? left[0] ?? null } };
}

/** Finds the case of each promise, from the first case with a fault on. */
function watchPromises() {
  const owners = new WeakMap();
  const init = (_id, type, _trigger, resource) => {
    const owner = inCase.getStore();
    if (type === "PROMISE" && owner !== undefined) owners.set(resource, owner);
  };
  createHook({ init }).enable();
  const note = (error, owner) => {
    const only = cases.size === 1 ? [...cases.keys()][0] : undefined;
    cases.get(owner ?? only)?.push(fatal(error));
  };
  process.on("unhandledRejection", (error, promise) => note(error, owners.get(promise)));
  uncaught = (error) => note(error, inCase.getStore());
}

parentPort.on("message", async (job) => {
  if (!("tries" in job)) return void parentPort.postMessage(await answered(job));
  if (!watching) watchPromises();
  watching = true;
  parentPort.postMessage(await answeredWithFault(job));
});
