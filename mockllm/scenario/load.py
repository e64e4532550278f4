"""YAML to scenarios, or to the list of all problems.

The steps are in `reading`: `files` reads the text, `nodes` parses it to bounded trees in
which it finds the line of a problem, `document` reads the trees; `check` applies the rules between
values.
This module runs them and compares scenarios with each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from mockllm.core.errors import Problem, ScenarioError
from mockllm.scenario.check import check, similar_to_templates
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import differ_later, routes_of_several_hosts, scenario_key
from mockllm.scenario.reading import document, nodes
from mockllm.scenario.reading.files import read_bytes
from mockllm.scenario.reading.nodes import (
    Mapping,
    Node,
    SourceLocation,
    YamlDocument,
    YamlMark,
    locate_node,
    node_paths,
)
from mockllm.scenario.reading.values import MAX_FINDINGS, Findings, Vocabulary
from mockllm.scenario.reuse import (
    IncludedFile,
    include,
    included_names,
    is_included,
    locate_mistake,
    named_replies,
    read_included,
)


@dataclass(slots=True)
class _Loaded:
    """A scenario, and the marks of its name and of its `match`, or its route without one."""

    scenario: Scenario
    file: str
    name: YamlMark
    match: YamlMark
    matched: str = "match"
    root: Mapping | None = None

    def at(self, mark: YamlMark) -> str:
        return f"{self.file}:{mark.line + 1}:{mark.column + 1}"


@dataclass(slots=True)
class Loading:
    """The scenarios and problems of the texts so far.

    Args:
        in_files: whether texts are those of files, in whose folders other files may be named.
        sent: whether texts were sent, so that no file may be named in them.
        read_file: reads a file that a text names which is in no file; raises OSError where it
            cannot.
        warn: called with what is no mistake, and probably not meant; None: nobody asks.
    """

    vocabulary: Vocabulary
    in_files: bool = False
    sent: bool = False
    read_file: Callable[[str], bytes] | None = None
    problems: list[Problem] = field(default_factory=list)
    loaded: list[_Loaded] = field(default_factory=list)
    included: dict[str, IncludedFile] = field(default_factory=dict)
    warn: Callable[[Problem], None] | None = None

    def load(self, texts: Iterable[tuple[str, str]]) -> tuple[Scenario, ...]:
        """The scenarios in texts, each with the name of its file, or what stands for it.

        Raises:
            ScenarioError: a text is wrong; it has every problem of every text.
        """
        for file, text in texts:
            self._load_text(text, file)
        self._check_names()
        self._check_matches()
        self._check_servers()
        self._warn_of_hosts()
        if self.problems:
            # An included file is read for scenarios, and once more in the folder that is loaded.
            raise ScenarioError(list(dict.fromkeys(self.problems)))
        return tuple([loaded.scenario for loaded in self.loaded])

    def _load_text(self, text: str, file: str) -> None:
        before, count = len(self.problems), 0
        included: Node | None = None
        try:
            text.encode()
            for parsed in nodes.documents(text, file):
                count += 1
                if self.warn is not None:
                    from mockllm.scenario.reading.doubtful_text import doubtful_texts

                    for node, message in doubtful_texts(parsed.root, text.splitlines()):
                        self.warn(_problem_at(file, node.mark, "", message))
                if self.in_files and is_included(parsed.root):
                    included = parsed.root
                    self._read_included(parsed, file)
                else:
                    self._load_document(parsed, file)
                if len(self.problems) - before >= MAX_FINDINGS:
                    message = (
                        f"has {MAX_FINDINGS:,} problems up to here; what follows is not reported"
                    )
                    self.problems.append(_problem_at(file, parsed.root.mark, "", message))
                    return
        except UnicodeEncodeError as error:
            line = text.count("\n", 0, error.start) + 1
            column = error.start - text.rfind("\n", 0, error.start)
            message = "half of a surrogate pair is no character"
            self.problems.append(Problem(file, line, column, "", message))
        except ScenarioError as error:
            self.problems.extend(error.problems)
            return
        if included is not None and count > 1:
            message = "replies and tools for scenarios must be in a file of their own"
            self.problems.append(_problem_at(file, included.mark, "", message))
        if self.warn is not None and len(self.problems) == before:
            from mockllm.scenario.reading.doubtful_text import unreadable_elsewhere

            elsewhere = unreadable_elsewhere(text)
            if elsewhere is not None:
                self.warn(Problem(file, 1, 1, "", elsewhere))
        if not count and len(self.problems) == before:
            message = "holds no scenario; one begins with 'scenario: NAME' and has 'turns'"
            self.problems.append(Problem(file, 1, 1, "", message))

    def _findings(self, parsed: YamlDocument, file: str) -> Findings:
        read = partial(read_bytes, file) if self.in_files else self.read_file
        notes = parsed.notes[:MAX_FINDINGS]
        yaml = file if self.in_files else None
        return Findings(self.vocabulary, notes, read, yaml, sent=self.sent)

    def _load_document(self, parsed: YamlDocument, file: str) -> None:
        findings, root = self._findings(parsed, file), parsed.root
        if not self._name_replies(root, findings, file):
            self.problems += _problems(parsed, findings, file)
            return
        scenario = document.scenario(root, findings)
        if findings.found:
            self.problems += _problems(parsed, findings, file)
        if scenario is None or not isinstance(root, Mapping):
            return
        if self.in_files:
            scenario = replace(scenario, file=file, line=root.mark.line + 1)
        mistakes = check(scenario)
        has_fault = any(inner.fault for turn in scenario.turns for inner in turn.every())
        if has_fault and not mistakes and not findings.found:
            mistakes = list(self.vocabulary.fault_mistakes(scenario))
        for path, message in mistakes:
            self.problems.append(_problem(file, *locate_mistake(root, path, message, findings)))
        if self.warn is not None:
            for path, message in similar_to_templates(scenario):
                self.warn(_problem(file, *locate_mistake(root, path, message, findings)))
        matched = "match" if scenario.route is None or scenario.match is not None else "route"
        named = "scenario" if scenario.server is None else "mcp"
        name, match = (_mark(root, key) for key in (named, matched))
        self.loaded.append(_Loaded(scenario.unroll(), file, name, match, matched, root))

    def _name_replies(self, root: Node, findings: Findings, file: str) -> bool:
        """Reads the named replies of a document, and the files that it includes. False: one of them
        cannot be read, so that nothing can be said of the names that are used."""
        if not isinstance(root, Mapping):
            return True
        findings.replies = named_replies(root, findings, file)
        before = len(findings.found)
        names = included_names(root, findings)
        if len(findings.found) > before:
            return False
        files = [self._include(name, node, findings, file) for node, name in names]
        if None in files:
            return False
        for (node, name), included in zip(names, files, strict=True):
            if included is not None:
                include(included, name, node, findings)
        return True

    def _include(self, name: str, node: Node, findings: Findings, file: str) -> IncludedFile | None:
        """A file that a scenario includes; None where it cannot be read."""
        path = os.path.join(os.path.dirname(file), name)  # noqa: PTH118, PTH120 - no Path: as named
        if path in self.included:
            return self.included[path]
        if findings.read_file is None:
            findings.add(node, f"names the file {name!r}, and this text is in no folder")
            return None
        try:
            documents = list(nodes.documents(findings.read_text(name), path))
        except OSError as error:
            findings.add(node, f"{name!r} {error}; put it there")
            return None
        except ScenarioError as error:
            self.problems += error.problems
            return None
        if len(documents) != 1 or not is_included(documents[0].root):
            message = "must be one document that has 'replies' and 'tools' alone, and no scenario"
            findings.add(node, f"{name!r} {message}")
            return None
        return self._read_included(documents[0], path)

    def _read_included(self, parsed: YamlDocument, file: str) -> IncludedFile:
        known = self.included.get(file)
        if known is not None:
            return known
        assert isinstance(parsed.root, Mapping)
        findings = self._findings(parsed, file)
        self.included[file] = read_included(parsed.root, findings, file)
        if findings.found:
            self.problems += _problems(parsed, findings, file)
        return self.included[file]

    def _check_names(self) -> None:
        """Adds a problem for each scenario that has the name of an earlier one."""
        known: dict[str, _Loaded] = {}
        for loaded in self.loaded:
            name = loaded.scenario.name
            other = known.setdefault(name, loaded)
            if other is not loaded and name:
                server = loaded.scenario.server
                key, own = ("scenario", name) if server is None else ("mcp", server.name)
                message = f"{own!r} is the name of another {key}, at {other.at(other.name)}"
                problem = _problem_at(loaded.file, loaded.name, key, message)
                self.problems.append(problem)

    def _check_matches(self) -> None:
        """Adds a problem for each scenario that competes with an earlier one: same conditions,
        and a protocol in common. Recordings that differ later may compete (`precedence`)."""
        known: dict[object, list[_Loaded]] = {}
        for loaded in self.loaded:
            key = scenario_key(loaded.scenario)
            if key is None:
                continue
            others = known.setdefault(key, [])
            for other in others:
                if differ_later(loaded.scenario, other.scenario):
                    continue
                if loaded.scenario.shares_api(other.scenario):
                    message = (
                        f"matches the same requests as scenario {other.scenario.name!r}, "
                        f"at {other.at(other.match)}; add a condition to one of them, "
                        "or a 'priority'"
                    )
                    problem = _problem_at(loaded.file, loaded.match, loaded.matched, message)
                    self.problems.append(problem)
                    break
            others.append(loaded)

    def _check_servers(self) -> None:
        """Adds the problems of scenarios with the MCP servers that they name. Where a
        text is in no file, the server that it names may be known elsewhere."""
        documents = [loaded.scenario for loaded in self.loaded]
        if not any(scenario.mcp or scenario.calls_servers for scenario in documents):
            return
        servers = {one.server.name: one.server for one in documents if one.server is not None}
        if not (self.in_files or servers):
            return
        from mockllm.scenario.reading.mcp import check_servers  # few scenarios need it

        for loaded in self.loaded:
            for path, message in check_servers(loaded.scenario, servers):
                assert loaded.root is not None
                place = locate_mistake(loaded.root, path, message, Findings(self.vocabulary))
                self.problems.append(_problem(loaded.file, *place))

    def _warn_of_hosts(self) -> None:
        if self.warn is None:
            return
        places = {loaded.scenario.name: loaded for loaded in self.loaded}
        for scenario, warning in routes_of_several_hosts(loaded.scenario for loaded in self.loaded):
            place = places[scenario.name]
            self.warn(_problem_at(place.file, place.match, "route", warning))


def _problems(parsed: YamlDocument, findings: Findings, file: str) -> list[Problem]:
    paths = node_paths(parsed.root)
    # A node that is wrong as YAML gets no second problem for its type.
    reported = {id(node) for node, mark, _ in parsed.notes if mark is node.mark}
    problems = [
        _problem(file, locate_node(paths, node, mark), message)
        for index, (node, mark, message) in enumerate(findings.found)
        if index < len(parsed.notes) or id(node) not in reported
    ]
    # Aliases share a node, so each alias finds the same problem again.
    return list(dict.fromkeys(problems))


def _problem(file: str, location: SourceLocation, message: str) -> Problem:
    return Problem(file, location.line, location.column, location.path, message)


def _mark(root: Mapping, key: str) -> YamlMark:
    node = root.entries.get(key)
    return (node or root).mark


def _problem_at(file: str, mark: YamlMark, path: str, message: str) -> Problem:
    return Problem(file, mark.line + 1, mark.column + 1, path, message)
