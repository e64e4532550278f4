"""Loads scenarios with the names of all protocols and quirks: `mockllm.load` and `loads`.

`mockllm.scenario` imports neither protocols nor quirks; it gets their names from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from mockllm.core.errors import MockLLMError, Problem, UsageError
from mockllm.scenario.load import Loading
from mockllm.scenario.model import Scenario
from mockllm.scenario.reading.files import scenario_texts
from mockllm.scenario.reading.nodes import KeyPath
from mockllm.scenario.reading.values import Vocabulary


def _apis() -> tuple[str, ...]:
    from mockllm.wire.protocols import PROTOCOLS

    return tuple(PROTOCOLS)


def _places(api: str) -> tuple[str, ...]:
    from mockllm.wire.protocols import PROTOCOLS
    from mockllm.wire.protocols.extra import extra_places

    return extra_places(PROTOCOLS[api])


def quirk_problem(name: str) -> str | None:
    """Why there is no quirk of this name; None where there is one."""
    # Imported here: some fifty modules, which most requests and scenarios never need.
    from mockllm.play.quirks import find

    try:
        find(name)
    except UsageError as error:
        return str(error)
    return None


def _fault_mistakes(scenario: Scenario) -> Iterable[tuple[KeyPath, str]]:
    from mockllm.play.replay.broken_answer import fault_mistakes

    return fault_mistakes(scenario)


def _native_mistakes(api: str, value: Any) -> Iterable[tuple[KeyPath, str]]:
    from mockllm.wire.protocols import PROTOCOLS
    from mockllm.wire.protocols.native import by_key

    known = PROTOCOLS[api].native
    if known:
        return by_key("type", known)(value)
    title = PROTOCOLS[api].address.title
    return [((), f"is a part that {title} does not have; send an event as it is with 'frame'")]


VOCABULARY = Vocabulary(_apis, _places, quirk_problem, _fault_mistakes, _native_mistakes)
"""The names in `PROTOCOLS` and `QUIRKS`, both imported when they are first needed."""


def load(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    warn: Callable[[Problem], None] | None = None,
) -> tuple[Scenario, ...]:
    """The scenarios of files and folders, in the order of the paths and of the file names.

    Args:
        paths: one path, or several: of files, or of folders that are searched to the bottom for
            `*.yaml` and `*.yml`; hidden files are skipped, and no file is read twice.
        warn: called with what is no mistake, and probably not meant.

    Raises:
        ScenarioError: a file cannot be read or is wrong; it has every problem of every file.
    """
    several = [paths] if isinstance(paths, str | PathLike) else paths
    problems: list[Problem] = []
    texts = scenario_texts([fspath(path) for path in several], problems)
    return Loading(VOCABULARY, in_files=True, problems=problems, warn=warn).load(texts)


def loads(
    text: str, name: str = "<text>", read_file: Callable[[str], bytes] | None = None
) -> tuple[Scenario, ...]:
    """The scenarios in a text. Their tapes (`recorded`) are not looked for.

    Args:
        read_file: reads a file that the text names (`{file: NAME}`).
    """
    return Loading(VOCABULARY, read_file=read_file).load([(name, text)])


def loads_sent(texts: Iterable[tuple[str, str]]) -> tuple[Scenario, ...]:
    """The scenarios in several texts that were sent; they may name no file."""
    return Loading(VOCABULARY, sent=True).load(texts)


def shipped_scenarios() -> Path:
    """The folder of the shipped scenarios: in the installed package, or in a checkout.

    Raises:
        MockLLMError: the folder is missing from the installation.
    """
    advice = ", or name a folder of your own"
    return shipped_folder("the shipped scenarios", "shipped", "scenarios", advice)


def shipped_folder(what: str, installed: str, checkout: str, advice: str = "") -> Path:
    """The folder of something that is shipped.

    Args:
        installed: its path in the package; `checkout` is that in a checkout.
    """
    package = Path(__file__).parents[2]
    for folder in (package / installed, package.parent / checkout):
        if folder.is_dir():
            return folder
    message = f"{what} are not at {package / installed}; reinstall mockllm-harness{advice}"
    raise MockLLMError(message)
