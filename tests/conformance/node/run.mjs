// Asks clients that run under Node, for as long as there are questions.
//
//   node run.mjs
//
// Each line of standard input is a job: {id, ask: "FILE#FUNCTION", base_url, body, prompt, model,
// tools}. The function of that file (see `openai.mjs`) gets the job and says what the client made
// of the answer. Each line of standard output is an answer, in the order in which they are ready:
// {id, said: {text, reasoning, refusal, tool_calls: [{id, name, arguments}], finish, usage: [input,
// output, reasoning, cached], errors: [{message, crash}]}}, of which everything but `id` and
// `errors` may be missing.
//
// A thread has one job at a time, so that one whose client takes down the program it runs in is
// known; it gets that as its error, and no other job is touched.
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const AT_ONCE = 4;
const PATIENCE = 20_000; // milliseconds for one job; the clients' own timeouts are shorter

const waiting = [];
const threads = new Set();
let over = false;

class Thread {
  #job = null;
  #watchdog = null;
  #end = "it ended the program";
  #worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    stdout: true, // clients print; what they print must not get among the answers
    stderr: true,
  });

  constructor() {
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    this.#worker.on("message", ({ said, broken }) => {
      this.#done(said);
      if (broken) this.stop();
      else proceed();
    });
    this.#worker.on("error", ({ name, message }) => {
      this.#end = `${name}: ${message}`;
    });
    this.#worker.on("exit", () => {
      threads.delete(this);
      this.#done({ errors: [{ message: `the client failed: ${this.#end}`, crash: true }] });
      proceed();
    });
  }

  isIdle = () => this.#job === null;

  give(job) {
    this.#job = job;
    this.#watchdog = setTimeout(() => {
      this.#end = `it did not come to an end within ${PATIENCE / 1000} seconds`;
      this.stop();
    }, PATIENCE);
    this.#worker.postMessage(job);
  }

  stop() {
    threads.delete(this);
    void this.#worker.terminate();
  }

  #done(said) {
    clearTimeout(this.#watchdog);
    if (this.#job === null) return;
    process.stdout.write(`${JSON.stringify({ id: this.#job.id, said })}\n`);
    this.#job = null;
  }
}

/** A thread that has nothing to do; none where there are enough that have. */
function idle() {
  const found = [...threads].find((thread) => thread.isIdle());
  if (found !== undefined || threads.size === AT_ONCE) return found;
  const thread = new Thread();
  threads.add(thread);
  return thread;
}

/** Hands out what waits, and ends when there is nothing left to do. */
function proceed() {
  for (let thread; waiting.length > 0 && (thread = idle()); ) thread.give(waiting.shift());
  if (over && waiting.length === 0) {
    for (const thread of threads) if (thread.isIdle()) thread.stop();
  }
}

createInterface({ input: process.stdin, crlfDelay: Infinity })
  .on("line", (line) => {
    waiting.push(JSON.parse(line));
    proceed();
  })
  .on("close", () => {
    over = true;
    proceed();
  });
