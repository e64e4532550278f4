"""The fields that the services were recorded to send, with their types, and those that mockllm
sends without any recording.

`recorded_fields.txt` is the table of the recorded ones. `python -m tests.docs.freshness_page` makes
it from recorded traffic, which is no part of the project; so the law is tested without it.
`unrecorded_fields.yaml` has the exceptions, each with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import yaml

from mockllm.conformance.drift.shapes import FieldShape, JsonPlace, Shape
from mockllm.wire.protocols import PROTOCOLS

FOLDER = Path(__file__).parent
TABLE = FOLDER / "recorded_fields.txt"
EXCEPTIONS = FOLDER / "unrecorded_fields.yaml"

FORMS = {True: "stream", False: "body"}
"""The forms of answers, by whether they are streamed."""

_HEAD = """\
# The fields that services were recorded to send, each with the types of its values. Written by
# `python -m tests.docs.freshness_page`.
"""

Form = tuple[str, bool]
"""The name of an API, and whether its answers are streamed."""


class Recorded(NamedTuple):
    """The recorded fields of one API in one form, and the objects that have them."""

    types: Mapping[JsonPlace, frozenset[str]]
    objects: frozenset[JsonPlace]

    def with_shape(self, shape: Shape) -> Recorded:
        """These and further recordings."""
        further = {
            place: frozenset(known.types) | self.types.get(place, frozenset())
            for place, known in shape.fields.items()
        }
        types = {**self.types, **further}
        return Recorded(types, frozenset(map(_parent, types)))


NOTHING = Recorded({}, frozenset())


def by_form(api: str, *, streamed: bool, shape: Shape) -> dict[Form, Shape]:
    """A shape, with the whole answers that some events of its stream hold as those of a body."""
    envelope = PROTOCOLS[api].normalize.envelope
    own, bodies = Shape(), Shape()
    found = {(api, streamed): own}
    if streamed and envelope:
        found[api, False] = bodies
    for place, known in shape.fields.items():
        moved = _in_body(place, envelope) if streamed else place
        target = own if moved is place else bodies
        _merge(target, moved, known, envelope if target is bodies else "")
    for place, count in shape.objects.items():
        is_answer = streamed and place.path == envelope != ""
        moved = _in_body(place, envelope) if streamed else place
        target = own if moved is place and not is_answer else bodies
        target.objects[JsonPlace("", "") if is_answer else moved] += count
    return found


def _in_body(place: JsonPlace, envelope: str) -> JsonPlace:
    """The place in the answer that an event holds; the same place for one outside of it."""
    inside = envelope and place.path.startswith(f"{envelope}.")
    return JsonPlace("", place.path[len(envelope) + 1 :]) if inside else place


def _merge(target: Shape, place: JsonPlace, known: FieldShape, envelope: str) -> None:
    parent = known.parent
    if envelope:
        parent = JsonPlace("", "") if parent.path == envelope else _in_body(parent, envelope)
    mine = target.fields.setdefault(place, FieldShape(parent))
    mine.types |= known.types
    mine.count += known.count
    mine.null += known.null
    mine.empty += known.empty


# The table


def write(shapes: Mapping[Form, Shape]) -> str:
    """The table of some shapes."""
    lines = [_HEAD]
    for (api, streamed), shape in sorted(shapes.items()):
        lines.append(f"\n[{api} {FORMS[streamed]}]\n")
        for place, known in sorted(shape.fields.items()):
            lines.append(f"{place.event}\t{place.path}\t{' '.join(sorted(known.types))}\n")
    return "".join(lines)


def read() -> dict[Form, Recorded]:
    """The recorded fields, by API and form."""
    found: dict[Form, dict[JsonPlace, frozenset[str]]] = {}
    form = ("", False)
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            api, _, name = line.strip("[]").partition(" ")
            form = (api, name == FORMS[True])
        elif line and not line.startswith("#"):
            event, path, types = line.split("\t")
            place = JsonPlace(event, path)
            found.setdefault(form, {})[place] = frozenset(types.split())
    return {form: Recorded(types, frozenset(map(_parent, types))) for form, types in found.items()}


def _parent(place: JsonPlace) -> JsonPlace:
    return JsonPlace(place.event, place.path.rpartition(".")[0])


# The law


class Unrecorded(NamedTuple):
    """A field, or a kind of object, that no recording has in this state."""

    form: Form
    place: JsonPlace
    types: frozenset[str]

    def __str__(self) -> str:
        return f"{FORMS[self.form[1]]} {self.place} {' or '.join(sorted(self.types))}"


def unrecorded(form: Form, shape: Shape, recorded: Recorded) -> Iterator[Unrecorded]:
    """The fields of a shape that no recording has, or not with such a type: the outermost ones. Of
    an event that no recording has, the event itself."""
    events = {place.event for place in recorded.types}
    for event in sorted({place.event for place in shape.fields} - events):
        yield Unrecorded(form, JsonPlace(event, ""), frozenset({"object"}))
    for place, known in sorted(shape.fields.items()):
        if place.event not in events:
            continue
        if place in recorded.types:
            types = frozenset(known.types) - recorded.types[place]
            if types:
                yield Unrecorded(form, place, types)
        elif known.parent in recorded.objects:
            yield Unrecorded(form, place, frozenset(known.types))
    for place in sorted(shape.objects):
        field = JsonPlace(place.event, place.path.rpartition("[")[0])
        is_kind = place.path.endswith("]")
        if is_kind and place not in recorded.objects and field in recorded.types:
            yield Unrecorded(form, place, frozenset({"object"}))


class Exceptions:
    """The exceptions of the law: patterns of places, by API and reason."""

    def __init__(self) -> None:
        value = yaml.safe_load(EXCEPTIONS.read_text())
        self._without: dict[str, str] = value["not recorded"]
        self._fields: dict[str, dict[str, list[str]]] = value["fields"]
        self._patterns = [
            (api, pattern)
            for api, reasons in self._fields.items()
            for patterns in reasons.values()
            for pattern in patterns
        ]
        self._used: set[tuple[str, str]] = set()

    def without_recordings(self) -> frozenset[str]:
        """The APIs of which there is no recording at all."""
        return frozenset(self._without)

    def reasons(self, api: str) -> dict[str, int]:
        """The reasons for an API, each with the number of its patterns."""
        return {reason: len(patterns) for reason, patterns in self._fields.get(api, {}).items()}

    def rest(self, found: Iterable[Unrecorded]) -> list[Unrecorded]:
        """Those that are no exceptions."""
        return [one for one in found if not self._is_exception(one)]

    def unused(self) -> list[tuple[str, str]]:
        """The patterns that nothing fitted so far."""
        return [pair for pair in self._patterns if pair not in self._used]

    def _is_exception(self, found: Unrecorded) -> bool:
        fitting = {
            (api, pattern)
            for api, pattern in self._patterns
            if api == found.form[0] and fnmatchcase(str(found), _escaped(pattern))
        }
        self._used |= fitting
        return bool(fitting)


def _escaped(pattern: str) -> str:
    """A pattern in which only `*` is special."""
    return pattern.replace("[", "[[]")
