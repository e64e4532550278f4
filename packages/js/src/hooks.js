// A session for each test, with the hooks of a test runner: what vitest.js and jest.js share.

import { checkOptions, MockllmError } from "./errors.js";
import { start, START_OPTIONS } from "./start.js";

const LIMIT = 60_000; // of `start()`, where no other is given
const SPARE = 30_000; // what else a hook may take

/** Registers the hooks: a server for the file, a session for each test, its verdict at the end. */
export function mockllmWith({ beforeAll, beforeEach, afterEach, afterAll }, options = {}) {
  checkOptions("mockllm()", options, [...START_OPTIONS, "verify"]);
  const { verify: rules = {}, ...starting } = options;
  const limit = (options.timeout ?? LIMIT) + SPARE;
  let server;
  let test; // the sessions of the test that runs, its last one, and those that are to be judged

  const running = () => {
    if (test?.last) return test;
    throw new MockllmError(
      "mockllm() has a session only while a test runs: use it inside of a test or of `beforeEach`, " +
        "and not in concurrent tests, which need a session of `start()` each",
    );
  };

  /** The session of the test, which has asked where to send requests. */
  const used = () => {
    const { last, unjudged } = running();
    unjudged.add(last);
    return last;
  };

  const add = async (to, sessionOptions) => {
    to.last = await server.session(sessionOptions);
    to.sessions.push(to.last);
    return to.last;
  };

  beforeAll(async () => {
    server = await start(starting);
  }, limit);

  beforeEach(async () => {
    if (test) {
      throw new MockllmError(
        "two tests run at once, and mockllm() has one session: " +
          "in concurrent tests, use `start()` and a session each",
      );
    }
    test = { sessions: [], last: undefined, unjudged: new Set() };
    await add(test);
  }, limit);

  afterEach(async () => {
    const { sessions = [], unjudged } = test ?? {};
    test = undefined;
    for (const session of sessions) {
      if (unjudged.has(session)) await session.verify(rules); // a bad one is kept, to be looked at
      await session.delete();
    }
  }, limit);

  afterAll(() => server?.stop(), limit);

  return {
    get url() {
      return used().url;
    },
    get baseUrls() {
      return used().baseUrls;
    },
    get env() {
      return used().env;
    },
    get headers() {
      return used().headers;
    },
    mcpUrl(name) {
      return used().mcpUrl(name);
    },
    mcpCommand(name) {
      return used().mcpCommand(name);
    },
    async session(sessionOptions) {
      await add(running(), sessionOptions);
      return used();
    },
    agent(name) {
      return used().agent(name);
    },
    async verify(verifyOptions = {}) {
      const { last, unjudged } = running();
      unjudged.delete(last);
      return last.verify({ ...rules, ...verifyOptions });
    },
    async release(gate) {
      return running().last.release(gate);
    },
    async waitForGate(gate, waitOptions) {
      return running().last.waitForGate(gate, waitOptions);
    },
    async waitUntilOver(waitOptions) {
      return running().last.waitUntilOver(waitOptions);
    },
    async journal() {
      return running().last.journal();
    },
  };
}
