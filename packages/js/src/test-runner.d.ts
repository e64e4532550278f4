import type { MockllmOptions, TestMock } from "./index.js";

export type { MockllmOptions, TestMock };

/** Starts a server before the tests of a file, or uses one that runs already; gives each test a
 * session, and verifies it after the test. Call it once, at the top of the file or in `describe`. */
export function mockllm(options?: MockllmOptions): TestMock;
