"""Measures the load-test tools that are installed, and writes the table and the picture of
docs/load-tests.md.

python -m measurements.measure_load [--page]

With `--page` nothing is measured again: both are made of measurements/load/results.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from measurements.entries import ROOT
from measurements.fault_page import with_table
from measurements.load_tools import SCENARIOS, TOOLS, LoadTool, StreamTimes, report_of, streams_of
from mockllm.core.errors import UsageError
from tools.served import served

LOAD_RESULTS = ROOT / "measurements" / "load" / "results.json"
PAGE = ROOT / "docs" / "load-tests.md"
PICTURE = ROOT / "docs" / "images" / "load-planned-delivered.svg"

FIXED = "ttft=300ms itl=20ms"
DRAWN = "ttft=lognormal(300ms, p99=1s) itl=normal(20ms, 5ms)"
_STREAMS, _AT_ONCE = 100, 10
_DRAWN_STREAMS, _DRAWN_AT_ONCE = 200, 50


def measure() -> dict[str, Any]:
    """What the tools that are here report of a server, and what that server says.

    Raises:
        UsageError: AIPerf is not here.
    """
    present = [tool for tool in TOOLS if tool.program.exists()]
    named = {tool.name: tool for tool in present}
    if "aiperf" not in named:
        raise UsageError("AIPerf is not here; `make load-ready` installs it")
    _, drawn = _streams(named["aiperf"], DRAWN, _DRAWN_STREAMS, _DRAWN_AT_ONCE)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "latency": FIXED,
        "at_once": _AT_ONCE,
        "tools": [_measured(tool) for tool in present],
        "drawn": {
            "latency": DRAWN,
            "at_once": _DRAWN_AT_ONCE,
            "streams": [[*one.planned, *one.delivered] for one in drawn],
        },
    }


def _streams(
    tool: LoadTool, latency: str, streams: int, at_once: int
) -> tuple[Any, Sequence[StreamTimes]]:
    arguments = (str(SCENARIOS), "--latency", latency)
    with tempfile.TemporaryDirectory() as folder, served(*arguments) as url:
        return tool.run(url, streams, at_once, Path(folder)), streams_of(url)


def _measured(tool: LoadTool) -> dict[str, Any]:
    print(f"{tool.title} {tool.version}", file=sys.stderr)
    reported, streams = _streams(tool, FIXED, _STREAMS, _AT_ONCE)
    return {
        "title": tool.title,
        "version": tool.version,
        "reported": asdict(reported),
        "planned": asdict(report_of(streams, lambda one: one.planned)),
        "delivered": asdict(report_of(streams, lambda one: one.delivered)),
    }


def table(results: Mapping[str, Any]) -> str:
    """What each tool reports, beside what the server planned and delivered."""
    return "\n".join(_lines(results))


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    times = [f"{time}: {of}" for time in ("TTFT", "ITL") for of in _OF]
    yield f"| tool | streams | errors | {' | '.join(times)} |"
    yield "|---" * 9 + "|"
    for tool in results["tools"]:
        reported = tool["reported"]
        cells = [f"{tool['title']} {tool['version']}", reported["streams"], reported["errors"]]
        for time in ("ttft", "itl"):
            cells += [f"{tool[of][time] * 1000:.1f}" for of in _OF]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield (
        f"Medians in milliseconds, measured on {results['date']} with {results['at_once']} streams "
        f"at the same time; server and tool on one machine with {results['cores']} cores."
    )


_OF = ("planned", "delivered", "reported")

_SIDE, _LEFT, _TOP = 300, 70, 40


def picture(results: Mapping[str, Any]) -> str:
    """Each stream as a point, planned against delivered, as SVG."""
    streams = results["drawn"]["streams"]
    first = _panel("time to first token", [(one[0], one[2]) for one in streams])
    between = _panel("time between tokens (mean of a stream)", [(o[1], o[3]) for o in streams])
    across = _LEFT + _SIDE + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * across}" height="{_SIDE + 100}" '
        f'viewBox="0 0 {2 * across} {_SIDE + 100}" role="img" aria-labelledby="title">\n'
        f'<title id="title">Planned against delivered times of {len(streams)} streams</title>\n'
        f"<style>{_STYLE}</style>\n"
        f'{first}<g transform="translate({across} 0)">\n{between}</g>\n</svg>\n'
    )


_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}.t{font-weight:600}"
    "path{stroke:#8b949e;fill:none}circle{fill:#0969da;fill-opacity:.5}"
    "@media (prefers-color-scheme:dark){text{fill:#b1bac4}circle{fill:#58a6ff}}"
)


def _panel(title: str, points: Sequence[tuple[float, float]]) -> str:
    """Points between planned (across) and delivered (up), both in milliseconds, on one scale."""
    values = [value * 1000 for point in points for value in point]
    low, high, step = _scale(min(values), max(values))
    unit = _SIDE / (high - low)
    bottom, right = _TOP + _SIDE, _LEFT + _SIDE
    lines = [
        f'<text class="t" x="{_LEFT}" y="{_TOP - 16}">{title}</text>',
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}"/>',
        f'<path stroke-dasharray="4 4" d="M{_LEFT} {bottom}L{right} {_TOP}"/>',
        f'<text x="{_LEFT + _SIDE / 2}" y="{bottom + 40}" text-anchor="middle">planned, ms</text>',
        f'<text transform="translate({_LEFT - 48} {_TOP + _SIDE / 2}) rotate(-90)" '
        'text-anchor="middle">delivered, ms</text>',
    ]
    for number in range(round((high - low) / step) + 1):
        value, at = low + number * step, number * step * unit
        lines.append(
            f'<text x="{_LEFT + at:.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>'
            f'<text x="{_LEFT - 6}" y="{bottom - at + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    lines += [
        f'<circle cx="{_LEFT + (planned * 1000 - low) * unit:.1f}" '
        f'cy="{bottom - (delivered * 1000 - low) * unit:.1f}" r="2.5"/>'
        for planned, delivered in points
    ]
    return "".join(f"{line}\n" for line in lines)


def _scale(least: float, most: float) -> tuple[float, float, float]:
    """The first and the last mark of an axis, and the step between two; some six in all."""
    steps = (one * ten for ten in (0.1, 1, 10, 100, 1000) for one in (1, 2, 5))
    step = next((step for step in steps if (most - least) / step <= 6), 10_000.0)
    return least // step * step, -(-most // step) * step, step


def main(arguments: Sequence[str]) -> None:
    """Measures, and writes table and picture."""
    if "--page" not in arguments:
        LOAD_RESULTS.write_text(json.dumps(measure()) + "\n", "utf-8")
    results = json.loads(LOAD_RESULTS.read_text("utf-8"))
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), table(results)), "utf-8")
    PICTURE.write_text(picture(results), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
