"""The index of all scenarios that are served: finds candidates without trying each scenario.

`match.user` with `contains` or `equals` is looked up by n-grams, plain model names by hash. Only
regular expressions, combined conditions and globs are tried one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.play.matching.conditions import text_holds
from mockllm.play.matching.fingerprint import request_digest
from mockllm.play.matching.hidden import hidden_tags, of_same_values, string_at
from mockllm.scenario.ignoring import normal_text, wanted_text
from mockllm.scenario.model import (
    AnyText,
    Ignored,
    Match,
    Scenario,
    Taken,
    TextCondition,
    with_entries,
)

SCENARIO_HEADER = "x-mockllm-scenario"

_NGRAM = 8
"""Characters of an n-gram."""
_CACHED_TEXTS = 2048
_CACHED_LENGTH = 4096
_FEW = 16
"""So many texts are searched for sooner than the scenarios of the last time are found."""


def mint_token(scenario: Scenario, position: int) -> str:
    """40 hexadecimal digits from which `ScenarioIndex.by_token` reads a scenario and a position.

    They are part of the id of each answer. The last 18 digits are a checksum: an id of another
    server is not mistaken for one of ours.
    """
    path = scenario.path
    return _token(scenario, position, path[position] if path else None)


def _token(scenario: Scenario, position: int, taken: Taken | None) -> str:
    way = () if taken is None else (taken[2], taken[1])
    # 16 digits for the scenario, 6 for the position, and 18 to fill the 40 of `Reply.token`.
    check = derive(scenario.seeded, scenario.name, position, "token", *way, length=18, hex=True)
    return f"{_digest(scenario)}{position:06x}{check}"


def _digest(scenario: Scenario) -> str:
    return derive(scenario.name, "scenario", length=16, hex=True)


@record
class TokenOrigin:
    """The origin of an answer, as its id says it.

    Args:
        taken: which form of which turn it was; None where the position says so.
    """

    scenario: Scenario
    position: int
    taken: Taken | None


def _ways(scenario: Scenario) -> Iterator[Taken]:
    for step, turn in enumerate(scenario.steps):
        for form in range(len(scenario.turns[turn].forms())):
            yield turn, form, step


class _PlainIndex:
    """Finds which conditions with `contains` and `equals` a text meets; all ignore the same.

    Their texts are needles: a prefilter by n-grams, then a search. Each needle is filed under the
    n-gram of it that is in the fewest needles; every text with the needle has it. Only the needles
    under n-grams of a text are searched in it.

    Args:
        conditions: each with the index of its scenario.
    """

    def __init__(self, conditions: Sequence[tuple[TextCondition, int]]) -> None:
        self._needles = [(wanted_text(condition), index) for condition, index in conditions]
        equal = {index for condition, index in conditions if condition.op == "equals"}
        self._equal = {index: needle for needle, index in self._needles if index in equal}
        counts = Counter(gram for needle, _ in self._needles for gram in set(_ngrams(needle)))
        self._by_ngram: dict[str, list[tuple[str, int]]] = {}
        for needle, index in self._needles:
            rarest = min(_ngrams(needle), key=counts.__getitem__)
            self._by_ngram.setdefault(rarest, []).append((needle, index))
        self._sizes = sorted({len(key) for key in self._by_ngram})

    def search(self, text: str) -> list[int]:
        """The indices of the scenarios, in no order.

        Args:
            text: without what is ignored.
        """
        # With few needles or a long text, splitting the text costs more than searching it.
        if len(text) * (1 + len(self._sizes)) > 2 * len(self._needles):
            found = [index for needle, index in self._needles if needle in text]
        else:
            found = self._matching_indices(text)
        equal = self._equal
        return [index for index in found if equal.get(index, text) == text] if equal else found

    def _matching_indices(self, text: str) -> list[int]:
        indices: list[int] = []
        for size in self._sizes:
            grams = {text[at : at + size] for at in range(len(text) - size + 1)}
            indices += [
                index
                for gram in self._by_ngram.keys() & grams
                for needle, index in self._by_ngram[gram]
                if needle in text
            ]
        return indices


def _ngrams(needle: str) -> list[str]:
    """The n-grams of a needle; the whole of it where it is shorter than one."""
    size = min(_NGRAM, len(needle))
    return [needle[at : at + size] for at in range(len(needle) - size + 1)]


_Turn = tuple[int, Scenario, int]
"""The order of a recorded turn among those of equal requests, its scenario, and its index."""

_Turns = dict[str, list[_Turn]]
"""By the digest of the recorded request."""


def _has_values(value_at: Callable[[str], str | None], turn: _Turn) -> bool:
    """Whether a request has the values that a turn's recording hides."""
    _, scenario, index = turn
    recorded = scenario.turns[index].recorded
    assert recorded is not None
    return hidden_tags(recorded.redacted, value_at) == recorded.hidden


def _by_request(scenarios: Iterable[Scenario]) -> dict[tuple[tuple[str, ...], Ignored], _Turns]:
    """The recorded turns of conversations, by what their digests leave out."""
    by_left_out: dict[tuple[tuple[str, ...], Ignored], _Turns] = {}
    for scenario in scenarios:
        for index, turn in enumerate(scenario.turns):
            recorded = turn.recorded
            if recorded is not None and recorded.request and scenario.route is None:
                turns = by_left_out.setdefault((recorded.redacted, recorded.ignore), {})
                turns.setdefault(recorded.request, []).append((recorded.order, scenario, index))
    return by_left_out


class ScenarioIndex:
    """The scenarios that are served, indexed. It never changes: a reload makes a new one.

    Args:
        scenarios: in the order in which messages list them; names are unique.
    """

    def __init__(self, scenarios: Iterable[Scenario] = ()) -> None:
        self.scenarios: tuple[Scenario, ...] = tuple(scenarios)
        self.by_name: dict[str, Scenario] = {s.name: s for s in self.scenarios}
        self._by_digest = {_digest(s): s for s in self.scenarios}
        matches = [
            (s.match, i)
            for i, s in enumerate(self.scenarios)
            if s.match is not None and s.route is None
        ]
        texts = [(m.user, i) for m, i in matches if m.user is not None and not m.anything]
        plain: dict[Ignored, list[tuple[TextCondition, int]]] = {}
        self._tried: list[tuple[AnyText, int]] = []
        for condition, index in texts:
            if isinstance(condition, TextCondition) and condition.op in ("contains", "equals"):
                plain.setdefault(condition.ignore, []).append((condition, index))
            else:
                self._tried.append((condition, index))
        few = [
            (each.value, self.scenarios[index])
            for each, index in texts
            if isinstance(each, TextCondition) and each.op == "contains" and not each.ignore
        ]
        self._few = few if len(few) == len(texts) <= _FEW else None
        """The texts that messages have to contain, each with its scenario; None: there are too
        many, or other conditions."""
        self._plain = {ignore: _PlainIndex(same) for ignore, same in plain.items()}
        self._models: dict[str, list[Scenario]] = {}
        self._others: list[Scenario] = []
        for match, index in matches:
            if match.user is None and not match.anything:
                self._add_by_model(match, self.scenarios[index])
        self.fallbacks = tuple(self.scenarios[i] for m, i in matches if m.anything)
        parts = [part for match, _ in matches for _, part in with_entries(match)]
        self.headers: tuple[str, ...] = tuple(
            sorted({SCENARIO_HEADER, *(name for part in parts for name, _ in part.headers)})
        )
        """The names, in lower case, of all headers that decide which scenario answers."""
        self._cache: dict[Hashable, tuple[Scenario, ...]] = {}
        """By the text, and by what its client says of its machine."""
        self._recorded = _by_request(self.scenarios)

    def recorded_turns(self, request: Request) -> tuple[tuple[Scenario, int], ...]:
        """The turns that were recorded from this very request, each a scenario and the index of
        its turn, in the order of their recording."""
        if not self._recorded:
            return ()
        same: list[_Turn] = []
        value_at = partial(string_at, request.body)
        for (redacted, ignore), turns in self._recorded.items():
            # Without a string at each place its digest need not be made.
            if all(value_at(pointer) is not None for pointer in redacted):
                same += turns.get(request_digest(request, redacted, ignore), ())
        ordered = sorted(
            of_same_values(same, partial(_has_values, value_at)), key=lambda turn: turn[0]
        )
        return tuple((scenario, index) for _, scenario, index in ordered)

    def _add_by_model(self, match: Match, scenario: Scenario) -> None:
        model = match.model
        if model is not None and not any(char in model for char in "*?["):
            self._models.setdefault(model, []).append(scenario)
        else:
            self._others.append(scenario)

    def by_token(self, token: str) -> TokenOrigin | None:
        """The origin in a token from `mint_token`; None for any other text."""
        scenario = self._by_digest.get(token[:16])
        if scenario is None or len(token) != 40:
            return None
        try:
            position = int(token[16:22], 16)
        except ValueError:
            return None
        ways: Iterable[Taken | None] = _ways(scenario) if scenario.varies else (None,)
        return next(
            (
                TokenOrigin(scenario, position, taken)
                for taken in ways
                if token == _token(scenario, position, taken)
            ),
            None,
        )

    def by_user_text(self, text: str) -> tuple[Scenario, ...]:
        """The scenarios whose `match.user` a user message meets."""
        if self._few is not None:
            return tuple([scenario for needle, scenario in self._few if needle in text])
        key = text if type(text) is str else (text, getattr(text, "world", None))
        scenarios = self._cache.get(key)
        if scenarios is None:
            scenarios = tuple([self.scenarios[index] for index in self._search(text)])
            if len(text) <= _CACHED_LENGTH:
                if len(self._cache) >= _CACHED_TEXTS:
                    self._cache.clear()
                self._cache[key] = scenarios
        return scenarios

    def _search(self, text: str) -> list[int]:
        """The indices of the scenarios whose condition a text meets, in order."""
        indices: list[int] = []
        for ignore, plain in self._plain.items():
            indices += plain.search(normal_text(ignore, text) if ignore else text)
        indices += [index for condition, index in self._tried if text_holds(condition, text)]
        indices.sort()
        return indices

    def by_model(self, model: str) -> Iterator[Scenario]:
        """The scenarios without `match.user` that may answer for this model."""
        yield from self._models.get(model, ())
        yield from self._others

    def models(self) -> tuple[tuple[str, ...], bool]:
        """The names of models that scenarios answer for, and whether any other name will do."""
        names: set[str] = set()
        any_model = False
        for scenario in self.scenarios:
            if not scenario.is_conversation:
                continue
            names.add(f"mock/{scenario.name}")
            match = scenario.match
            if match is not None and match.model is None:
                any_model = True
            elif match is not None and match.model is not None:
                if any(char in match.model for char in "*?["):
                    any_model = True
                else:
                    names.add(match.model)
        return tuple(sorted(names)), any_model


# The scenario that a request names: by its path, a header or its model


def split_model(served: ScenarioIndex, model: str) -> tuple[str, str | None]:
    """The model of a request, and the name of the scenario that its model field names, if any.

    `mock/<scenario>` always names a scenario. `<model>@<scenario>` does so only where the scenario
    is served, because models of some services have `@` in their names (Vertex AI:
    `claude-3-5-sonnet@20240620`).
    """
    if model.startswith("mock/"):
        return model, model[5:]
    before, at, name = model.rpartition("@")
    if at and name in served.by_name:
        return before, name
    return model, None


def named_scenario(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> str | None:
    """The name of the scenario that a request names by its path, header or model; None or "" where
    it names none."""
    name = request.scenario or headers.get(SCENARIO_HEADER)
    return name or split_model(served, request.model)[1]
