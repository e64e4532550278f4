"""`mockllm_session`: the session of one test on the mock server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mockllm.core.errors import MockLLMError
from mockllm.core.text import json_as_yaml
from mockllm_pytest.callers import at_caller, explain_name
from mockllm_pytest.marks import Allowed, MockllmMark, read_allowed, read_session
from mockllm_pytest.parts import Part
from mockllm_pytest.replies import Replies, inline_name, turn_of

if TYPE_CHECKING:
    from mockllm.core.request import Request
    from mockllm.play.replay.sessions.exchange import Exchange
    from mockllm.scenario.model import Scenario
    from mockllm.serve.interception.ownership import Owner
    from mockllm.serve.interception.redirect import Redirect
    from mockllm_pytest.agents import MockAgent
    from mockllm_pytest.answering import Answering
    from mockllm_pytest.serving import MockService
    from mockllm_pytest.session_report import SessionReport

_R = TypeVar("_R")
_SETTLE = 5.0
"""Seconds in which the server notices that an agent that was ended has left its answers."""


class MockSession:
    """A session of the mock server, for one test: its URLs, its scenarios, its journal.

    It answers with what the test writes: replies (`reply`) and scenarios (`use`, `add`, or the
    marker). A reply answers any request, a scenario those that meet its `match`. A request that
    names a scenario, by the model `mock/NAME` for example, is answered by it. Every other request
    is refused, which fails the test.
    """

    session: str
    """The name of the session, unique in the run."""
    url: str
    """The beginning of every URL of the session."""
    intercepts: tuple[str, ...] | None = None
    """The hosts whose requests come to the session, besides known services; None: none come."""
    has_proxy = False
    """Whether programs that the test starts get a proxy, and base URLs of services stay."""

    passed: bool
    """Whether the test has passed."""
    recording_summary: str
    """What was recorded, for the report; set when the session is closed."""
    recording_failure: str
    """Why what was recorded will not replay; set when the session is closed."""

    def __init__(
        self, service: MockService, nodeid: str, folder: Path, mark: MockllmMark, speed: float
    ) -> None:
        self._service = service
        self._nodeid = nodeid
        self._judged = 0
        self._thread = service.thread
        self._speed = speed
        self._folder = folder
        self._mark = mark
        self._used: list[Scenario] = []
        self._anything: dict[str, None] = {}
        self._given: dict[str, str] = {}
        self._replies = Replies(
            inline_name(nodeid.rpartition("::")[2]), again=mark.allowed.allows_extra_requests
        )
        self._quirks = _check_quirks(mark.quirks)
        self._fault = mark.fault
        self._latency = mark.latency
        self._agents: list[MockAgent] = []
        if self.intercepts is None:
            self.intercepts, self.has_proxy = mark.intercept, mark.has_proxy
        self._hosts = service.find_hosts(self.intercepts)
        self.passed = False
        self.recording_summary = self.recording_failure = ""
        self.session = service.session_name(nodeid)
        self.url = f"{self._thread.url}/s/{self.session}"
        if mark.names or mark.scenarios:
            self.use(*(mark.names or mark.scenarios), match=mark.match)
        else:
            self._assign()

    if not TYPE_CHECKING:  # a type checker knows the names, and would take any

        def __getattr__(self, name: str) -> Any:
            __tracebackhide__ = True
            hint = explain_name(name, dir(type(self)))
            raise AttributeError(f"mockllm_session has no attribute {name!r}{hint}")

        def __setattr__(self, name: str, value: Any) -> None:
            __tracebackhide__ = True
            known = name in MockSession.__annotations__ or hasattr(type(self), name)
            if not known and not name.startswith("_"):
                hint = explain_name(name, ["quirks", "fault", "latency"])
                if name in signature(read_session).parameters:
                    hint = f"; it is an argument of the marker: @pytest.mark.mockllm({name}=...)"
                raise AttributeError(f"mockllm_session has no attribute {name!r} to set{hint}")
            super().__setattr__(name, value)

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL for a client of each API, by the name of the API: `chat`, `responses`,
        `anthropic` and so on."""
        from mockllm.serve.server.control.control_routes import base_urls

        return base_urls(self.url)

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI's APIs: Chat Completions, Responses, Completions."""
        return self.base_urls["chat"]

    @property
    def anthropic_url(self) -> str:
        """The base URL for clients of Anthropic's API."""
        return self.base_urls["anthropic"]

    @property
    def gemini_url(self) -> str:
        """The base URL for clients of Google's Gemini API, Interactions included."""
        return self.base_urls["gemini"]

    @property
    def cohere_url(self) -> str:
        """The base URL for clients of Cohere's API."""
        return self.base_urls["cohere"]

    def agui_url(self, scenario: str | None = None) -> str:
        """The URL of an AG-UI agent; with a scenario, of the agent that plays it."""
        url = self.base_urls["agui"]
        return url if scenario is None else f"{url}/{scenario}"

    @contextmanager
    def redirect(self, owner: Owner) -> Iterator[None]:
        """While it lasts, the session is that of the running test, and what an owner asks services
        comes to it; afterwards that is refused."""
        from mockllm.serve.interception import patches

        patches.install()
        redirect = self._service.redirect(lambda: self.session, self._hosts)
        owner.lead(redirect, self._refuse_other)
        with self._service.running(self.session):
            try:
                yield
            finally:
                owner.lead(redirect, None)

    def _refuse_other(self, owner: Owner | None) -> Redirect:
        """Where a request goes that comes while the test runs, and that is of somebody else."""
        name = "a thread that nothing is known of" if owner is None else owner.name
        why = (
            f"This request was made by {name}, which has no session, while {self._nodeid} runs: "
            "its thread, task or connection began before that test. End it before, or start it in "
            "the test that it belongs to."
        )
        return self._service.redirect(
            lambda: self._service.refusing_session(name, why), self._hosts
        )

    @property
    def ollama_url(self) -> str:
        """The base URL for clients of Ollama's own API."""
        return self.base_urls["ollama"]

    @property
    def bedrock_url(self) -> str:
        """The endpoint for clients of Amazon Bedrock."""
        return self.base_urls["bedrock"]

    def mcp_url(self, name: str) -> str:
        """The URL of an MCP server of the session, a document `mcp: NAME`."""
        return f"{self.url}/mcp/{name}"

    def mcp_command(self, name: str) -> list[str]:
        """The program that is this MCP server over standard input and output, for agents that
        start their servers."""
        return [sys.executable, "-m", "mockllm", "mcp", name, "--url", self.url]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the fixture sets: base URLs and keys for the SDKs, `MOCKLLM_URL`,
        `NO_PROXY`, and, as the same port takes TLS, the certificates to trust (`SSL_CERT_FILE`,
        `NODE_EXTRA_CA_CERTS`, `DENO_CERT`). A subprocess inherits them. The URLs are the same in
        all tests of a run, since some libraries read them only once; requests to them belong to
        the test that makes them.

        Where the test names hosts that are intercepted, base URLs stay as they are, but those of
        the environment that lead elsewhere; subprocesses get a proxy instead.
        """
        variables = self._service.environment(self._credentials, azure=self._mark.azure)
        if not self.has_proxy:
            return variables
        from mockllm.serve.interception.hosts import Hosts
        from mockllm.wire.protocols import PROTOCOLS
        from mockllm.wire.protocols.environment import client_base_urls

        hosts, given = Hosts(self.intercepts or ()), os.environ
        names = {base.variable for base in client_base_urls(dict.fromkeys(PROTOCOLS, ""))}
        stay = {n for n in names if n not in given or hosts.has_url(given[n])}
        led = {name: value for name, value in variables.items() if name not in stay}
        return {**led, **self._service.proxy_variables(self.session)}

    @at_caller
    def agent(self, name: str) -> MockAgent:
        """A coding agent whose requests come to the session: see [`MockAgent`](#mockagent).

        Args:
            name: `claude`, `codex`, `gemini` or `opencode`.

        Raises:
            UsageError: there is no such agent.
        """
        from mockllm.conformance.agents.launch import check_agent
        from mockllm.wire.protocols.environment import (
            client_environment,
            credentials_in,
            proxy_exemptions,
        )
        from mockllm_pytest.agents import MockAgent

        check_agent(name)
        led = {
            **credentials_in(self._credentials),
            **client_environment(self.base_urls, self._credentials),
            **proxy_exemptions(os.environ),
            "MOCKLLM_URL": self.url,
        }
        settle = partial(self._thread.settled_exchanges, self.session, _SETTLE)
        self._agents.append(MockAgent(name, led, settle))
        return self._agents[-1]

    @property
    def _credentials(self) -> Mapping[str, str]:
        """The environment variables from which the client keeps its credentials."""
        return {}

    @property
    def journal(self) -> list[Exchange]:
        """The exchanges so far: each request, as `path`, `headers`, `body` and `json`, its
        `messages` and `tools` (in one form for all APIs), and its outcome, as `status`, `scenario`,
        `turn` and `outcome`."""
        return self._thread.ask(self._exchanges)

    def _exchanges(self) -> list[Exchange]:
        session = self._thread.server.sessions.find(self.session)
        return [] if session is None else list(session.journal)

    # Scenarios

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios that this test uses: of `use`, `add` and `reply`."""
        return (*self._used, *self._replies.scenarios)

    @property
    def quirks(self) -> tuple[str, ...]:
        """The names of the quirks in every streamed answer of the session. They may be set, also
        between two requests."""
        return self._quirks

    @quirks.setter
    @at_caller
    def quirks(self, names: Iterable[str]) -> None:
        self._quirks = _check_quirks((names,) if isinstance(names, str) else tuple(names))
        self._assign()

    @property
    def fault(self) -> tuple[str, ...]:
        """The faults of every answer of the session, as in `mockllm serve --fault`; of several, one
        is drawn for each answer. It may be set, also between two requests, to a text or to
        several; `()` for none."""
        return self._fault

    @fault.setter
    @at_caller
    def fault(self, written: str | Iterable[str]) -> None:
        from mockllm.core.errors import UsageError

        before = self._fault
        self._fault = (written,) if isinstance(written, str) else tuple(written)
        try:
            self._assign()
        except UsageError:
            self._fault = before
            raise

    @property
    def latency(self) -> str | None:
        """The latency of the session's answers, as in `mockllm serve --latency`. It may be set,
        also between two requests; None: as their scenarios say."""
        return self._latency

    @latency.setter
    @at_caller
    def latency(self, written: str | None) -> None:
        from mockllm.core.errors import UsageError

        before, self._latency = self._latency, written
        try:
            self._assign()
        except UsageError:
            self._latency = before
            raise

    @at_caller
    def use(
        self,
        *scenarios: str | PathLike[str] | Scenario,
        match: bool = True,
        quirks: str | Iterable[str] = (),
    ) -> tuple[Scenario, ...]:
        """Adds scenarios to those of the session, and returns the ones that were found.

        Args:
            scenarios: names, paths (relative to the folder of the test) or scenarios.
            match: whether the `match` of the scenario counts; False: it answers any request that
                no other scenario of the test answers.
            quirks: the names of quirks to add to those of the session.

        Raises:
            UsageError: there is no such scenario or quirk; or several scenarios would
                answer any request.
            ScenarioError: a file cannot be loaded; with every problem in it.
        """
        library = self._service.library
        more = [
            scenario
            for path in self._mark.scenarios
            for scenario in library.find(path, self._folder)
        ]
        added: list[Scenario] = []
        for given in scenarios:
            some = library.find(given, self._folder, tuple(more))
            if isinstance(given, str | PathLike):
                self._given.update({scenario.name: str(given) for scenario in some})
            added += some
        further = (quirks,) if isinstance(quirks, str) else tuple(quirks)
        self._quirks = _check_quirks((*self._quirks, *further))
        return self._add(added, match)

    @at_caller
    def add(self, scenario: str | Mapping[str, Any]) -> tuple[Scenario, ...]:
        """Adds scenarios that the test itself contains, and returns them.

        A scenario without `match`, if it is the only one of the test, answers any request.

        Args:
            scenario: YAML text, or one scenario as a mapping.

        Raises:
            ScenarioError: with every problem in them.
        """
        from mockllm.play.replay.loading import loads

        text = scenario if isinstance(scenario, str) else json_as_yaml(scenario)
        return self._add(loads(text, "<add>"))

    def _add(self, scenarios: Iterable[Scenario], match: bool = True) -> tuple[Scenario, ...]:
        from mockllm.core.errors import UsageError

        new = tuple(scenarios)
        for scenario in new:
            other = next(
                (known for known in self.scenarios if known.name == scenario.name), scenario
            )
            if other is not scenario:
                raise UsageError(
                    f"this session has a scenario {scenario.name!r} already; rename one of them"
                )
        used = set(map(id, self._used))
        self._used += [scenario for scenario in new if id(scenario) not in used]
        if not match:
            self._anything.update(dict.fromkeys(added.name for added in new))
        self._assign()
        return new

    @at_caller
    def reply(
        self,
        *parts: Part | str,
        finish: str | None = None,
        finish_raw: str | None = None,
        stop_sequence: str | None = None,
        usage: Mapping[str, int | str] | str | None = None,
        obey: Sequence[str] | None = None,
        timing: Mapping[str, Any] | None = None,
        request: Mapping[str, Any] | None = None,
        http: int | Mapping[str, Any] | None = None,
        wire: Mapping[str, Any] | None = None,
        attempts: Iterable[Mapping[str, Any]] | None = None,
        times: int | None = None,
        repeat: bool = False,
        headers: Mapping[str, str] | None = None,
        service_tier: str | None = None,
        fingerprint: str | None = None,
        template: bool | None = None,
        extra: Mapping[str, Any] | None = None,
        match: Mapping[str, Any] | None = None,
        fault: str | Mapping[str, Any] | Sequence[Any] | None = None,
        one_of: Iterable[Mapping[str, Any]] | None = None,
        when: Iterable[Mapping[str, Any]] | None = None,
        choices: Iterable[Mapping[str, Any]] | None = None,
        name: str | None = None,
        go_to: str | None = None,
        job: Mapping[str, Any] | None = None,
        expect: Mapping[str, Any] | None = None,
        retry_after: str | None = None,
        error: Mapping[str, Any] | None = None,
        hears: str | Mapping[str, Any] | None = None,
        speech: str | Mapping[str, Any] | None = None,
        gate: str | Mapping[str, Any] | None = None,
    ) -> None:
        """Adds the next turn of the model to a conversation that the test itself writes.

        The first reply answers the first request, the second one the next, and so on: also where
        it begins a new conversation. Each is given once; a client that tries again because the
        answer did not arrive whole gets the same one.

        Args:
            parts: the parts of the reply, from `text`, `tool` and the other functions of
                `mockllm_pytest`; a string is text.
            finish: why the answer ends: `stop`, `tool_calls`, `length`, `content_filter`,
                `refusal` or `none`; default: what follows from the parts.
            finish_raw: the finish reason that is sent, where it is not the usual one of the API.
            stop_sequence: the text of the request at which the answer stops.
            usage: tokens, as in `{"input": 3, "output": 4}`, or `"none"`; default: counted from
                the text.
            obey: the limits of the request that cut the reply, as in `["max_tokens", "stop"]`.
            timing: when the fragments are sent, as in `{"ttft": "300ms", "every": "15ms"}`.
            request: what the client must send to get this turn, as in
                `{"results": {"call_1": "42"}}`. Any other request is refused, which fails the test.
            http: an HTTP error instead of parts: a status, or a mapping as in
                `{"status": 503, "retry_after": "1s"}`.
            wire: how the bytes are sent, as in `{"line_end": "crlf"}`.
            attempts: the HTTP errors that earlier attempts get, as in `[{"http": 429}]`.
            times: how many requests in a row this turn answers, all of which must come.
            repeat: whether this turn also answers every further request.
            headers: of the answer, besides those of the API and in place of them.
            service_tier, fingerprint: what the answer says of its service, where the API has a
                field for it.
            template: whether texts have values of the request, as in `"Hi {{ request.user }}"`.
            extra: further fields of the answers of an API, as a recorder writes them.
            match: begins another conversation, which answers requests that meet these conditions,
                as in `{"user": "weather"}`; later replies continue it. Default: any request.
            fault: what breaks on the way, as in `"cut:after=3 events"`.
            one_of: replies of which one is drawn for each request.
            when: what is different where the request meets conditions, or over one API.
            choices: further choices, for requests that ask for several.
            name, go_to: a name for this reply, and that of the reply that comes after it. Where a
                conversation has a `go_to`, its history alone says which reply is next.
            job: how long the work takes that a request only begins.
            expect: what a correct client must end up with.
            retry_after, error: of an HTTP error, in place of a mapping in `http`.
            hears: what the user says, of a client that sends sound.
            speech: the sound of the reply, for a client that asks for it.
            gate: the name of a gate before the answer, with its status and headers, or a mapping
                as in `{"name": "thinking", "limit": "5s"}`; see `release`.

        Raises:
            ScenarioError: with every problem in the turn, which is then not added.
        """
        turn = turn_of(
            parts,
            request=request,
            http=http,
            finish=finish,
            finish_raw=finish_raw,
            stop_sequence=stop_sequence,
            usage=usage,
            obey=None if obey is None else list(obey),
            timing=timing,
            wire=wire,
            attempts=None if attempts is None else list(attempts),
            times=times,
            repeat=repeat or None,
            headers=headers,
            service_tier=service_tier,
            fingerprint=fingerprint,
            template=template,
            extra=extra,
            fault=fault,
            one_of=None if one_of is None else list(one_of),
            when=None if when is None else list(when),
            choices=None if choices is None else list(choices),
            name=name,
            go_to=go_to,
            job=job,
            expect=expect,
            retry_after=retry_after,
            error=error,
            hears=hears,
            speech=speech,
            gate=gate,
        )
        self._replies.add(turn, match)
        self._assign()

    def _assign(self) -> None:
        """Serves the scenarios of the session from the next request on."""
        from mockllm_pytest.answering import Answering

        anything = set(self._anything)
        if self._replies.answers_any:
            anything.add(self._replies.name)
        by_name = self._service.library.by_name
        self._serve(Answering.of(self.scenarios, anything, by_name))

    def _serve(self, answering: Answering, **options: Any) -> None:
        """Serves scenarios.

        Args:
            options: further arguments of `MockServer.assign`.
        """
        from mockllm_pytest.answering import serve

        lone = answering.lone
        advice = partial(self._advice, None if lone is None else self._given.get(lone.name))
        how: dict[str, Any] = {"faults": self._fault, "latency": self._latency}
        how |= {"hosts": self._hosts, "speed": self._speed}
        serve = partial(serve, quirks=self._quirks, **how, **options)
        self._thread.ask(serve, self._thread.server, self.session, answering, advice)

    def _advice(self, used: str | None, request: Request, headers: Mapping[str, str]) -> list[str]:
        """Advice about a request that nothing answers, as lines of its error message."""
        from mockllm_pytest.answering import suggestions

        known, another = self._service.library.every, bool(self._replies.conversations)
        return suggestions(request, headers, known, used, another=another)

    # Gates

    def release(self, gate: str) -> None:
        """Opens a gate: for the answers that wait there, and for those that come later.

        Raises:
            UsageError: no scenario of the test has a gate of that name.
        """
        self._ask_gate(self._thread.server.release, gate)

    def wait_for_gate(self, gate: str, timeout: float = 10.0) -> None:
        """Waits until an answer waits at a gate, so that the client has all that comes before. In
        a coroutine: `await asyncio.to_thread(mockllm_session.wait_for_gate, "thinking")`.

        Args:
            timeout: in seconds.

        Raises:
            TimeoutError: none came there.
            UsageError: no scenario of the test has a gate of that name, or it is open.
        """
        from mockllm.core.errors import UsageError

        waits = self._ask_gate(self._thread.server.wait_for_gate, gate, timeout)
        if waits is None:
            raise UsageError(f"the gate {gate!r} was released before, so no answer waits there")
        if not waits:
            requests = self.format_exchanges()
            raise TimeoutError(f"no answer came to the gate {gate!r} in {timeout:g} s. {requests}")

    def wait_until_over(self, timeout: float = 10.0) -> list[Exchange]:
        """Waits until no answer is on its way: each was sent, or its client has left. Returns the
        journal; `exchange.sent.client_gone` says who left.

        Args:
            timeout: in seconds.

        Raises:
            TimeoutError: an answer goes on, or waits at a gate.
        """
        exchanges = self._thread.settled_exchanges(self.session, timeout)
        left = [exchange for exchange in exchanges if exchange.in_use]
        if left:
            gate = left[0].sent.waits_at
            why = "goes on" if gate is None else f"waits at the gate {gate!r}"
            raise TimeoutError(
                f"the answer to request {left[0].number} {why} after {timeout:g} s, and its client "
                f"has not left. {self.format_exchanges()}"
            )
        return list(exchanges)

    def _ask_gate(self, ask: Callable[..., Coroutine[Any, Any, _R]], *args: Any) -> _R:
        from mockllm.core.errors import RequestError, UsageError

        try:
            return self._thread.wait(ask, self.session, *args)
        except RequestError as error:
            raise UsageError(error.message) from None

    # SessionReport

    def verify(
        self,
        *,
        unplayed: bool = False,
        no_requests: bool = False,
        unmatched: bool = False,
        invalid: bool = False,
        violations: bool | str | Iterable[str] = (),
        depth: int = 50,
        extra_requests: bool = False,
        require: str | Iterable[str] = (),
    ) -> None:
        """Checks the requests so far, as the plugin does at the end of the test.

        Args:
            unplayed, no_requests, unmatched, invalid, violations, depth, extra_requests: what is
                allowed, as in the marker. What the marker allows does not count here.
            require: the rules that are required, as in the marker.

        Raises:
            AssertionError: there is a mistake; the message has all exchanges, and the marker that
                would allow it.
        """
        what = read_allowed(
            violations,
            require,
            unplayed=unplayed,
            no_requests=no_requests,
            unmatched=unmatched,
            invalid=invalid,
            depth=depth,
            extra_requests=extra_requests,
        )
        verdict = self.verdict(what)
        if not verdict.good:
            raise AssertionError(str(verdict))

    def verdict(self, what: Allowed | None = None) -> SessionReport:
        """The verdict on the requests so far.

        Args:
            what: the mistakes that are allowed; default: those that the marker allows.
        """
        from mockllm_pytest.answering import is_automatic
        from mockllm_pytest.session_report import judge

        # What answers the rest has nothing to answer where there is no rest.
        required = [scenario.name for scenario in self.scenarios if not is_automatic(scenario)]
        session = self._thread.server.sessions.get(self.session)
        self._judged = session.count
        what = what or self._mark.allowed
        return self._thread.ask(
            judge,
            session,
            self._thread.server.player_of(self.session).served.by_name,
            tuple(required),
            self._mark,
            replace(what, require=what.require | self._service.required),
        )

    def mark_again(self, mark: MockllmMark) -> bool:
        """Takes over what a marker allows that was changed while the test ran; returns whether
        nothing else in it is new."""
        before = replace(self._mark, allowed=mark.allowed, given=mark.given)
        self._mark = before
        return mark == before

    def late_verdict(self) -> SessionReport | None:
        """The verdict on the whole session, where requests came after the last one: fixtures that
        end, and tasks that go on. None where there were none, or the test has failed already."""
        session = self._thread.server.sessions.find(self.session)
        is_late = session is not None and session.count > self._judged
        return self.verdict() if self.passed and is_late else None

    def report_failure(self) -> str:
        """The exchanges so far as text, for the report of a test that failed by itself, and above
        them the mistakes in these requests, which may be its cause. What the test did not come to,
        such as turns that were not played, is none."""
        exchanges = self.format_exchanges()
        cut_short = replace(self._mark.allowed, unplayed=True, no_requests=True)
        try:
            mistakes = self.verdict(cut_short).mistakes
        except MockLLMError as error:
            mistakes = (f"the requests cannot be judged: {error}",)
        lines = [f"mockllm: {mistake}" for mistake in (*mistakes, *self._doubtful_texts())]
        return "\n".join([*lines, "", exchanges]) if lines else exchanges

    def _doubtful_texts(self) -> Iterator[str]:
        """Replies with braces that are sent as they stand, which may be why the test failed."""
        from mockllm.scenario.check import similar_to_templates

        before = 1
        for scenario in self._replies.scenarios:
            for (_, index, *_), message in similar_to_templates(scenario):
                yield f"reply {before + int(index)} {message}"
            before += len(scenario.turns)

    def format_exchanges(self) -> str:
        """The exchanges so far as text, for reports."""
        from mockllm.checking.conversations.journal_text import format_exchanges

        player = self._thread.server.player_of(self.session)
        return format_exchanges(self.session, self.journal, player.served.by_name)

    def close(self) -> None:
        """Removes the session from the server."""
        session = self._thread.server.sessions.find(self.session)
        if session is not None:
            self._service.played.update(tuple(session.played))
        self._end()

    def _end(self) -> None:
        """Removes the session from the server; later requests to it are refused, and reported."""
        for agent in self._agents:
            agent.close()
        self._service.end(self.session, self._nodeid)


def _check_quirks(quirks: tuple[str, ...]) -> tuple[str, ...]:
    """The same names.

    Raises:
        UsageError: there is no quirk of one of the names.
    """
    if quirks:
        from mockllm.play.quirks import find

        for name in quirks:
            find(name)
    return quirks
