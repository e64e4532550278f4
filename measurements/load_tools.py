"""Load-test tools, run against a server of ours: what each one reports, and what the server planned
and delivered.

`make load-ready` installs Locust and AIPerf, `make .venv-load-guidellm/.installed` GuideLLM.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from measurements.entries import ROOT
from mockllm.core.record import record

SCENARIOS = ROOT / "examples" / "load" / "scenarios.yaml"
LOCUSTFILE = ROOT / "examples" / "load" / "locustfile.py"

_GIVE_UP = 300.0
"""For how long a tool may run, in seconds."""


@record
class Report:
    """What a tool reports, or a server: how many streams, and the medians of their times.

    Args:
        ttft: to the first event with content, in seconds.
        itl: between two such events.
    """

    streams: int
    ttft: float
    itl: float
    errors: int = 0


@record
class LoadTool:
    """A tool, in an environment of its own.

    Args:
        command: its arguments, for the URL of a server, how many streams to request, how many of
            them at the same time, and the folder for what it writes.
        read: its report, from what it wrote there, and what it printed.
        is_exact: whether it requests just that many streams; others run for some seconds.
    """

    title: str
    command: Callable[[str, int, int, Path], list[str]]
    read: Callable[[Path, str], Report]
    is_exact: bool = True

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def program(self) -> Path:
        return ROOT / f".venv-load-{self.name}" / "bin" / self.name

    @property
    def version(self) -> str:
        """As its requirements have it."""
        lines = (ROOT / "measurements" / "load" / self.name / "requirements.txt").read_text()
        return lines.partition(f"\n{self.name}==")[2].partition("\n")[0]

    def run(self, url: str, streams: int, at_once: int, folder: Path) -> Report:
        """What it reports about a server.

        Raises:
            RuntimeError: it failed; the message has what it printed.
        """
        command = [str(self.program), *self.command(url, streams, at_once, folder)]
        ended = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=_GIVE_UP,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"{self.title} failed: {ended.stdout}{ended.stderr}")
        return self.read(folder, ended.stdout)


def prompts(folder: Path, count: int) -> Path:
    """A file with so many prompts for the scenario `load-model`."""
    path = folder / "prompts.jsonl"
    path.write_text('{"text": "load model"}\n' * count)
    return path


def _tokenizer(folder: Path) -> Path:
    """A tokenizer that knows no word, for tools that load one although the server counts."""
    path = folder / "tokenizer"
    path.mkdir()
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    words = {"version": "1.0", "model": model, "added_tokens": []}
    (path / "tokenizer.json").write_text(json.dumps(words))
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return path


def _locust(url: str, streams: int, at_once: int, folder: Path) -> list[str]:
    users = ["-u", str(at_once), "-r", str(at_once), "-t", "5s", "--stop-timeout", "60"]
    return ["-f", str(LOCUSTFILE), "--headless", "--json", *users, "--host", url]


def _read_locust(folder: Path, printed: str) -> Report:
    lines = {line["name"]: line for line in json.loads(printed)}
    whole = lines["/v1/chat/completions"]
    first, between = (
        median(
            int(float(time)) / 1000
            for time, count in lines[name]["response_times"].items()
            for _ in range(count)
        )
        for name in ("first word", "between two words")
    )
    return Report(whole["num_requests"], first, between, whole["num_failures"])


def _aiperf(url: str, streams: int, at_once: int, folder: Path) -> list[str]:
    model = ["-m", "gpt-4o", "--tokenizer", f"./{_tokenizer(folder).name}"]
    asked = ["--input-file", str(prompts(folder, streams)), "--custom-dataset-type", "single_turn"]
    load = ["--request-count", str(streams), "--concurrency", str(at_once)]
    written = ["--artifact-dir", str(folder), "--ui", "none"]
    wire = ["--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    return ["profile", "-u", url, *model, *wire, *asked, *load, *written]


def _read_aiperf(folder: Path, printed: str) -> Report:
    found = json.loads((folder / "profile_export_aiperf.json").read_text())
    errors = found.get("error_request_count") or {"avg": 0}
    return Report(
        int(found["request_count"]["avg"]),
        found["time_to_first_token"]["p50"] / 1000,
        found["inter_token_latency"]["p50"] / 1000,
        int(errors["avg"]),
    )


def _guidellm(url: str, streams: int, at_once: int, folder: Path) -> list[str]:
    # It asks for /health first, which is vLLM's.
    backend = f"kind=openai_http,target={url},model=gpt-4o,validate_backend=false"
    load = ["--profile", f"kind=concurrent,streams={at_once}"]
    data = ["--data", f"kind=json_file,path={prompts(folder, streams)}"]
    written = ["--output", f"kind=json,path={folder}/report.json", "--disable-console"]
    bound = ["--constraint", f"kind=max_requests,count={streams}"]
    return ["run", "--backend", backend, *load, *bound, *data, *written]


def _read_guidellm(folder: Path, printed: str) -> Report:
    (benchmark,) = json.loads((folder / "report.json").read_text())["benchmarks"]
    metrics: Mapping[str, Any] = benchmark["metrics"]
    totals = metrics["request_totals"]
    return Report(
        totals["successful"],
        metrics["time_to_first_token_ms"]["successful"]["median"] / 1000,
        metrics["inter_token_latency_ms"]["successful"]["median"] / 1000,
        totals["errored"] + totals["incomplete"],
    )


TOOLS = (
    LoadTool("Locust", _locust, _read_locust, is_exact=False),
    LoadTool("AIPerf", _aiperf, _read_aiperf),
    LoadTool("GuideLLM", _guidellm, _read_guidellm),
)


@record
class StreamTimes:
    """When one stream was due, and when it was written: to the first event with content, and
    between two, in seconds."""

    planned: tuple[float, float]
    delivered: tuple[float, float]


def streams_of(url: str) -> list[StreamTimes]:
    """The timed streams that a server has sent whole, of its latest 1,000 requests."""
    with urllib.request.urlopen(f"{url}/_mockllm/journal") as answer:
        entries = json.load(answer)["exchanges"]
    return [
        StreamTimes(*((times[when]["ttft"], times[when]["itl"]) for when in _WHEN))
        for entry in entries
        if (times := entry["times"]) is not None and times["planned"]["itl"] is not None
    ]


_WHEN = ("planned", "delivered")


def report_of(
    streams: list[StreamTimes], when: Callable[[StreamTimes], tuple[float, float]]
) -> Report:
    """What a server reports of its streams: as planned, or as delivered."""
    first, between = zip(*map(when, streams), strict=True)
    return Report(len(streams), median(first), median(between))
