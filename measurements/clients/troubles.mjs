// Errors of clients in the form of answers of runners: {message, raised}.
import path from "node:path";
import { fileURLToPath } from "node:url";

Error.stackTraceLimit = 50;

/** The outcome of a client that returned nothing. A field that is left out would be one that the
 * client has no place for. */
export const NOTHING = {
  text: "",
  reasoning: "",
  refusal: "",
  tool_calls: [],
  finish: null,
  usage: null,
};

/** An error with its class, and the place that raised it. */
export function trouble(error) {
  if (!(error instanceof Error)) return { message: messageOf(error) };
  const name = error.name === "Error" ? error.constructor.name : error.name;
  const raised = raisedAt(origin(error));
  return { message: `${name}: ${error.message}`, ...(raised && { raised }) };
}

const messageOf = (error) =>
  typeof error === "string" ? error : String(error?.message ?? JSON.stringify(error));

/** Adds an error that a client reports to an outcome; one that points to a bug is its crash. */
export function addTrouble(outcome, error, prefix = "") {
  const found = trouble(error);
  found.message = prefix + found.message;
  if (isCrash(error) && !outcome.crash) outcome.crash = found;
  else (outcome.errors ??= []).push(found);
}

/** The error that a client wraps under the same message. */
function origin(error) {
  const { cause } = error;
  return cause instanceof Error && cause.message === error.message ? origin(cause) : error;
}

const CRASHES = [TypeError, RangeError, ReferenceError];

/** Whether an error points to a bug in the client: its user cannot act on it.
 *
 * `fetch` reports a failed connection as a `TypeError` with a cause, which is no bug. */
function isCrash(error) {
  if (!(error instanceof Error)) return false;
  const first = origin(error);
  return first.cause === undefined && CRASHES.some((kind) => first instanceof kind);
}

/** The innermost frame outside of Node's own code, as `FILE:LINE in FUNCTION`; "" if unknown. */
function raisedAt(error) {
  const frames = String(error.stack ?? "")
    .split("\n")
    .map((line) => FRAME.exec(line))
    .filter((found) => found !== null && !found[2].startsWith("<"));
  const own = frames.find(([, , file]) => !file.startsWith("node:"));
  const found = own ?? frames[0];
  if (found === undefined) return "";
  const [, name, file, line] = found;
  return `${short(file)}:${line} in ${name ?? "<top level>"}`;
}

const FRAME = /^\s+at (?:(?:async )?(.+?) \()?(?:async )?(\S+?):(\d+):\d+\)?$/;

/** The path inside of the package or of the working directory. */
function short(file) {
  const full = file.startsWith("file:") ? fileURLToPath(file) : file;
  if (full.startsWith("node:")) return full;
  const marker = `${path.sep}node_modules${path.sep}`;
  const at = full.lastIndexOf(marker);
  const found = at >= 0 ? full.slice(at + marker.length) : path.relative(process.cwd(), full);
  return found.split(path.sep).join("/");
}
