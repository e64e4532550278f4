// A thread of `run.mjs`: asks for one job after another and tells what came of it.
import { setTimeout as pause } from "node:timers/promises";
import { parentPort } from "node:worker_threads";

import { trouble } from "./telling.mjs";

const MOMENT = 10; // milliseconds in which what a client left behind may still fail

let uncaught = () => {};
process.on("uncaughtException", (error) => uncaught(error));

async function told(job) {
  const [file, name] = job.ask.split("#");
  try {
    const asks = await import(new URL(file, import.meta.url));
    return await asks[name](job);
  } catch (error) {
    return { errors: [trouble(error)] };
  }
}

/** What ends a program, since its author has no way to catch it. */
const fatal = (error) => ({ message: `nobody can catch ${trouble(error).message}`, crash: true });

/** What a client says, and what nobody could catch meanwhile, after which it may never say more. */
async function answer(job) {
  const left = [];
  const failed = new Promise((resolve) => {
    uncaught = (error) => resolve(left.push(fatal(error)));
  });
  const said = await Promise.race([told(job), failed.then(() => pause(MOMENT, {}))]);
  await pause(MOMENT);
  const errors = [...(said.errors ?? []), ...left];
  return { said: { ...said, errors }, broken: left.length > 0 };
}

parentPort.on("message", async (job) => parentPort.postMessage(await answer(job)));
