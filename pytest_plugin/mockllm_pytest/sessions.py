"""`mockllm_session`: the session of one test on the mock server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockllm_pytest.marks import Allowed, Mark, allowed
from mockllm_pytest.parts import Part

if TYPE_CHECKING:
    from mockllm.replay.session import Exchange
    from mockllm.scenario.model import Scenario
    from mockllm_pytest.report import Verdict
    from mockllm_pytest.serving import MockService

__all__ = ["MockSession"]

_INLINE = "inline"
# JSON allows these characters unescaped. YAML 1.2 (5.1, 5.4) forbids them, or reads them as the end
# of a line.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def _as_yaml(value: Any) -> str:
    """A value as JSON text that is also YAML."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class MockSession:
    """A session of the mock server, for one test: its URLs, its scenarios, its journal.

    A single scenario answers every request. Of several scenarios, the one that matches answers.
    Without any, all scenarios of the run are served.
    """

    def __init__(
        self, service: MockService, nodeid: str, folder: Path, mark: Mark, speed: float
    ) -> None:
        self._service = service
        self._thread = service.thread(speed)
        self._folder = folder
        self._mark = mark
        self._used: list[Scenario] = []
        self._turns: list[Part] = []
        self._inline: tuple[Scenario, ...] = ()
        self._quirks = _checked(mark.quirks)
        self.passed = False
        """Whether the test has passed."""
        self.recording_summary = ""
        """What was recorded, for the report; set when the session is closed."""
        self.session = service.session_name(nodeid)
        """The name of the session."""
        self.url = f"{self._thread.url}/s/{self.session}"
        """The beginning of every URL of the session."""
        if mark.names or mark.scenarios:
            self.use(*(mark.names or mark.scenarios))
        elif mark.quirks:
            self._assign()

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL to give to a client of each API, by the API's name."""
        from mockllm.protocols import PROTOCOLS
        from mockllm.server.control import base_urls

        return base_urls(PROTOCOLS, self.url)

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI's APIs."""
        return self.base_urls["chat"]

    @property
    def anthropic_url(self) -> str:
        """The base URL for clients of Anthropic's API."""
        return self.base_urls["anthropic"]

    @property
    def gemini_url(self) -> str:
        """The base URL for clients of Google's Gemini API."""
        return self.base_urls["gemini"]

    def agui_url(self, scenario: str | None = None) -> str:
        """The URL of an AG-UI agent; with a scenario, of the agent that plays it."""
        url = self.base_urls["agui"]
        return url if scenario is None else f"{url}/{scenario}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that lead SDKs to the session."""
        from mockllm.protocols.environment import client_environment, unproxied

        variables = client_environment(self.base_urls, self._credentials)
        return {**variables, "MOCKLLM_URL": self.url, **unproxied(os.environ)}

    @property
    def _credentials(self) -> Mapping[str, str]:
        """The environment variables from which the client keeps its credentials."""
        return {}

    @property
    def journal(self) -> list[Exchange]:
        """The exchanges so far: each request, and how it was answered."""
        return self._thread.ask(self._exchanges)

    def _exchanges(self) -> list[Exchange]:
        session = self._thread.server.sessions.find(self.session)
        return [] if session is None else list(session.journal)

    # Scenarios

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios of this test; empty if all scenarios of the run are served."""
        return (*self._used, *self._inline)

    @property
    def quirks(self) -> tuple[str, ...]:
        """The names of the quirks in every streamed answer of the session; they may be set."""
        return self._quirks

    @quirks.setter
    def quirks(self, names: Iterable[str]) -> None:
        self._quirks = _checked((names,) if isinstance(names, str) else tuple(names))
        self._assign()

    def use(
        self, *scenarios: str | PathLike[str] | Scenario, quirks: str | Iterable[str] = ()
    ) -> tuple[Scenario, ...]:
        """Adds scenarios to those of the session, and returns the ones that were found.

        Args:
            scenarios: names, paths (relative to the folder of the test) or scenarios.
            quirks: names of quirks, added to those of the session.

        Raises:
            UsageError: there is no such scenario, or no such quirk.
            ScenarioError: a file cannot be loaded; with every problem in it.
        """
        library = self._service.library
        more = [one for path in self._mark.scenarios for one in library.find(path, self._folder)]
        found = [
            one for given in scenarios for one in library.find(given, self._folder, tuple(more))
        ]
        added = (quirks,) if isinstance(quirks, str) else tuple(quirks)
        self._quirks = _checked((*self._quirks, *added))
        return self._add(found)

    def add(self, scenario: str | Mapping[str, Any]) -> tuple[Scenario, ...]:
        """Adds scenarios that the test itself contains, and returns them.

        Args:
            scenario: YAML text, or the same as a mapping.

        Raises:
            ScenarioError: with every problem in them.
        """
        from mockllm.replay.loading import loads

        text = scenario if isinstance(scenario, str) else _as_yaml(scenario)
        return self._add(loads(text, "<add>"))

    def _add(self, scenarios: Iterable[Scenario]) -> tuple[Scenario, ...]:
        from mockllm.errors import UsageError

        new = tuple(scenarios)
        for scenario in new:
            other = next((one for one in self.scenarios if one.name == scenario.name), scenario)
            if other is not scenario:
                raise UsageError(
                    f"this session has a scenario {scenario.name!r} already; rename one of them"
                )
        self._used += [one for one in new if all(one is not other for other in self._used)]
        self._assign()
        return new

    def reply(
        self,
        *parts: Part | str,
        finish: str | None = None,
        finish_raw: str | None = None,
        usage: Mapping[str, int] | str | None = None,
        timing: Mapping[str, Any] | None = None,
        request: Mapping[str, Any] | None = None,
        http: int | Mapping[str, Any] | None = None,
        wire: Mapping[str, Any] | None = None,
        attempts: Iterable[Mapping[str, Any]] | None = None,
        repeat: bool = False,
    ) -> None:
        """Adds the next turn of a scenario that exists only in this test.

        Args:
            parts: the parts of the reply, from `mockllm_pytest.text`, `tool` and so on; a string
                is text.
            finish, finish_raw, usage, timing, request, http, wire, attempts, repeat: the keys
                of a turn in a scenario file; `http` excludes parts.

        Raises:
            ScenarioError: with every problem in the turn, which is then not added.
        """
        from mockllm.replay.loading import loads

        keys = {
            "request": request,
            "reply": [{"text": part} if isinstance(part, str) else part for part in parts] or None,
            "http": http,
            "finish": finish,
            "finish_raw": finish_raw,
            "usage": usage,
            "timing": timing,
            "wire": wire,
            "attempts": None if attempts is None else list(attempts),
            "repeat": repeat or None,
        }
        turn = {key: value for key, value in keys.items() if value is not None}
        turns = [*self._turns, turn]
        text = _as_yaml({"scenario": _INLINE, "match": "any", "turns": turns})
        self._inline = loads(text, "<reply>")
        self._turns = turns
        self._assign()

    def _assign(self) -> None:
        """Serves the scenarios of the session from the next request on."""
        scenarios = self.scenarios or self._service.library.served
        named = scenarios[0].name if len(self.scenarios) == 1 else None
        assign = self._thread.server.assign
        self._thread.ask(assign, self.session, scenarios, named=named, quirks=self._quirks)

    # Verdict

    def verify(
        self,
        *,
        unplayed: bool = False,
        unmatched: bool = False,
        invalid: bool = False,
        violations: bool | str | Iterable[str] = (),
        depth: int = 50,
    ) -> None:
        """Checks the requests so far, as the end of the test does.

        Args:
            unplayed, unmatched, invalid, violations, depth: what is allowed, as in the marker.

        Raises:
            AssertionError: there is a mistake; the message has the exchanges.
        """
        verdict = self.verdict(allowed(unplayed, unmatched, invalid, violations, depth))
        if not verdict.good:
            raise AssertionError(str(verdict))

    def verdict(self, what: Allowed | None = None) -> Verdict:
        """The verdict on the requests so far.

        Args:
            what: the mistakes that are allowed; default: those that the marker allows.
        """
        from mockllm_pytest.report import judge

        return self._thread.ask(
            judge,
            self._thread.server.sessions.get(self.session),
            self._thread.server.player_of(self.session).served.by_name,
            tuple(one.name for one in self.scenarios),
            self._mark,
            what or self._mark.allowed,
        )

    def format_exchanges(self) -> str:
        """The exchanges so far as text, for reports."""
        from mockllm_pytest.report import format_exchanges

        player = self._thread.server.player_of(self.session)
        return format_exchanges(self.session, self.journal, player.served.by_name)

    def close(self) -> None:
        """Removes the session from the server."""
        session = self._thread.server.sessions.find(self.session)
        if session is not None:
            self._service.played.update(tuple(session.played))
        self._thread.call(self._thread.server.forget, self.session)


def _checked(quirks: tuple[str, ...]) -> tuple[str, ...]:
    """The same names.

    Raises:
        UsageError: there is no quirk of one of the names.
    """
    if quirks:
        from mockllm.quirks import find

        for name in quirks:
            find(name)
    return quirks
