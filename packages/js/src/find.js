// Where the command `mockllm` is.

import { spawnSync } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import { MockllmError } from "./errors.js";

const IS_WINDOWS = process.platform === "win32";
const SCRIPTS = IS_WINDOWS ? "Scripts" : "bin";
const SUFFIX = IS_WINDOWS ? ".exe" : "";

/** The words of the command: what the caller names, else `mockllm` on PATH, in the `.venv` of this
 * folder or one above it, or as a module of the Python on PATH. */
export function findCommand(command, { cwd = process.cwd(), env = process.env } = {}) {
  if (command !== undefined) return checked(command);
  const found = onPath("mockllm", env) ?? inVirtualEnvironment(cwd);
  if (found) return [found];
  for (const name of ["python3", "python"]) {
    const python = onPath(name, env);
    if (python && isOurs(python, { cwd, env })) return [python, "-m", "mockllm"];
  }
  throw new MockllmError(
    [
      "mockllm was not found: neither on PATH, nor in .venv here or in a folder above, nor as a " +
        "module of python3.",
      "  Install it (Python 3.11 or newer):  pip install mockllm-harness",
      "  or name it:                         start({ command: '/path/to/mockllm' })",
      "  or run it from PyPI each time:      start({ command: ['uvx', '--from', 'mockllm-harness', 'mockllm'] })",
      "    or, with pipx:                    ['pipx', 'run', '--spec', 'mockllm-harness', 'mockllm']",
      "  or use a server that runs already:  start({ url: 'http://127.0.0.1:8080' })",
      "  The package `mockllm` on PyPI is another project.",
    ].join("\n"),
  );
}

function checked(command) {
  const words = typeof command === "string" ? [command] : command;
  const isText = (one) => typeof one === "string";
  if (Array.isArray(words) && words[0] && words.every(isText)) return [...words];
  throw new MockllmError(
    `command must be the path of mockllm, or a list of words, got ${JSON.stringify(command)}`,
  );
}

function onPath(name, env) {
  const folders = (env.PATH ?? "").split(path.delimiter).filter(Boolean);
  return folders.map((folder) => path.join(folder, name + SUFFIX)).find(isExecutable);
}

function inVirtualEnvironment(cwd) {
  for (let folder = path.resolve(cwd); ; folder = path.dirname(folder)) {
    const file = path.join(folder, ".venv", SCRIPTS, `mockllm${SUFFIX}`);
    if (isExecutable(file)) return file;
    if (folder === path.dirname(folder)) return undefined;
  }
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Whether a Python has this project, and not the other one of the same import name. */
function isOurs(python, options) {
  const code = "import mockllm; print(mockllm.__distribution__)";
  const done = spawnSync(python, ["-c", code], { ...options, encoding: "utf8" });
  return done.status === 0 && done.stdout.trim() === "mockllm-harness";
}
