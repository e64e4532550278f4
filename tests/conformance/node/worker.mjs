// A thread of `run.mjs`: runs one job after another and posts their results.
import { setTimeout as pause } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

import { trouble } from "./common.mjs";

const MOMENT = 10; // milliseconds in which a rejection that a client left behind is reported

let uncaught = () => {};
process.on("uncaughtException", (error) => uncaught(error));

async function resultOf(job) {
  const [file, name] = job.client.split("#");
  try {
    const clients = await import(new URL(file, import.meta.url));
    return await clients[name](job);
  } catch (error) {
    return { errors: [trouble(error)] };
  }
}

/** An error that ends a program, since its author cannot catch it. */
const fatal = (error) => ({ message: `uncaught ${trouble(error).message}`, crash: true });

/** The result of a client with uncaught errors, after which it may never return. */
async function answer(job) {
  const left = [];
  const failed = new Promise((resolve) => {
    uncaught = (error) => resolve(left.push(fatal(error)));
  });
  const result = await Promise.race([resultOf(job), failed.then(() => pause(MOMENT, {}))]);
  await pause(MOMENT);
  const errors = [...(result.errors ?? []), ...left];
  return { result: { ...result, errors }, broken: left.length > 0 };
}

parentPort.on("message", async (job) => parentPort.postMessage(await answer(job)));
