// A server process that ends when this process ends, in whatever way that happens.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { MockllmError } from "./errors.js";

const FIRST_LINE = /^mockllm listening on (\S+)$/;
const KEPT = 50; // lines of output that an error shows

// Ends the server when its input ends without a word: Node has ended, perhaps by SIGKILL.
const WATCH = 'trap "" INT HUP; if read -r word; then exit 0; fi; kill -TERM "$1" 2>/dev/null';

export class ServerProcess {
  #child;
  #watch;
  #lines = [];
  #log;
  #ended;
  #kill = () => this.#child.kill();

  /** `command` is its words; `log` gets each line of its output. */
  constructor(command, { cwd, env, log }) {
    this.#log = log;
    const [file, ...words] = command;
    this.command = command.join(" ");
    const detached = process.platform !== "win32"; // Ctrl-C reaches Node, and Node ends the server
    const stdio = ["ignore", "pipe", "pipe"];
    this.#child = spawn(file, words, { cwd, env, stdio, detached, windowsHide: true });
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve(`cannot be run: ${error.message}`));
      this.#child.once("close", (code, signal) => resolve(`ended with ${signal ?? code}`));
    });
    this.#ended.then(() => this.#release());
    process.once("exit", this.#kill);
    if (detached && this.#child.pid) this.#startWatch();
  }

  #startWatch() {
    const stdio = ["pipe", "ignore", "ignore"];
    const words = ["-c", WATCH, "sh", String(this.#child.pid)];
    this.#watch = spawn("/bin/sh", words, { stdio, detached: true });
    this.#watch.on("error", () => {}); // without a shell, the handler of "exit" is left
    this.#watch.stdin.on("error", () => {});
    this.#watch.unref();
    this.#watch.stdin.unref();
  }

  #release() {
    process.removeListener("exit", this.#kill);
    this.#watch?.stdin.end("done\n");
  }

  /** The URL in the first line of its output.
   *
   * Throws a `MockllmError` if it ends before, or after `timeout` milliseconds. */
  async url(timeout) {
    const first = new Promise((resolve) => {
      for (const stream of [this.#child.stdout, this.#child.stderr]) {
        createInterface({ input: stream }).on("line", (line) => {
          this.#keep(line);
          const found = FIRST_LINE.exec(line);
          if (found) resolve({ url: found[1] });
        });
      }
    });
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => resolve({ reason: `printed no address in ${timeout} ms` }), timeout);
    });
    const { url, reason } = await Promise.race([
      first,
      late,
      this.#ended.then((end) => ({ reason: end })),
    ]);
    clearTimeout(timer);
    if (!url) throw await this.#failure(reason);
    this.#hold("unref"); // the process may end while the server runs, and ends it then
    return url;
  }

  #keep(line) {
    this.#lines = [...this.#lines, line].slice(-KEPT);
    this.#log?.(line);
  }

  async #failure(reason) {
    await this.stop();
    const output = this.#lines.map((line) => `  ${line}`);
    const hint = output.some((line) => line.includes("No such command"))
      ? ["Is this the package mockllm-harness? The package `mockllm` on PyPI is another project."]
      : [];
    return new MockllmError([`\`${this.command}\` ${reason}.`, ...output, ...hint].join("\n"));
  }

  /** Whether this process stays alive as long as the server runs. */
  #hold(how) {
    for (const one of [this.#child, this.#child.stdout, this.#child.stderr]) one?.[how]();
  }

  /** Ends the server, and waits until it has ended. */
  async stop() {
    this.#hold("ref");
    this.#child.kill();
    await this.#ended;
  }
}

/** The output of a command that ran to its end: `{code, stdout, stderr}`. */
export async function run(command, { cwd, env }) {
  const [file, ...words] = command;
  const child = spawn(file, words, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) {
    child[name].setEncoding("utf8").on("data", (text) => (texts[name] += text));
  }
  const kill = () => child.kill();
  process.once("exit", kill);
  try {
    const [code, signal] = await once(child, "close");
    return { code: code ?? signal, ...texts };
  } catch (error) {
    throw new MockllmError(`\`${command.join(" ")}\` cannot be run: ${error.message}`);
  } finally {
    process.removeListener("exit", kill);
  }
}
