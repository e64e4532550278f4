// Cases with faults for clients under Node: settings, one client object for several requests, what
// its user saw, and the cause that an error names.
//
// An adapter calls `clientOf(job, make)` for its client, and `watched(job, stream, text, stop)`
// around the stream that it reads.
import { addTrouble, NOTHING } from "./troubles.mjs";

/** The user leaves the loop over the stream. */
class CancelledByUser extends Error {}

/** Retries of the client; other cases have none. */
export const retriesOf = (job) => (job.tries ?? 1) - 1;

/** Milliseconds of the client's timeout. */
export const limitOf = (job) => (job.idle_timeout ?? job.deadline) * 1000;

/** The client of a job; all requests of a case with a fault have the same. */
export const clientOf = (job, make) => (job.run ? (job.run.shared.client ??= make()) : make());

/** Reads a stream to its end. In cases with a fault, the text of each piece is what the user sees,
 * and a user who cancels leaves the loop, as `for await` does it. */
export async function* watched(job, stream, text) {
  for await (const piece of stream) {
    saw(job, text(piece));
    yield piece;
  }
}

/** Shows a stream to the user of a case with a fault; other cases read it by its own helpers. */
export async function shown(job, stream, text) {
  if (!job.run) return;
  const pieces = watched(job, stream, text);
  while (!(await pieces.next()).done);
}

/** The user gets a piece of text. */
export function saw(job, text) {
  if (!job.run) return;
  job.run.watches = true;
  job.run.shown += text || "";
  if (job.cancel && text) throw new CancelledByUser();
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
  ["rate_limit", /rate_?limit|resource_exhausted|insufficient_quota/],
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
    values.push(last?.constructor?.name, last?.status, last?.statusCode, last?.code, last?.type);
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
