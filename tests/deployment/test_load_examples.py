"""examples/load: what the load tests expect is what the server sends."""

from __future__ import annotations

import py_compile
import re
from pathlib import Path

import pytest

from mockllm import ServerOptions, ServerThread, load
from tests.deployment.command_lines import ROOT, program, run

FOLDER = ROOT / "examples" / "load"
SCENARIOS = FOLDER / "scenarios.yaml"

# k6 brings modules of its own, and cannot be installed here. These take their place: requests are
# sent with curl, because those of k6 wait for the answer.
K6 = """
import { spawnSync } from "node:child_process";
export default {
  post(url, body, params) {
    const headers = Object.entries(params.headers).flatMap(([k, v]) => ["-H", `${k}: ${v}`]);
    const form = "\\n%{http_code} %{time_starttransfer} %{time_total}";
    const curl = ["-sS", "--noproxy", "*", "-w", form, "-d", body, ...headers, url];
    const [, text, status, first, whole] = spawnSync("curl", curl, { encoding: "utf8" })
      .stdout.match(/^([^]*)\\n(\\d+) (\\S+) (\\S+)$/);
    const waiting = first * 1000;
    return { status: +status, body: text, timings: { waiting, receiving: whole * 1000 - waiting } };
  },
};
"""
CHECKS = """
export const failed = [], seen = {};
export function check(value, checks) {
  for (const [name, holds] of Object.entries(checks)) if (!holds(value)) failed.push(name);
  return failed.length === 0;
}
export class Trend {
  constructor(name) { this.name = name; }
  add(value) { seen[this.name] = value; }
}
"""
MAIN = """
globalThis.__ENV = { GATEWAY: process.argv[2] };
const { failed, seen } = await import("./k6.mjs");
const script = await import("./stream.mjs");
script.default();
for (const name of Object.keys(script.options.thresholds))
  if (name !== "checks" && !(name in seen)) failed.push(`${name} is not measured`);
console.log(JSON.stringify(failed));
"""


@pytest.mark.slow
def test_the_script_for_k6(tmp_path: Path) -> None:
    """All its checks hold for what the server sends, and it measures what its thresholds name."""
    node = program("node")
    program("curl")
    text = (FOLDER / "stream.k6.js").read_text()
    imports = re.findall(r'from "(k6[^"]*)"', text)
    assert imports == ["k6", "k6/http", "k6/metrics"]
    for name in ("k6/http", "k6/metrics", "k6"):
        here = "./http.mjs" if name == "k6/http" else "./k6.mjs"
        text = text.replace(f'from "{name}"', f'from "{here}"')
    for file, content in {
        "http.mjs": K6,
        "k6.mjs": CHECKS,
        "main.mjs": MAIN,
        "stream.mjs": text,
    }.items():
        (tmp_path / file).write_text(content)
    with ServerThread(load([SCENARIOS]), ServerOptions(speed=0)) as server:
        assert run(node, tmp_path / "main.mjs", server.url).strip() == "[]"


def test_the_file_for_locust(tmp_path: Path) -> None:
    """It compiles; its schedule is that of the scenario."""
    file = FOLDER / "locustfile.py"
    py_compile.compile(str(file), cfile=str(tmp_path / "locustfile.pyc"), doraise=True)
    scenario = next(one for one in load([SCENARIOS]) if one.name == "load-stream")
    (part,) = scenario.turns[0].reply
    assert part.text == " ".join(map(str, range(1, 201)))
    (every,) = re.findall(r"^EVERY = ([\d.]+) ", file.read_text(), re.MULTILINE)
    assert float(every) * 1_000_000 == part.every
