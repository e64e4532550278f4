// The errors of the package:
//
//   MockllmError           the server cannot be started or used; the message has what to do next
//   AssertionError         (of node:assert, so that test runners show it as a failed assertion)
//   ├── VerificationError  a session whose verdict is not good
//   └── ConformanceError   a client that gets streams wrong, or that was not judged

import { AssertionError } from "node:assert";

/** The server cannot be started or used. */
export class MockllmError extends Error {}
MockllmError.prototype.name = "MockllmError";

/** A session whose verdict is not good; `verification` is the verdict as the server sent it. */
export class VerificationError extends AssertionError {
  constructor(message, verification, from) {
    super({ message, stackStartFn: from });
    this.name = "VerificationError";
    this.verification = verification;
  }
}

/** A client that gets streams wrong, or that was not judged; `results` has every case. */
export class ConformanceError extends AssertionError {
  constructor(message, results, from) {
    super({ message, stackStartFn: from });
    this.name = "ConformanceError";
    this.results = results;
  }
}

/** Refuses options that do not exist: a misspelt one would have no effect otherwise. */
export function checkOptions(where, options, known) {
  if (options === null || typeof options !== "object" || Array.isArray(options)) {
    throw new MockllmError(`${where} takes an object with options, got ${JSON.stringify(options)}`);
  }
  const unknown = Object.keys(options).filter((name) => !known.includes(name));
  if (unknown.length) {
    throw new MockllmError(
      `${where} has no option ${unknown.map((name) => `'${name}'`).join(", ")}; ` +
        `there are: ${known.join(", ")}`,
    );
  }
}
