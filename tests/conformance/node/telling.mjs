// How what clients say is told: the same for all of them.

/** Milliseconds that a client waits for anything; mockllm answers in a few. */
export const TIMEOUT = 5000;

export const API_KEY = "mock-key";

/** A value where text belongs, as a user sees it who prints it; none is no text. */
export const shown = (value) => (value === null || value === undefined ? "" : String(value));

/** An error with its class, and whether it speaks of a mistake in the program. */
export function trouble(error) {
  if (!(error instanceof Error)) {
    return { message: wordsOf(error), crash: false };
  }
  const name = error.name === "Error" ? error.constructor.name : error.name;
  return { message: `${name}: ${error.message}`, crash: isCrash(error) };
}

const wordsOf = (error) =>
  typeof error === "string" ? error : String(error?.message ?? JSON.stringify(error));

const CRASHES = [TypeError, RangeError, ReferenceError];

/** What fails in the network is a `TypeError` with a cause: that is no mistake in the program. A
 * client that passes on another's words passes on what they speak of. */
function isCrash(error) {
  const cause = error.cause;
  if (cause instanceof Error && cause.message === error.message) return isCrash(cause);
  return cause === undefined && CRASHES.some((kind) => error instanceof kind);
}
