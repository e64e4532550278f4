"""Writes docs/images/demo.svg, which shows `mockllm demo` in a terminal.

    python -m tools.demo_picture

The demonstration runs on the times of the scenario, without a server and without a clock, so the
same code gives the same bytes. The picture is an animation in CSS that begins with its last frame;
where animations are not played, that frame stays. An image cannot load fonts, so each run of text
has a fixed width.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from io import StringIO
from itertools import count
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from mockllm.cli.demo import Screen, demo_scenario, play
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.route_matching import target_of

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"

_SHOWN = ("chat", "anthropic")
_COLUMNS = 80
_SLOWER = 3  # than the demonstration; the picture shows this number
_PAUSE = 0.9  # seconds before each request
_REST = 6.0  # seconds for which the last frame stays

# Pixels: of a character, a line, the letters, the margins and the bar on top.
_CELL, _LINE, _LETTER, _LEFT, _TOP, _BAR = 8.4, 20, 14, 24, 24, 34

_STYLES = {(): "", ("1",): "B", ("2",): "d", ("33", "1"): "y", ("34",): "b", ("36",): "c"}
"""The classes for the styles of `answer_screen` of the command line by SGR codes (ECMA-48)."""

_SHEET = f"""\
text{{font:{_LETTER}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
fill:#d1d7e0;white-space:pre}}
.B{{font-weight:700;fill:#fff}}.d{{fill:#8b949e}}.c{{fill:#56d4dd}}.g{{fill:#3fb950}}
.y{{font-weight:700;fill:#e3b341}}rect.b{{fill:#58a6ff}}
path{{fill:none;stroke:#3fb950;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}}"""


class Run(NamedTuple):
    """Text of one style, from a column on."""

    column: int
    text: str
    style: str


class Shown(NamedTuple):
    """What a line showed, from when to when in seconds; to the end where `until` is None."""

    line: int
    run: Run
    since: float
    until: float | None


class Terminal(StringIO):
    """A terminal that records what each line shows. `now` is in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._cursor = 0
        self._lines: list[dict[Run, float]] = []
        self._replaced: list[Shown] = []

    def write(self, text: str) -> int:
        """Draws whole lines, after a move upwards where the text begins with one."""
        up = re.match(r"\x1b\[(\d+)F", text)
        if up is not None:
            self._cursor -= int(up[1])
        *lines, rest = text[up.end() if up else 0 :].split("\n")
        assert rest == "", f"the screen draws whole lines, not {text!r}"
        for line in lines:
            self._draw(line.removesuffix("\x1b[K"))
        return len(text)

    def _draw(self, text: str) -> None:
        if self._cursor == len(self._lines):
            self._lines.append({})
        old = self._lines[self._cursor]
        self._lines[self._cursor] = {run: old.pop(run, self.now) for run in _runs(text)}
        seen = [item for item in old.items() if item[1] != self.now]
        self._replaced += [Shown(self._cursor, run, since, self.now) for run, since in seen]
        self._cursor += 1

    def shown(self) -> list[Shown]:
        """All that was ever shown."""
        last = [
            Shown(line, run, since, None)
            for line, runs in enumerate(self._lines)
            for run, since in runs.items()
        ]
        return self._replaced + last

    def text(self) -> list[str]:
        """The lines of the last frame, without blanks between styles."""
        return ["".join(run.text for run in runs) for runs in self._lines]


def _runs(line: str) -> Iterator[Run]:
    """A line's text by style; each mark is a run of its own, and blanks around text are left
    out."""
    column = 0
    codes: tuple[str, ...] = ()
    for part in re.findall(r"\x1b\[[\d;]*m|[▪▏✓]| *[^\x1b▪▏✓]*[^\x1b▪▏✓ ]| +", line):
        if part.startswith("\x1b"):
            code = part[2:-1]
            codes = () if code == "0" else (*codes, code)
            continue
        text = part.lstrip(" ")
        if text:
            style = "g" if text == "✓" else _STYLES[codes]
            yield Run(column + len(part) - len(text), text, style)
        column += len(part)


def _recorded() -> Terminal:
    """The whole demonstration."""
    terminal, player = Terminal(), Player([demo_scenario()])
    session = Session("demo")

    def post(protocol: WireProtocol, path: str, body: Json) -> Iterator[tuple[float, bytes]]:
        sent = json.dumps(body).encode()
        target = target_of(protocol, *path.partition("?")[::2])
        assert target is not None, f"no route of {protocol.name} matches {path}"
        slower = _SLOWER if protocol.name in _SHOWN else 0
        terminal.now += _PAUSE if slower else 0
        began = terminal.now
        for piece in player.play(ApiCall(protocol, target, {}, sent, session)).answer.chunks:
            at = piece.at / 1_000_000
            terminal.now = began + at * slower
            yield at, piece.data

    play(demo_scenario(), PROTOCOLS, "http://127.0.0.1:8080", post, Screen(terminal, redraws=True))
    terminal.now += _PAUSE
    return terminal


def picture() -> str:
    """The SVG."""
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(_COLUMNS)
    try:
        terminal = _recorded()
    finally:
        del os.environ["COLUMNS"]
        if columns is not None:
            os.environ["COLUMNS"] = columns
    shown = _laid_out(terminal)
    return _svg(shown, terminal.now + _REST)


def _laid_out(terminal: Terminal) -> list[Shown]:
    """What is shown, in the lines of the picture: the head, the APIs of `_SHOWN`, the result."""
    lines = terminal.text()
    titles = [PROTOCOLS.addresses[name].title for name in _SHOWN]
    head, *blocks = _blocks(lines)
    rows: dict[int, int] = {}
    free = count(1)
    for block in [head, *[one for one in blocks if lines[one[0]].startswith(tuple(titles))]]:
        rows |= {line: next(free) for line in block}
        next(free)
    others = sum(bool(protocol.client.tool_fields) for protocol in PROTOCOLS.values()) - len(_SHOWN)
    omitted = Run(0, f"[ then the same over {others} other APIs ]", "d")
    own = [
        Shown(0, Run(0, "$", "g"), 0, None),
        Shown(0, Run(2, "mockllm demo", "B"), 0, None),
        Shown(next(free), omitted, terminal.now - _PAUSE, None),
    ]
    (result,) = (one[0] for one in blocks if " wire formats, " in lines[one[0]])
    rows[result] = next(free)
    return own + [one._replace(line=rows[one.line]) for one in terminal.shown() if one.line in rows]


def _blocks(lines: list[str]) -> list[list[int]]:
    """The numbers of the lines, by paragraph."""
    blocks: list[list[int]] = [[]]
    for number, line in enumerate(lines):
        if line:
            blocks[-1].append(number)
        elif blocks[-1]:
            blocks.append([])
    return blocks


def _svg(shown: list[Shown], total: float) -> str:
    groups: dict[tuple[float, float | None], list[str]] = defaultdict(list)
    for one in sorted(shown, key=lambda one: (one.line, one.run.column, one.since)):
        groups[one.since, one.until].append(_element(one.line, one.run))
    frames, body = [], []
    for number, ((since, until), elements) in enumerate(sorted(groups.items(), key=_order)):
        if since == 0 and until is None:
            body.append(f"<g>{''.join(elements)}</g>")
            continue
        frames.append(_keyframes(number, since, until, total))
        hidden = "" if until is None else ' opacity="0"'
        body.append(f'<g class="k{number}"{hidden}>{"".join(elements)}</g>')
    return _page(max(one.line for one in shown) + 1, "\n".join(frames), "\n".join(body))


def _order(group: tuple[tuple[float, float | None], list[str]]) -> tuple[float, float]:
    (since, until), _ = group
    return since, float("inf") if until is None else until


def _keyframes(number: int, since: float, until: float | None, total: float) -> str:
    """An animation in steps: the last frame for a while, then everything at its time."""
    begin = f"{(_REST + since) / total:.3%}{{opacity:1}}"
    if until is None:
        begin, end = f"{_REST / total:.3%}{{opacity:0}}{begin}", ""
    else:
        begin, end = f"0%{{opacity:0}}{begin}", f"{(_REST + until) / total:.3%}{{opacity:0}}"
    rule = f".k{number}{{animation:k{number} {total:.2f}s step-end infinite}}"
    return f"@keyframes k{number}{{{begin}{end}}}{rule}"


def _element(line: int, run: Run) -> str:
    x, y = _LEFT + run.column * _CELL, _BAR + _TOP + line * _LINE
    name = f' class="{run.style}"' if run.style else ""
    match run.text:
        case "▪":
            return f'<rect{name} x="{x:g}" y="{y - 8:g}" width="6" height="6" rx="1"/>'
        case "▏":
            return f'<rect{name} x="{x:g}" y="{y - 14:g}" width="2" height="{_LINE - 2}"/>'
        case "✓":
            return f'<path d="M{x:g} {y - 5:g}l3 4 6-9"/>'
    width = len(run.text) * _CELL
    return f'<text{name} x="{x:g}" y="{y:g}" textLength="{width:g}">{escape(run.text)}</text>'


def _page(lines: int, frames: str, body: str) -> str:
    width = round(2 * _LEFT + _COLUMNS * _CELL)
    height = _BAR + _TOP + lines * _LINE
    note = f"shown {_SLOWER} times slower"
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" xml:space="preserve" role="img" aria-labelledby="title">
<title id="title">mockllm demo: two tool calls and an answer arrive over several APIs</title>
<style>
{_SHEET}
rect.d{{fill:#8b949e}}rect.c{{fill:#56d4dd}}
@media (prefers-reduced-motion: no-preference){{
{frames}
}}
</style>
<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="#0d1117" \
stroke="#3d444d"/>
<circle cx="20" cy="18" r="5.5" fill="#ff5f57"/><circle cx="38" cy="18" r="5.5" fill="#febc2e"/>\
<circle cx="56" cy="18" r="5.5" fill="#28c840"/>
<text class="d" x="{width - _LEFT}" y="22" text-anchor="end">{note}</text>
{body}
</svg>
"""


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
