import { defineConfig } from "vitest/config";

// Starting the server, and `check`, may take longer than vitest's 5 seconds on a busy machine.
export default defineConfig({ test: { testTimeout: 120_000, hookTimeout: 120_000 } });
