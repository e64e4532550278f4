// One case through one accumulator: the answer that a runner would give.

const CRASHES = [TypeError, RangeError, ReferenceError];

/** The answer, without its `id`. What the accumulator throws is an error that it reports.
 *
 * `limit` is in milliseconds; it cannot stop an accumulator that never returns. */
export async function play(factory, message, { api, level, limit }) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve(crash(`there was no outcome within ${limit} ms`)), limit);
  });
  try {
    return await Promise.race([accumulate(factory, message, { api, level }), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function accumulate(factory, { case: name, tools, feed }, { api, level }) {
  let client;
  try {
    client = await factory({ case: name, api, tools });
    for (const item of feed) {
      await (level === "bytes" ? client.feed(bytes(item)) : client.feed(item[1], item[0]));
    }
    await client.close?.();
  } catch (error) {
    return withError(await outcomeOf(client), error);
  }
  try {
    return asAnswer(await client.outcome());
  } catch (error) {
    return withError({}, error);
  }
}

/** The outcome of an accumulator that threw; `{}` if it has none. */
async function outcomeOf(client) {
  try {
    const answer = asAnswer(await client.outcome());
    return answer.crash ? {} : answer;
  } catch {
    return {}; // the first error is the one that counts
  }
}

/** A copy of its own: a Buffer's memory is shared with others, which a client might notice. */
const bytes = (base64) => new Uint8Array(Buffer.from(base64, "base64"));

function asAnswer(outcome) {
  if (outcome === null || typeof outcome !== "object" || Array.isArray(outcome)) {
    return crash(`outcome() must return an object, and returned ${JSON.stringify(outcome)}`);
  }
  const answer = { ...outcome };
  if (Array.isArray(answer.errors)) answer.errors = answer.errors.map(reported);
  if (Array.isArray(answer.tool_calls)) answer.tool_calls = Array.from(answer.tool_calls, filled);
  return answer;
}

/** An array may have holes, where a client counts from another index: a call without a name. */
const filled = (call) => call ?? {};

const reported = (error) =>
  error instanceof Error ? { message: messageOf(error), raised: raised(error) } : error;

function withError(answer, error) {
  const isBug = CRASHES.some((kind) => error instanceof kind);
  if (isBug) return { ...answer, ...crash(messageOf(error), raised(error)) };
  return { ...answer, errors: [...errorsOf(answer), asReported(error)] };
}

const errorsOf = ({ errors }) => (Array.isArray(errors) ? errors : []);

const asReported = (error) => (error instanceof Error ? reported(error) : String(error));

const crash = (message, place = "") => ({ crash: { message, raised: place } });

function messageOf(error) {
  const name = error.name === "Error" ? error.constructor.name : error.name;
  return error.message ? `${name}: ${error.message}` : name;
}

/** The innermost frame of an exception with a place in a file, as `FILE:LINE in FUNCTION`. */
function raised(error) {
  const frame = /^ +at (?:(?:async )?(.+?) \()?(?:file:\/\/)?([^()\n]+?):(\d+):\d+\)?$/m;
  const found = frame.exec(error.stack ?? "");
  return found ? `${found[2]}:${found[3]} in ${found[1] ?? "<anonymous>"}` : "";
}
