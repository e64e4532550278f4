"""Builds what a release publishes and tries it as its users get it: `make release-check`.

    python -m tools.release_check [--tag v0.1.0]

Wheel, sdist and npm package go to dist/. The versions agree, `twine check` accepts the README, and
the ten lines of README pass in a new environment that has only the wheel and what README installs.
Where uvx and pipx are, they run the command from the wheel. Nothing is published.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def main() -> int:
    """Builds and tries a release."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tag", default="", help="the tag of the release, such as v0.1.0")
    tag = parser.parse_args().tag
    version = _version()
    if problems := version_problems(version, tag):
        print("\n".join(problems))
        return 1
    wheel = _build(version)
    with TemporaryDirectory() as folder:
        _first_ten_lines(wheel, Path(folder))
    _runners(wheel)
    _size(wheel)
    print(f"release {version} is ready in {DIST.relative_to(ROOT)}/; nothing was published")
    return 0


def version_problems(version: str, tag: str) -> list[str]:
    """What does not agree with the version: npm package, CHANGELOG and the tag, if there is one."""
    package = json.loads((ROOT / "packages/js/package.json").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    problems = []
    if package["version"] != version:
        problems.append(f"packages/js/package.json has {package['version']}, mockllm {version}")
    if tag and tag != f"v{version}":
        problems.append(f"the tag is {tag}, the version {version}")
    if tag and not re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        problems.append(f"CHANGELOG.md has no section '## {version}'; rename 'Unreleased'")
    return problems


def _version() -> str:
    text = (ROOT / "mockllm/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)
    assert found is not None
    return found[1]


def _build(version: str) -> Path:
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    assert f"-{version}" in wheel.name, wheel
    _run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    if shutil.which("npm"):
        _run("npm", "pack", "--silent", "--pack-destination", DIST, ROOT / "packages/js")
    else:
        print("npm is not here: the package for JavaScript was not built")
    return wheel


def _first_ten_lines(wheel: Path, folder: Path) -> None:
    """What README's first screen promises, in an environment without the checkout."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    _run(programs / "python", "-m", "pip", "install", "--quiet", wheel, "openai", "pytest")
    (folder / "test_weather.py").write_text(block[1], encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in (
        (programs / "python", "-m", "pytest", "-q", "test_weather.py"),
        (programs / "mockllm", "demo", "--speed", "0"),
        (programs / "mockllm", "docs", "scenarios"),
        (programs / "mockllm", "init", "scenarios"),
        (programs / "mockllm", "validate", "scenarios"),
    ):
        _run(*command, cwd=folder, env=environment)


def _runners(wheel: Path) -> None:
    """The commands of README that install nothing."""
    for program, option in (("uvx", "--from"), ("pipx", "--spec")):
        if shutil.which(program) is None:
            print(f"{program} is not here: it was not tried")
            continue
        run = ("run",) if program == "pipx" else ()
        _run(program, *run, option, wheel, "mockllm", "demo", "--speed", "0")


def _size(wheel: Path) -> None:
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")


def _run(*command: str | Path, **options: object) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    print(f"ok: {Path(words[0]).name} {' '.join(words[1:])[:100]}")


if __name__ == "__main__":
    sys.exit(main())
