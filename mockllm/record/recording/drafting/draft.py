"""Drafts: scenarios to write, the lines of the report about them, their names, and the files beside
them. Pure: the folder writes them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any, Literal

from mockllm.core.jsontext import compact
from mockllm.core.text import HALF_PAIR
from mockllm.play.tapes.captured import CUTS, Captured, Tape, dump_tape
from mockllm.play.tapes.recorded_turn import RecordedTurn
from mockllm.play.tapes.socket_session import SocketSession
from mockllm.play.tapes.socket_tape import dump_session
from mockllm.record.recording.drafting.conversations import Placement
from mockllm.record.redaction.placeholders import wildcards
from mockllm.scenario import model as m
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import (
    AnyPart,
    MediaSource,
    filed_values,
    map_members,
    members,
    tool_parts,
)
from mockllm.scenario.reading.media import ending
from mockllm.scenario.route_model import RouteAnswer
from mockllm.scenario.yamltext import TextFile

Outcome = Literal["neutral", "partial", "skipped"]


@dataclass(frozen=True, slots=True)
class Line:
    """The result for one exchange.

    Args:
        outcome: `neutral` (the turn in the YAML is all of the answer), `partial` (only the tape has
            all of it), `skipped` (nothing is written).
        description: which scenario and turn it became, or why it was skipped.
        turn: which of its turns, from 0.
        not_found: why its own request does not get it back from the folder; "" where it does,
            or where that was not looked at.
        lost: whether it was skipped because it could not be written.
        redacted: how many secrets of each kind were replaced, where that was counted.
        unwanted: whether it was skipped because no replay needs it.
    """

    source: str
    outcome: Outcome
    description: str
    scenario: str = ""
    turn: int | None = None
    not_found: str = ""
    lost: bool = False
    redacted: tuple[tuple[str, int], ...] = ()
    unwanted: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether a replay does not have what was recorded here."""
        return bool(self.not_found) or (self.outcome == "skipped" and not self.unwanted)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an exchange comes from; only those of a group become one conversation.

    Args:
        group: the file; "" for live traffic, which is one group with what was recorded before.
        stem: what names begin with; "" if the text of the user gives them.
        description: for people, such as `tests/cassettes/test_trip.yaml, exchange 3`.
    """

    group: str = ""
    stem: str = ""
    description: str = ""


LIVE = Origin()
"""The origin of live traffic."""


@dataclass(frozen=True, slots=True)
class DraftedTurn:
    """The draft of one exchange, or of a session: a turn without conditions on its request, and its
    tape.

    Args:
        decoded: what the tape decodes to; None for an HTTP error, and for a route.
        content: of the file that the answer of a route names; None where it names none.
    """

    spec: TurnSpec
    tape: Tape | SocketSession
    decoded: RecordedTurn | None = None
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario to write, and what its turns were recorded from.

    Args:
        scenario: None where there is nothing to write but something to report.
        recorded: the turns by the names that the scenario gives their tapes; the folder chooses
            the files.
        base: the scenario that this one replaces; None for a new one.
        stem: what the names of its files begin with; "" is the name of the scenario.
    """

    scenario: Scenario | None
    recorded: Mapping[str, DraftedTurn] = field(default_factory=dict)
    report: tuple[Line, ...] = ()
    base: Scenario | None = None
    stem: str = ""


def description_of(exchange: Captured, origin: Origin) -> str:
    """The description of a scenario that begins with an exchange."""
    host = f" from {exchange.host}" if exchange.host else ""
    where = f" ({origin.description})" if origin.description else ""
    return f"Recorded{host}{where}."


def line_of(
    exchange: Captured,
    answer: DraftedTurn,
    placement: Placement,
    scenario: Scenario,
    left_out: Sequence[str] = (),
) -> Line:
    """The line of the report for an exchange that is the last turn of a scenario."""
    notes = [f"turn {len(scenario.turns)} of {scenario.name}"]
    problem = answer.decoded.problem if answer.decoded is not None else ""
    if problem:
        notes.append(f"only the tape has all of it ({problem})")
    notes += [f"only the tape has {what}" for what in left_out]
    notes += [
        f"warning: the arguments of {part.name} have a placeholder, with which a replay runs it"
        for part in tool_parts(answer.spec.reply)
        if wildcards(part.arguments or "") is not None
    ]
    if exchange.status >= 400:
        notes.append(f"HTTP {exchange.status}")
    if exchange.cut:
        notes.append(CUTS[exchange.cut])
    if placement.kind == "retry":
        notes.append("after a try that failed")
    if placement.kind == "branch" and placement.conversation is not None:
        notes.append(f"begins as {placement.conversation.scenario.name} does")
    recorded = scenario.turns[-1].recorded
    if scenario.match is None and recorded is not None and recorded.request:
        notes.append("only its own request finds it")
    elif scenario.match is None:
        notes.append("plays only when it is named")
    if recorded is not None and recorded.order:
        notes.append(f"answers the same request the {_nth(recorded.order + 1)} time")
    if placement.twin:
        ignored = " and ".join(placement.ignore)
        notes.append(f"the request of {placement.twin} but for {ignored}, which both ignore now")
    index = len(scenario.turns) - 1
    outcome: Outcome = "partial" if left_out or problem else "neutral"
    return Line(exchange.source, outcome, "; ".join(notes), scenario.name, index)


def _nth(number: int) -> str:
    last = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{last}"


# Names: from the first text of the user, with a number where taken

_MAX_NAME = 48
_WORD = re.compile(r"[a-z0-9]+")


def slug(text: str, otherwise: str) -> str:
    """The beginning of a text as a scenario's name; accents are dropped, whole words kept.

    Args:
        otherwise: the name of a text without a letter or digit of the Latin alphabet.
    """
    plain = unicodedata.normalize("NFKD", text[: 8 * _MAX_NAME])
    plain = "".join(char for char in plain if not unicodedata.combining(char)).lower()
    name = ""
    for word in _WORD.findall(plain.replace("'", "")):
        longer = f"{name}-{word}" if name else word[:_MAX_NAME]
        if len(longer) > _MAX_NAME:
            break
        name = longer
    return name or otherwise


_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in "0123456789¹²³"]
)
"""File names that Windows reserves, whatever their ending is."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.,()+=@ \[\]-]+")
_MAX_STEM = 120


def file_stem(name: str) -> str:
    """A name as the beginning of file names on any system.

    Characters that some system refuses become `_`. Names that Windows reserves get one in front.
    """
    stem = _UNSAFE.sub("_", name).strip(". ")[:_MAX_STEM].rstrip(". ") or "recorded"
    return f"_{stem}" if stem.partition(".")[0].strip().lower() in _RESERVED else stem


def free_name(name: str, taken: Callable[[str], bool]) -> str:
    """The name itself, or `NAME-2`, `NAME-3`, ... where it is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(name for name in names if not taken(name))


# The files beside the YAML: tapes, bodies and long values, under names that are not there yet

_MOST_OPAQUE = 512
"""Longer signatures and other values that only machines read get a file; in characters."""

_BASE64 = re.compile(rf"[A-Za-z0-9+/=_-]{{{_MOST_OPAQUE + 1}}}")

_MOST_TEXT = 64 * 1024
"""Longer texts get a file; in characters."""


def with_files(
    turn: m.TurnSpec, new_file: Callable[[str], str]
) -> tuple[m.TurnSpec, dict[str, bytes]]:
    """The turn with its long values as `TextFile`, and the contents of their files.

    Args:
        new_file: the name of a file that is not there yet, for an ending of names.
    """
    files: dict[str, bytes] = {}

    def store_text(text: str | None, most: int) -> str | None:
        if text is None or len(text) <= most or isinstance(text, TextFile):
            return text
        if HALF_PAIR.search(text) is not None:  # only YAML has an escape for it
            return text
        file = TextFile(text, new_file(".txt"))
        files[file.file] = text.encode()
        return file

    def store_media(source: MediaSource) -> MediaSource:
        if source.file or len(source.data) <= _MOST_OPAQUE:
            return source
        source = replace(source, file=new_file(ending(source.type)))
        files[source.file] = source.data
        return source

    def store_value(part: Any, name: str, value: Any) -> Any:
        if isinstance(value, MediaSource):
            return store_media(value)
        if name == "signature" or value is None:
            return store_text(value, _MOST_OPAQUE)
        if name == "text":
            return value if isinstance(part.split, tuple) else store_text(value, _MOST_TEXT)
        text = value if isinstance(value, str) else compact(value)
        file = store_text(text, _MOST_TEXT if _is_readable(text) else _MOST_OPAQUE)
        return file if isinstance(file, TextFile) else value

    def store_part(_: object, part: AnyPart) -> AnyPart:
        stored: Any = {name: store_value(part, name, value) for name, value in filed_values(part)}
        return replace(part, **stored)

    return replace(turn, reply=tuple(map_members(part, store_part) for part in turn.reply)), files


def _is_readable(text: str) -> bool:
    return _BASE64.search(text) is None


def files_of(turn: m.TurnSpec) -> set[str]:
    """The names of the files that hold long values of a turn."""
    values = (value for part in members(turn.reply) for _, value in filed_values(part))
    beside = (value for value in values if isinstance(value, TextFile | MediaSource))
    return {value.file for value in beside} - {""}


class ScenarioFiles:
    """The files of one draft.

    Args:
        path_of: the path of a file by its name.
        stem: what their names begin with.
        known: the files of tapes that were written before, by the name in a draft.
        is_there: whether the folder has a file of that name.
    """

    def __init__(
        self,
        path_of: Callable[[str], str],
        stem: str,
        draft: Draft,
        known: Mapping[str, str],
        is_there: Callable[[str], bool],
    ) -> None:
        self._path_of = path_of
        self._stem = stem
        self._draft = draft
        self._known = known
        self._is_there = is_there
        self.contents: dict[str, bytes] = {}
        """By file name."""
        self.of_drafts: dict[str, str] = {}
        """The files of the tapes, by the name in the draft."""
        self._given: set[str] = set()

    def scenario(self, scenario: m.Scenario) -> m.Scenario:
        """The scenario with the names of its files; `contents` has what they hold."""
        turns = [self._turn(turn, index + 1) for index, turn in enumerate(scenario.turns)]
        return replace(scenario, turns=tuple(turns))

    def _turn(self, turn: m.TurnSpec, number: int) -> m.TurnSpec:
        new_file = partial(self._new_file, f"{self._stem}.{number}")
        if turn.answer is not None and turn.answer.kind == "file":
            turn = replace(turn, answer=self._answer(turn.answer, turn.recorded, new_file))
        turn, long = with_files(turn, new_file)
        self.contents |= long
        turn = self._with_tape(turn, new_file)
        if turn.attempts:
            attempts = tuple(self._with_tape(attempt, new_file) for attempt in turn.attempts)
            turn = replace(turn, attempts=attempts)
        return turn

    def _answer(
        self, answer: RouteAnswer, recorded: m.Recorded | None, new_file: Callable[[str], str]
    ) -> RouteAnswer:
        file: str = answer.value
        drafted = self._draft.recorded.get(recorded.file) if recorded is not None else None
        if drafted is not None and drafted.content is not None:
            file = new_file(f".{file.rpartition('.')[2]}")
            self.contents[file] = drafted.content
        return replace(answer, value=file, path=self._path_of(file))

    def _with_tape(self, turn: m.TurnSpec, new_file: Callable[[str], str]) -> m.TurnSpec:
        if turn.recorded is None:
            return turn
        name = turn.recorded.file
        drafted = self._draft.recorded.get(name)
        if drafted is None:  # another scenario of the folder has the tape
            file = self._known.get(name, name)
        else:
            file = self.of_drafts[name] = new_file(".jsonl")
            tape = drafted.tape
            self.contents[file] = dump_tape(tape) if isinstance(tape, Tape) else dump_session(tape)
        recorded = replace(turn.recorded, file=file, path=self._path_of(file))
        return replace(turn, recorded=recorded)

    def _new_file(self, name: str, ending: str) -> str:
        def is_taken(one: str) -> bool:
            return f"{one}{ending}" in self._given or self._is_there(f"{one}{ending}")

        file = free_name(name, is_taken) + ending
        self._given.add(file)
        return file
