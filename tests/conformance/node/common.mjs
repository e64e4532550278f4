// What all clients share: their timeout and key, and how values and errors are reported.

/** Milliseconds before a client gives up; mockllm answers in a few. */
export const TIMEOUT = 60_000;

export const API_KEY = "mock-key";

/** A value of a text field as a user would print it; null and undefined are empty text. */
export const asText = (value) => (value === null || value === undefined ? "" : String(value));

/** The message of an error with its class, and whether it is a bug in the client. */
export function trouble(error) {
  if (!(error instanceof Error)) {
    return { message: messageOf(error), crash: false };
  }
  const name = error.name === "Error" ? error.constructor.name : error.name;
  return { message: `${name}: ${error.message}`, crash: isCrash(error) };
}

const messageOf = (error) =>
  typeof error === "string" ? error : String(error?.message ?? JSON.stringify(error));

const CRASHES = [TypeError, RangeError, ReferenceError];

/** `fetch` reports a failed connection as a `TypeError` with a cause, which is no bug. If a client
 * wraps an error under the same message, the wrapped error decides. */
function isCrash(error) {
  const cause = error.cause;
  if (cause instanceof Error && cause.message === error.message) return isCrash(cause);
  return cause === undefined && CRASHES.some((kind) => error instanceof kind);
}
