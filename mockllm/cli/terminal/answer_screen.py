"""Draws an answer while it arrives: a lane for each part, growing with its fragments.

`Board` knows what has arrived. `Screen` draws it again in place on a terminal, and prints the lanes
that changed, a line each, everywhere else.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TextIO

import click

from mockllm.core import events as ev

_LABELS = {ev.TextDelta: "text", ev.ReasoningDelta: "reasoning", ev.RefusalDelta: "refusal"}
_MOST_TICKS = 40


@dataclass(slots=True)
class Lane:
    """One part: `fresh` is how many characters of `text` the last fragment brought."""

    label: str
    name: str = ""
    text: str = ""
    fresh: int = 0
    done: bool = False


@dataclass(slots=True)
class Board:
    """All that has arrived of one answer; `latest` is the data of its last frame."""

    lanes: dict[int, Lane] = field(default_factory=dict)
    chunks: int = 0
    size: int = 0
    latest: str = ""

    def frame(self, data: str, events: list[ev.Event]) -> list[Lane]:
        """Adds the events of one frame; returns the lanes that it changed."""
        self.chunks += 1
        self.size += len(data.encode())
        self.latest = data
        for lane in self.lanes.values():
            lane.fresh = 0
        changed = map(self._event, events)
        return list({id(lane): lane for lane in changed if lane is not None}.values())

    def _event(self, event: ev.Event) -> Lane | None:
        match event:
            case ev.ToolStart(part=part, id=id, name=name):
                lane = self.lanes[part] = Lane(id, name)
                return lane
            case ev.TextDelta() | ev.ReasoningDelta() | ev.RefusalDelta() | ev.ToolArgs():
                lane = self.lanes.setdefault(event.part, Lane(_LABELS.get(type(event), "")))
                lane.text += event.text
                lane.fresh += len(event.text)
                return lane if event.text else None
            case ev.Replacement(part=part, text=text) if part in self.lanes:
                self.lanes[part].text = text
                return self.lanes[part]
            case ev.PartEnd(part=part) if part in self.lanes:
                self.lanes[part].done = True
                return self.lanes[part]
        return None


def _can_draw(stream: TextIO) -> bool:
    try:
        "▪✓▏".encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _cells(board: Board, lane: Lane) -> tuple[str, str]:
    label = max(len(other.label) for other in board.lanes.values())
    name = max(len(other.name) for other in board.lanes.values())
    return f"{lane.label:<{label}}", f"{lane.name:<{name}}"


def _tally(board: Board, at: float) -> str:
    return f"{board.chunks} events, {board.size:,} bytes, {at:.2f} s"


class Screen:
    """Where a demonstration is drawn; times are in seconds since the request.

    Args:
        redraws: whether lanes grow in place, which needs a terminal; by default where the output
            is one. Otherwise each change is a line.
    """

    def __init__(self, stream: TextIO, *, redraws: bool | None = None) -> None:
        self._stream = stream
        self._can_draw = _can_draw(stream)
        self._redraws = stream.isatty() and self._can_draw if redraws is None else redraws
        self._drawn = 0

    def line(self, line: str = "", *, bold: bool = False) -> None:
        self._drawn = 0
        styled = click.style(line, bold=True) if bold and self._redraws else line
        encoding = self._stream.encoding or "utf-8"
        self._write(styled.encode(encoding, "backslashreplace").decode(encoding) + "\n")

    def update(self, board: Board, changed: list[Lane], at: float) -> None:
        if self._redraws:
            dim = click.style(_cut(f"  {_telling(board.latest)}", _columns()), dim=True)
            self._draw([*self._block(board, at), dim])
            return
        for lane in changed:
            label, name = _cells(board, lane)
            cells = (f"{at:6.2f} s", label, *([name] if name.strip() else []), lane.text)
            tick = (" ✓" if self._can_draw else " ok") * lane.done
            self.line(("  " + "  ".join(cells)).rstrip() + tick)

    def end(self, board: Board, at: float) -> None:
        if not self._redraws:
            self.line(f"            {_tally(board, at)}")
            return
        for lane in board.lanes.values():
            lane.fresh = 0
        self._draw([*self._block(board, at), ""])
        self._write("\x1b[1F")

    def _block(self, board: Board, at: float) -> list[str]:
        ticks = click.style("▪" * min(board.chunks, _MOST_TICKS), fg="blue")
        lanes = [self._lane(board, lane) for lane in board.lanes.values()]
        return [f"  {ticks} {click.style(_tally(board, at), dim=True)}", *lanes]

    def _lane(self, board: Board, lane: Lane) -> str:
        label, name = _cells(board, lane)
        head = f"  {label}  " + (f"{name}  " if name.strip() else "")
        room = max(10, _columns() - len(head) - 3)
        text = lane.text if len(lane.text) <= room else "…" + lane.text[1 - room :]
        old, new = (text[: -lane.fresh], text[-lane.fresh :]) if lane.fresh else (text, "")
        end = click.style(" ✓", fg="green", bold=True) if lane.done else click.style("▏", dim=True)
        bar = click.style("  ▏ ", fg="cyan")
        fresh = click.style(new, fg="yellow", bold=True) if new else ""
        return f"{bar}{click.style(head[2:], fg='cyan')}{old}{fresh}{end}"

    def _draw(self, lines: list[str]) -> None:
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        self._write(up + "".join(f"{line}\x1b[K\n" for line in lines))
        self._drawn = len(lines)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _telling(data: str) -> str:
    """A frame's data from where it differs from the others."""
    at = data.find('"delta"')
    return f"…{data[at:]}" if at > 0 else data


def _cut(text: str, width: int) -> str:
    return text if len(text) < width else f"{text[: max(0, width - 2)]}…"
