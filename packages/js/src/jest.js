import { MockllmError } from "./errors.js";
import { mockllmWith } from "./hooks.js";

/** A server for the test file, and a session for each test. */
export function mockllm(options) {
  // Jest's globals, because `@jest/globals` is no package that a project installs itself.
  const { afterAll, afterEach, beforeAll, beforeEach } = globalThis;
  if (beforeAll) return mockllmWith({ beforeAll, beforeEach, afterEach, afterAll }, options);
  throw new MockllmError(
    "mockllm() of mockllm-harness/jest found no hooks: call it in a test file that Jest runs, " +
      "with `injectGlobals`, which is on unless the configuration turns it off",
  );
}
