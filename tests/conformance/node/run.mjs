// Runs clients under Node, until its input ends.
//
//   node run.mjs
//
// Each line of standard input is a job: {id, client: "FILE#FUNCTION", base_url, body, prompt, model,
// tools}. The function of that file (see `openai.mjs`) gets the job and returns the outcome of the
// client. Each line of standard output is an answer, in the order in which they are ready:
// {id, result: {text, reasoning, refusal, tool_calls: [{id, name, arguments}], finish, usage: [input,
// output, reasoning, cached], errors: [{message, crash}]}}, of which everything but `id` and
// `errors` may be missing.
//
// A thread has one job at a time. So if a client ends its thread, the job is known and gets the
// error, and no other job is affected.
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const AT_ONCE = 4;
const GIVE_UP = 120_000; // milliseconds for one job; the clients' own timeouts are shorter

const waiting = [];
const threads = new Set();
let over = false;

class Thread {
  #job = null;
  #watchdog = null;
  #end = "it ended the program";
  #worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    stdout: true, // clients print; their output must not be mixed with the answers
    stderr: true,
  });

  constructor() {
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    this.#worker.on("message", ({ result, broken }) => {
      this.#done(result);
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
      this.#end = `it did not end within ${GIVE_UP / 1000} seconds`;
      this.stop();
    }, GIVE_UP);
    this.#worker.postMessage(job);
  }

  stop() {
    threads.delete(this);
    void this.#worker.terminate();
  }

  #done(result) {
    clearTimeout(this.#watchdog);
    if (this.#job === null) return;
    process.stdout.write(`${JSON.stringify({ id: this.#job.id, result })}\n`);
    this.#job = null;
  }
}

/** An idle thread; undefined if all are busy and there are enough. */
function idle() {
  const found = [...threads].find((thread) => thread.isIdle());
  if (found !== undefined || threads.size === AT_ONCE) return found;
  const thread = new Thread();
  threads.add(thread);
  return thread;
}

/** Gives waiting jobs to idle threads, and ends when no job is left. */
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
