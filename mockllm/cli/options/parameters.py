"""The options that several commands have, and the kinds of values they take."""

from __future__ import annotations

import functools
import math
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from mockllm.cli.options.config import file_key
from mockllm.core.errors import Problem, UsageError
from mockllm.core.pairs import read_pair
from mockllm.core.text import did_you_mean, similar_names
from mockllm.play.replay.fault_plan import read_plan
from mockllm.play.replay.latency.schedule import LatencyPlan
from mockllm.scenario.durations import read_duration, read_percent
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import AutoPart

if TYPE_CHECKING:
    from mockllm.serve.interception.hosts import Hosts

_Command = TypeVar("_Command", bound=Any)
_Paths = tuple[tuple[str, str], ...]
Option = Callable[..., Callable[..., Any]]
"""`click.option`, or `file_key` with the same arguments."""
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


class _ExistingPath(click.Path):
    """A file or folder that is there; the error names one whose name is similar."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(error.message + missing_path_hint(Path(value)), param, ctx)


def missing_path_hint(path: Path) -> str:
    """` Did you mean 'scenarios'?` about a path that is missing; "" where nothing is similar."""
    if path.exists() or not path.parent.is_dir():
        return ""
    beside = [other.name for other in path.parent.iterdir() if not other.name.startswith(".")]
    near = similar_names(path.name, beside)
    return f" Did you mean '{path.parent / near[0]}'?" if near else ""


EXISTING = _ExistingPath(exists=True, path_type=Path)
"""A file or folder that is there."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")


def scenarios_option(
    text: str = "Where to look; default: the scenarios that come with mockllm.",
) -> Callable[[_Command], _Command]:
    """The option for scenarios, with its help."""
    return click.option(
        "--scenarios", "paths", multiple=True, type=EXISTING, metavar="PATH", help=text
    )


cassettes_option = click.option(
    "--cassettes",
    multiple=True,
    type=EXISTING,
    metavar="DIR",
    help="Play the recordings of other tools in DIR, as `mockllm import` reads them; may be "
    "repeated.",
)


def quirk_option(gets: str) -> Callable[[_Command], _Command]:
    """The option for quirks; `gets` says which stream gets them."""
    return click.option(
        "--quirk",
        "quirks",
        multiple=True,
        type=_quirk,
        metavar="NAME",
        help=f"What {gets} gets wrong, as `mockllm list quirks` lists it; may be repeated.",
    )


if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # generic since click 8.2


class _Api(_Choice):
    """The name of a protocol; the choices are imported when they are needed.

    Args:
        over_http: only of those that answer over HTTP.
    """

    def __init__(self, *, over_http: bool = False) -> None:
        super().__init__(())
        self._over_http = over_http

    @property
    def choices(self) -> tuple[str, ...]:
        from mockllm.wire.protocols import PROTOCOLS

        return PROTOCOLS.over_http if self._over_http else tuple(PROTOCOLS)

    @choices.setter
    def choices(self, _: object) -> None:
        """`click.Choice` sets them once; they are not kept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            known = f"there are: {', '.join(self.choices)}"
            hint = did_you_mean(str(value), self.choices, known)
            raise click.BadParameter(f"there is no API {value!r}; {hint}", ctx, param)
        return str(value)


API = _Api()
"""The name of a protocol in `PROTOCOLS`."""

HTTP_API = _Api(over_http=True)
"""The name of one that has not only WebSockets."""


def size(value: str) -> int:
    """Bytes, from a number with or without a unit; `16MB` counts in steps of 1024."""
    match = re.fullmatch(r"(\d{1,15})\s*([kmg]?)i?b?", value.strip().lower())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a size, such as 65536, 500KB or 16MB")
    return int(match[1]) * _UNITS[match[2]]


def number(value: str | float) -> float:
    """A finite number, at least 0."""
    try:
        given = float(value)
    except ValueError:
        given = math.nan
    if not 0 <= given < math.inf:
        raise click.BadParameter(f"{value!r} is not a number of at least 0")
    return given


def _quirk(value: str) -> str:
    """The name of a quirk, perhaps with a variant."""
    from mockllm.play.replay.loading import quirk_problem

    if problem := quirk_problem(value):
        raise click.BadParameter(problem)
    return value


def together(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """A decorator that adds several options. Decorators apply from the bottom up, so the last of
    them is the first one in the help."""

    def add(command: _Command) -> _Command:
        for option in options:
            command = option(command)
        return command

    return add


def server_options(
    make: Callable[..., dict[str, Any]], *options: Callable[..., Any]
) -> Callable[..., Any]:
    """A decorator that adds options for a server. The command gets `server`: fields of
    `ServerOptions`, from all its decorators.

    Args:
        make: makes the fields from the values of the options.
    """

    def merge(before: dict[str, Any] | None, **values: Any) -> dict[str, Any]:
        return {**(before or {}), **make(**values)}

    return collect("server", merge, *options)


def collect(
    name: str, make: Callable[..., Any], *options: Callable[..., Any]
) -> Callable[..., Any]:
    """A decorator that adds options, and gives the command one parameter for them.

    Args:
        name: of that parameter.
        make: makes its value from what another such decorator made, or None, and the values of the
            options.
    """
    names = [option.name for option in click.command()(together(*options)(lambda: None)).params]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_one(*args: Any, **given: Any) -> Any:
            values = {option: given.pop(option) for option in names}
            return command(*args, **{name: make(given.pop(name, None), **values)}, **given)

        wrapped: Callable[..., Any] = together(*options)(with_one)
        return wrapped

    return add


def join_paths(
    paths: tuple[Path, ...], named: tuple[Path, ...], parameter: str = "named"
) -> tuple[Path, ...]:
    """The scenarios of arguments and of `--scenarios`; arguments take the place of those of the
    file.

    Args:
        parameter: the name of the option's parameter.
    """
    source = click.get_current_context().get_parameter_source(parameter)
    return paths if paths and source is ParameterSource.DEFAULT_MAP else paths + named


def is_scenarios(word: str) -> bool:
    """Whether a word names scenarios, not a command: a folder, or a YAML file."""
    path = Path(word)
    return path.is_dir() or (path.suffix in (".yaml", ".yml") and not os.access(path, os.X_OK))


class ProgramCommand(click.Command):
    """A command with the arguments `PATH... -- CMD...` or `CMD...`: its parameters `paths` and
    `command`. What follows CMD is CMD's own, with `--` before it or without."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the words before the command; those of the command itself stay as they are."""
        ctx.allow_interspersed_args = False
        parsed = self.make_parser(ctx).parse_args(list(args))[0].get("command")
        words = parsed if isinstance(parsed, tuple) else ()  # without any, click has its own value
        first = len(args) - len(words)
        is_marked = args[first - 1 : first] == ["--"]  # then the word is the command in any case
        if not words or is_marked or not is_scenarios(words[0]):
            return super().parse_args(ctx, args)
        end = words.index("--") if "--" in words else len(words)
        command = tuple(words[end + 1 :])
        if not command:
            ctx.fail(
                f"{words[0]!r} is no command; write -- before the command: {ctx.command_path} "
                f"{words[0]} -- {shlex.join(words[1:end]) or 'CMD'}"
            )
        ctx.allow_interspersed_args = True
        super().parse_args(ctx, args[: end - len(words)])
        paths = tuple(Path(EXISTING.convert(word, None, ctx)) for word in ctx.params["command"])
        ctx.params |= {"command": command, "paths": join_paths(paths, ctx.params["paths"], "paths")}
        return []


def named_option(kind: click.Path = EXISTING) -> Callable[[_Command], _Command]:
    """The option for scenarios that arguments name, too."""
    text = "The same as PATH; may be repeated."
    return click.option("--scenarios", "named", multiple=True, type=kind, metavar="PATH", help=text)


def path_arguments(metavar: str, kind: click.Path = EXISTING) -> Callable[..., Any]:
    """Adds scenarios as arguments, and as `--scenarios`, which every command understands; the
    command gets both as `paths`."""
    return collect(
        "paths",
        lambda _, paths, named: join_paths(paths, named),
        named_option(kind),
        click.argument("paths", nargs=-1, type=kind, metavar=metavar),
    )


_FALLBACK = re.compile(r"auto(?:\(\s*tokens\s*=(?P<tokens>.+)\))?")


def _fallback(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> bool | AutoPart:
    if value is None:
        return False
    match = _FALLBACK.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} must be auto, or auto(tokens=LENGTH)")
    from mockllm.scenario.lengths import read_tokens

    tokens = (match["tokens"] or "").strip()
    try:
        if tokens:
            read_tokens(tokens)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return AutoPart(tokens)


answering_options = server_options(
    dict,
    click.option(
        "--speed",
        type=number,
        metavar="NUMBER",
        default=1.0,
        help="Of timed streams: 2 is twice as fast, 0 leaves all pauses out.",
    ),
    click.option(
        "--fallback",
        callback=_fallback,
        metavar="auto|auto(tokens=LENGTH)",
        help="Answer requests that no scenario answers with an answer made from the request: an "
        "echo, or words, as many as LENGTH says, such as 200 or lognormal(200, p99=1500).",
    ),
    click.option(
        "--strict/--lenient",
        default=True,
        help="Refuse requests that the real service refuses, or not.",
    ),
)
"""Adds the options for how a server answers."""


def _check_ignored(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    from mockllm.scenario.ignoring import flaw_of

    for value in values:
        if flaw := flaw_of(value):
            raise click.BadParameter(f"{value!r} {flaw}")
    return values


def match_ignore_option(option: Option = click.option) -> Callable[..., Any]:
    """Adds the option, or the key of the file, for what is not compared."""
    return option(
        "--match-ignore",
        "ignore",
        multiple=True,
        callback=_check_ignored,
        metavar="WHAT",
        help="What of requests differs from run to run and is not compared: uuid, timestamp, date, "
        "a path in JSON bodies ($.metadata) or /PATTERN/; may be repeated.",
    )


def _paths(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> _Paths:
    """The name of an API and a template, each."""
    try:
        return tuple(read_pair(value, "chat=/gateway/{team}/chat") for value in values)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


path_options = server_options(
    lambda api_paths: {"paths": api_paths},
    click.option(
        "--path",
        "api_paths",
        multiple=True,
        callback=_paths,
        metavar="API=TEMPLATE",
        help="A further path of an API; {name} in it is any one segment. May be repeated.",
    ),
)
"""Adds the options for further paths."""


def read_scenarios(
    paths: tuple[Path, ...], warn: Callable[[Problem], None] | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of files and folders; without any, those that come with mockllm.

    Args:
        warn: called with what is no mistake, and probably not meant.
    """
    from mockllm.play.replay.loading import load, shipped_scenarios

    return load(paths or (shipped_scenarios(),), warn)


def served_scenarios(paths: tuple[Path, ...]) -> tuple[Scenario, ...]:
    """The scenarios that a server has, of files and folders; without any it answers by itself."""
    return read_scenarios(paths) if paths else ()


def _reader(read: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that reads the value of an option, if it has one."""

    def convert(_: click.Context, __: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r} must be {error}") from None

    return convert


def check_agent_name(_: click.Context, __: click.Parameter, value: str | None) -> str:
    """The name of an agent; "" where the option is absent."""
    if value is None:
        return ""
    from mockllm.conformance.agents.launch import check_agent

    check_agent(value)
    return value


AGENT_NAMES = "claude|codex|gemini|opencode"
"""Those of `conformance/agents/agents.yaml`, for the help."""


def timeout_option(default: str) -> Callable[[_Command], _Command]:
    """The option for how long an agent may take: `timeout`, in microseconds."""
    return click.option(
        "--timeout",
        default=default,
        callback=_reader(read_duration),
        metavar="DURATION",
        help="End an agent, and all that it has started, after this time, with exit code 124.",
    )


def agent_options(timeout: str) -> Callable[[_Command], _Command]:
    """Adds the options for an agent as the command: `agent` and `timeout`."""
    agent = click.option(
        "--agent",
        callback=check_agent_name,
        metavar=AGENT_NAMES,
        help="Start this coding agent with a HOME of its own, led to the server; CMD is then the "
        "prompt, and further arguments of the agent's command that asks nobody.",
    )
    return together(timeout_option(timeout), agent)


def _plan(
    written: tuple[str, ...], rate: float | None, seed: str | None, burst: str
) -> dict[str, Any]:
    if written:
        return {"faults": read_plan(written, rate=rate, seed=seed or "0", burst=burst)}
    if rate is not None or seed is not None or burst:
        raise UsageError(
            "--fault-rate, fault-burst and --fault-seed need --fault, such as --fault "
            "cut:after=3events"
        )
    return {}


fault_options = server_options(
    _plan,
    file_key(
        "--fault-burst",
        "burst",
        default="",
        show_default=False,
        metavar="TIMES",
        help="When more answers have faults, such as 'rate=50% every=exponential(60s) "
        "for=uniform(2s, 5s)'.",
    ),
    click.option(
        "--fault-seed",
        "seed",
        metavar="TEXT",
        help="The same seed, session and order of requests give the same faults.",
    ),
    click.option(
        "--fault-rate",
        "rate",
        callback=_reader(read_percent),
        metavar="PERCENT",
        help="How many answers have a fault, such as 10%; default: all, or with fault-burst none "
        "outside of bursts.",
    ),
    click.option(
        "--fault",
        "written",
        multiple=True,
        metavar="NAME[:KEY=VALUE,...]",
        help="What breaks on the way of answers, such as cut:after=3events; several in one "
        "answer are joined by ';'. May be repeated: one of them is drawn for each answer.",
    ),
)
"""Adds the options of faults."""


def _quotas(quotas: tuple[str, ...]) -> dict[str, Any]:
    if not quotas:
        return {}
    from mockllm.play.replay.quota_plan import read_quotas  # few servers need it

    return {"quotas": read_quotas(quotas)}


quota_options = server_options(
    _quotas,
    click.option(
        "--quota",
        "quotas",
        multiple=True,
        metavar="LIMITS",
        help="What clients may use in a minute, such as 'requests=60 tokens=10000 by=key'; what is "
        "beyond it gets status 429. May be repeated: all hold.",
    ),
)
"""Adds the option for quotas."""


def _latency(latency: str | None, latency_seed: str, profile: str | None) -> dict[str, Any]:
    read = None
    # Imported here: they know tapes and protocols, and few servers need them.
    if profile is not None:
        from mockllm.play.replay.latency.profiles import profile as find

        read = find(profile).latency
    if latency is not None:
        from mockllm.play.replay.latency.files import read_latency_option

        try:
            read = read_latency_option(latency).over(read)
        except UsageError as error:
            raise UsageError(f"--{error}") from None
    return {"latency": LatencyPlan(read, latency_seed)}


latency_options = server_options(
    _latency,
    click.option(
        "--profile",
        metavar="NAME",
        help="Latency of a real service, as in `mockllm list profiles`; --latency wins over it.",
    ),
    file_key(
        "--latency-seed",
        default="0",
        metavar="TEXT",
        help="The same seed, session and order of requests give the same times.",
    ),
    click.option(
        "--latency",
        metavar="KEY=VALUE...",
        help="How long answers take that have no times of their own: 'ttft=lognormal(300ms, "
        "p99=2s) itl=normal(20ms, 5ms)'; see docs/latency.md.",
    ),
)
"""Adds the options of latency."""


def _capacity(
    concurrent: int | None, queue: int | None, longest_wait: int | None
) -> dict[str, Any]:
    if concurrent is None:
        if queue is not None or longest_wait is not None:
            raise UsageError("--queue and queue-timeout need --max-concurrent, such as 8")
        return {}
    if longest_wait is not None and not queue:
        raise UsageError("queue-timeout needs --queue: without it no request waits")
    from mockllm.serve.server.limits.capacity import Capacity

    return {"capacity": Capacity(concurrent, queue or 0, longest_wait)}


capacity_options = server_options(
    _capacity,
    file_key(
        "--queue-timeout",
        "longest_wait",
        callback=_reader(read_duration),
        metavar="DURATION",
        help="How long a request waits at most, such as 10s; default: as long as it takes.",
    ),
    click.option(
        "--queue",
        type=click.IntRange(0),
        metavar="M",
        help="How many requests wait for a slot; default: none. Others get the service's error.",
    ),
    click.option(
        "--max-concurrent",
        "concurrent",
        type=click.IntRange(1),
        metavar="N",
        help="Work on at most N requests for answers at the same time, in each worker.",
    ),
)
"""Adds the options of capacity."""


def _hosts(_: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Hosts | None:
    """The hosts that are intercepted; None where the option is absent."""
    if not values:
        return None
    from mockllm.serve.interception.hosts import hosts_from

    return hosts_from(values, param.opts[0])


def _intercept(
    intercept: Hosts | None,
    *,
    proxy: bool | None = None,
    proxy_port: int = 0,
    tunnel: bool = False,
) -> dict[str, Any]:
    """The fields for interception; `proxy` is None where the command has no such option."""
    if intercept is None and not proxy:
        if tunnel:
            raise UsageError(f"--tunnel needs {'--intercept' if proxy is None else '--proxy'}")
        if proxy_port:
            raise UsageError("--proxy-port needs --proxy")
        return {"intercept": None}
    from mockllm.serve.interception.hosts import Hosts
    from mockllm.serve.server.options import InterceptOptions

    password = os.environ.get("MOCKLLM_PROXY_PASSWORD", "")
    return {"intercept": InterceptOptions(intercept or Hosts(), proxy_port, tunnel, password)}


_INTERCEPTING = {
    "proxy": click.option(
        "--proxy",
        is_flag=True,
        help="Be a forward proxy, too: what clients send to known services themselves comes here.",
    ),
    "proxy_port": click.option(
        "--proxy-port",
        type=click.IntRange(0, 65535),
        default=0,
        help="Of the forward proxy; 0 picks a free one.",
    ),
    "intercept": click.option(
        "--intercept",
        multiple=True,
        callback=_hosts,
        metavar="HOST,...",
        help="Answer what is sent to these hosts themselves, such as api.cohere.com, *.ibm.com or "
        "localhost:11434, besides those of known services; `known` names no others; may be "
        "repeated.",
    ),
    "tunnel": click.option(
        "--tunnel",
        is_flag=True,
        help="With --intercept: let what is sent to other hosts pass, untouched.",
    ),
}


def intercept_options(*names: str) -> Callable[..., Any]:
    """Adds options for traffic that is intercepted, by their names, in this order."""
    return server_options(_intercept, *(_INTERCEPTING[name] for name in reversed(names)))
