import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { mockllmWith } from "./hooks.js";

/** A server for the test file, and a session for each test. */
export const mockllm = (options) =>
  mockllmWith({ beforeAll, beforeEach, afterEach, afterAll }, options);
