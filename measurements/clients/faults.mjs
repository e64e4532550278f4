// Cases with faults for clients under Node: settings, one client object for several requests, what
// its user saw, and the cause that an error names.
//
// An adapter calls `clientOf(job, make)` for its client, and `watched(job, stream, text, cancel)`
// around the stream that it reads. Its user cancels in one of the three ways of `faults.py`.
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { addTrouble, NOTHING } from "./troubles.mjs";

const HOLD = 6000; // milliseconds for which nothing else is done after a cancellation

/** The user wants no more of the stream. */
class CancelledByUser extends Error {}

/** Retries of the client; other cases have none. */
export const retriesOf = (job) => (job.tries ?? 1) - 1;

/** Milliseconds of the client's timeout. */
export const limitOf = (job) => (job.idle_timeout ?? job.deadline) * 1000;

/** The client of a job; all requests of a case with a fault have the same. */
export const clientOf = (job, make) => (job.run ? (job.run.shared.client ??= make()) : make());

/** Reads a stream to its end. In cases with a fault, the text of each piece is what the user sees,
 * and a user who cancels leaves the loop as `for await` does it, calls `cancel`, or drops it. */
export async function* watched(job, stream, text, cancel) {
  if (!job.run) return void (yield* stream);
  job.run.watches = true;
  const pieces = stream[Symbol.asyncIterator]();
  for (let next; !(next = await pieces.next()).done; ) {
    const seen = text(next.value) || "";
    job.run.shown += seen;
    if (job.cancel && seen) await cancelled(job, stream, pieces, cancel);
    yield next.value;
  }
}

async function cancelled({ cancel: { by }, run }, stream, pieces, cancel) {
  if (by === "leave") {
    run.shared.kept = stream;
    await pieces.return?.();
  }
  if (by === "call") {
    await cancel?.();
    await pause(HOLD);
  }
  throw new CancelledByUser();
}

/** Shows a stream to the user of a case with a fault; other cases read it by its own helpers. */
export async function shown(job, stream, text, cancel) {
  if (!job.run) return;
  const pieces = watched(job, stream, text, cancel);
  while (!(await pieces.next()).done);
}

let collect = () => {
  setFlagsFromString("--expose-gc");
  collect = runInNewContext("gc");
  collect();
};

/** Waits until the connection of a cancelled stream should have been closed. */
async function held({ cancel: { by } }) {
  for (let half = 0; by !== "call" && half < 2; half++) {
    if (by === "drop") collect();
    await pause(HOLD / 2);
  }
}

async function outcomeOf(client, job, shared) {
  const run = { shared, shown: "", watches: false };
  let outcome;
  try {
    outcome = await client({ ...job, run });
    for (const [number, one] of (outcome.errors ?? []).entries()) {
      const cause = outcome.causes?.[number];
      if (cause) Object.assign(one, named(cause));
    }
    delete outcome.causes;
  } catch (error) {
    if (error instanceof CancelledByUser) outcome = { text: run.shown };
    else {
      outcome = { ...NOTHING };
      addTrouble(outcome, error);
      for (const one of [...(outcome.errors ?? []), outcome.crash])
        if (one) Object.assign(one, named(error));
    }
  }
  if (job.cancel) await held(job);
  return run.watches ? { ...outcome, handed_on: run.shown } : outcome;
}

const LATE = 4000; // milliseconds after which no answer is expected: it counts as late long before

/** The outcome of a case with a fault. */
export async function withFaults(client, job, isOver) {
  const shared = {};
  const found = [];
  const until = Date.now() + job.deadline * 1000 + LATE;
  const lost = async () => {
    while (!isOver() && Date.now() < until) await new Promise((done) => setTimeout(done, 20));
    return { ...NOTHING };
  };
  const one = () => Promise.race([outcomeOf(client, job, shared), lost()]);
  if (job.together) {
    found.push(...(await Promise.all(Array.from({ length: job.requests }, one))));
  } else {
    for (let number = 0; number < job.requests; number++) found.push(await one());
  }
  return { ...found.at(-1), earlier: found.slice(0, -1) };
}

const WORDS = [
  ["timeout", /timeout/],
  ["rate_limit", /rate_?limit|resource_exhausted|insufficient_quota|throttling/],
  ["overloaded", /overloaded|unavailable/],
  ["network", /connection|network/],
  ["request", /badrequest|authentication|permissiondenied|notfound|unprocessable|invalid_request/],
  ["server", /internalserver|server_?error|api_error/],
  ["protocol", /protocol|jsonparse|invalidresponse|incomplete|interrupted|typevalidation/],
];
const STATUSES = { 408: "timeout", 429: "rate_limit", 503: "overloaded", 529: "overloaded" };
const FOREIGN = new Set(["Error", "TypeError", "SyntaxError", "RangeError", "DOMException"]);

/** The class of an error and the cause that its class, status, code or type names. */
export function named(error) {
  const last = error?.lastError ?? error; // of the AI SDK's `RetryError`
  const own = last?.name && last.name !== "Error" ? last.name : last?.constructor?.name;
  const type = own ?? "";
  const values = [FOREIGN.has(type) ? "" : type];
  if (!FOREIGN.has(type)) {
    values.push(last?.constructor?.name, last?.status, last?.statusCode);
    values.push(last?.$metadata?.httpStatusCode, last?.code, last?.type); // the AWS SDK's status
  }
  const kind = values.map(kindOf).find((value) => value !== null) ?? null;
  return { type, kind };
}

function kindOf(value) {
  if (typeof value === "number") {
    if (STATUSES[value]) return STATUSES[value];
    return value >= 500 ? "server" : value >= 400 ? "request" : null;
  }
  if (typeof value !== "string") return null;
  return WORDS.find(([, words]) => words.test(value.toLowerCase()))?.[0] ?? null;
}
