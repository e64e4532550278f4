"""The golden record: what mockllm sends, prints, writes and finds.

    python -m tests.golden.record --check            prints what differs from the record
    python -m tests.golden.record --write            writes the record; `git diff` shows the change
    python -m tests.golden.record --against COMMIT   prints what differs from another commit
    python -m tests.golden.record --dump DIR         writes all texts, for `diff -ra`

`--only GROUP` may be repeated. A key begins with the name of its group. The record has short texts
as they are. Of long ones, 400 MB, it has size and digest; `--against` shows what changed in them.
What a recording beside the checkout gives is a digest, too: recordings are not copied here.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import http.client
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from click.testing import CliRunner

from tests.corpus import CORPUS
from tests.golden import access
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).parent / "texts"
SUITE_SAMPLE = 40

LONGEST = {"cli": 10_000, "server": 10_000}
"""Bytes of a text that is recorded as it is, where they are not 4,000."""

MARK = "▸"
"""Begins a key, a digest, and in a text each character that is not visible (`▸d;` is a carriage
return), or the mark itself."""

_NOT_VISIBLE = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff▸]"
)

Texts = Iterator[tuple[str, bytes]]
"""Keys without their group, and the text of each."""


def _joined(parts: Iterable[tuple[str, bytes]]) -> bytes:
    return b"".join(b"== %b\n%b\n" % (name.encode(), data) for name, data in parts)


def _json(value: object) -> bytes:
    return access.as_json(value).encode("utf-8", "surrogatepass")


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder as the working directory, so that texts have relative paths only."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        yield Path()


def _run(*arguments: object, stdin: str | None = None, scenarios: str | None = None) -> bytes:
    """The output of a command, and its exit code.

    Args:
        scenarios: a shipped file, to be read instead of all of them; the text does not name it.
    """
    given = [str(argument) for argument in arguments]
    read = [] if scenarios is None else ["--scenarios", scenarios]
    runner = CliRunner()
    result = runner.invoke(
        access.command_line, [*given, *read], input=stdin, catch_exceptions=False
    )
    head = f"$ mockllm {' '.join(given)}\nexit code {result.exit_code}\n".encode()
    return head + result.stdout_bytes + b"--\n" + result.stderr_bytes


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder by its path, but hidden ones: a lock names its last holder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            yield path.as_posix(), path.read_bytes()


# The bytes on the wire


def _wire() -> Texts:
    yield from _wire_of_scenarios()
    yield from _wire_of_samples()
    for api in access.APIS:
        for name, _ in access.quirk_forms(api):
            yield f"quirk-{api}/{name}", _joined(_with_quirk(api, name))
    yield from _refusals()


def _wire_of_scenarios() -> Texts:
    for scenario in access.shipped():
        for api in access.APIS:
            for form, stream in (("stream", True), ("body", False)):
                turns = access.every_turn(scenario, api, stream=stream)
                yield f"scenario-{scenario.name}/{api}/{form}", _joined(turns)


def _wire_of_samples() -> Texts:
    for sample in access.samples():
        for api in access.APIS:
            for form, stream in (("stream", True), ("body", False)):
                yield f"{sample.name}/{api}/{form}", access.played(sample, api, 0, stream=stream)


def _with_quirk(api: str, name: str) -> Texts:
    """Every sample with a quirk; the long one only if it is the sample of the quirk."""
    (own,) = (sample for form, sample in access.quirk_forms(api) if form == name)
    for sample in access.samples():
        if sample.name == "sample-long-text" != own.name:
            continue
        for form, stream in (("stream", True), ("body", False)):
            answer = access.played(sample, api, 0, stream=stream, quirks=(name,))
            yield f"{sample.name} {form}", answer


PICKY = """
scenario: picky
match: {user: Hello}
turns:
  - request: {offers: [absent], body: {temperature: 0.5}, tool_choice: required}
    reply: {tool: f, id: call_1}
  - request: {results: {call_1: {equals: exactly this}}}
    reply: {text: Done.}
---
scenario: near
match: {user: {equals: Hello there}, model: gpt-*, tools: [f]}
turns: [{reply: {text: Hi}}]
"""


def _refusals() -> Texts:
    """The error answers: unmatched requests, failed conditions, and requests that are not valid."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for api in access.APIS:
        for name, answer in access.refusals(api, PICKY, dict(_bodies(api))):
            found.setdefault(name, []).append((api, answer))
    for name, answers in found.items():
        yield f"refused/{name}", _joined(answers)


def _bodies(api: str) -> Iterator[tuple[str, bytes]]:
    yield from {
        "no json": b'{"model": ',
        "a list": b"[]",
        "no utf-8": b'{"model": "\xff"}',
        "nested": b'{"a":' * 100_000,
        "empty": b"{}",
    }.items()
    least = access.first_request(api, "Hello")
    changes = {
        "conditions": {},
        "unmatched": access.first_request(api, "What nobody answers"),
        "nearly matched": access.first_request(api, "Hello there"),
        "temperature": {"temperature": 3, "generationConfig": {"temperature": "hot"}},
        "tools": {"tools": "none"},
        "unknown": {"no_such_parameter": 1, "toolConfig": {"functionCallingConfig": 1}},
        "no messages": {"messages": [], "input": [], "contents": []},
        "odd messages": {"messages": [1], "input": [{"type": "odd"}], "contents": [{"parts": 1}]},
        "stream": {"stream": "yes", "threadId": 1, "contents": None},
        "unknown scenario": {"model": "mock/no-such-scenario"},
    }
    for name, change in changes.items():
        yield name, json.dumps({**least, **change}).encode()


# A server, over its socket


def _server() -> Texts:
    """Whole answers of a server with their heads: routes, lookups, control."""
    options = access.ServerOptions(speed=0)
    with access.ServerThread(access.shipped(), options) as served:
        for api in access.APIS:
            yield from _answered(served.url, api, _requests_of_api(api))
        path, headers = access.address("responses")
        body = json.dumps(access.first_request("responses", "stored")).encode()
        answer = _answer(served.url, ("POST", path, headers, body))
        found = re.search(rb"resp_\w+", answer)
        stored = found[0].decode() if found else "none"
        yield from _answered(served.url, "stored", _requests_of_stored(path, stored, headers))
        yield from _answered(served.url, "paths", _requests_of_paths())
        yield from _answered(served.url, "control", _control_requests())


def _answered(url: str, kind: str, requests: Iterable[tuple[str, _Request]]) -> Texts:
    for name, request in requests:
        yield f"{kind}/{quote(name, ' ?=')}", _answer(url, request)


def _answer(url: str, request: _Request) -> bytes:
    """Head and body of an answer, without fields that differ in each run."""
    host, _, port = url.removeprefix("http://").partition(":")
    method, path, headers, body = request
    with contextlib.closing(
        http.client.HTTPConnection(host, int(port), timeout=GIVE_UP)
    ) as connection:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
    heads = [(name.lower(), value) for name, value in response.getheaders()]
    plain = re.sub(TIMES, rb'"\1":0', data.replace(f":{port}".encode(), b":PORT"))
    left_out = ("date",) if plain == data else ("date", "content-length")
    lines = [f"{name}: {value}" for name, value in heads if name not in left_out]
    return "\n".join([f"{response.status} {response.reason}", *lines, "", ""]).encode() + plain


TIMES = rb'"(at|duration|ended|began|started|last|age|connection)": ?[0-9.e-]+'
"""Fields of control answers that are times, or ports of clients."""
_Request = tuple[str, str, dict[str, str], bytes | None]


def _requests_of_api(api: str) -> Iterator[tuple[str, _Request]]:
    path, headers = access.address(api)
    headers = {"content-type": "application/json", **headers}
    body = json.dumps(access.first_request(api, "the secret numbers")).encode()
    yield "stream", ("POST", path, headers, body)
    whole = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    body = body.replace(b'"stream": true', b'"stream": false')
    yield "body", ("POST", whole, headers, body)
    yield "listed", ("POST", path.replace("?alt=sse", ""), headers, body)
    yield "no json", ("POST", path, headers, b"{")
    yield "no credentials", ("POST", path, {}, body)
    yield "session", ("POST", f"/s/own{path}", headers, body)
    yield "quirk", ("POST", path, {**headers, "x-mockllm-quirk": "sse-crlf"}, body)
    for method in ("GET", "OPTIONS"):
        yield method, (method, path, headers, None)
    for name in ("/v1/models", "/v1beta/models", "/v1/models/gpt-4o", "/v1/models/mock/auto"):
        yield name, ("GET", name, headers, None)
    for name in ("/v1/messages/count_tokens", f"/v1beta/models/{access.MODEL}:countTokens"):
        yield name, ("POST", name, headers, body)


def _requests_of_stored(
    path: str, stored: str, headers: dict[str, str]
) -> Iterator[tuple[str, _Request]]:
    for name in (stored, f"{stored}/input_items", f"{stored}?stream=true", "resp_unknown"):
        yield name, ("GET", f"{path}/{name}", headers, None)
    for name in ("DELETE", "DELETE again"):
        yield name, ("DELETE", f"{path}/{stored}", headers, None)


def _requests_of_paths() -> Iterator[tuple[str, _Request]]:
    for name in ("/", "/v1", "/v1/embeddings", "/openai/models", "/s/a%20b/v1/models", "/agui/no"):
        for method in ("GET", "POST", "HEAD"):
            yield f"{method} {name}", (method, name, {}, None)


def _control_requests() -> Iterator[tuple[str, _Request]]:
    for name in ("health", "scenarios", "journal", "verify", "sessions", "sessions/default", "no"):
        yield name, ("GET", f"/_mockllm/{name}", {}, None)
    for query in (
        "journal?session=own",
        "journal?session=no",
        "verify?depth=x",
        "verify?session=own",
    ):
        yield query, ("GET", f"/_mockllm/{query}", {}, None)
    created = json.dumps({"session": "mine"}).encode()
    yield "a session", ("POST", "/_mockllm/sessions", {}, created)
    yield "an odd session", ("POST", "/_mockllm/sessions", {}, b'{"session": "a b"}')
    yield "another host", ("GET", "/_mockllm/health", {"host": "example.com"}, None)
    yield "another origin", ("GET", "/_mockllm/health", {"origin": "http://example.com"}, None)
    yield "delete", ("DELETE", "/_mockllm/sessions/default", {}, None)


# The command line


def _cli() -> Texts:
    yield from _help()
    with _folder() as folder:
        yield from _lists()
        yield from _shows()
        yield from _validations(folder)
    with _folder() as folder:
        yield from _scrubs(folder)


def _help() -> Texts:
    yield "help/mockllm", _run("--help")
    for name in sorted(access.command_line.list_commands(None)):
        yield f"help/{name}", _run(name, "--help")
    yield "help/no such command", _run("shw") + _run("list", "--jsn") + _run("validate")
    yield "help/version", _run("--version") + _run()


def _lists() -> Texts:
    yield "list/plain", _run("list") + _run("list", "--json")
    yield "list/missing", _run("list", "missing.yaml")
    yield "quirks/all", _run("list", "quirks") + _run("list", "quirks", "--json")
    for api in access.APIS:
        yield (
            f"quirks/{api}",
            _run("list", "quirks", "--api", api) + _run("list", "quirks", "--api", api, "--json"),
        )
    for api in access.APIS:
        names = dict.fromkeys(name.partition(":")[0] for name, _ in access.quirk_forms(api))
        yield f"quirks/each/{api}", _run("list", "quirks", *names, "--api", api)
    yield "quirks/unknown", _run("list", "quirks", "chat-idx-missing")
    yield "schema", _run("schema")
    yield "env/plain", _run("env") + _run("env", "--export", "--session", "mine")
    yield "env/url", _run("env", "--url", "https://h:1/p/") + _run("env", "--url", "h")
    yield "env/session", _run("env", "--session", "a b")
    yield "init", _run("init", "made") + _joined(_files(Path("made"))) + _run("init", "made")


def _shows() -> Texts:
    for scenario in access.shipped():
        name = scenario.name
        printed = (
            _run("show", name, "--api", api, *more, scenarios=scenario.file)
            for api in access.APIS
            for more in _SHOW_OPTIONS
        )
        yield f"show/{name}", b"\n".join(printed)
        exported = (
            _run("export", name, "--to", "vcr", "--api", api, scenarios=scenario.file)
            for api in access.APIS
        )
        yield f"export/{name}", access.written(scenario).encode() + b"\n".join(exported)
    yield "show/unknown", _run("show", "secret-nmbers") + _run("show", "auto", "--quirk", "no-such")
    yield "show/sample", _run("show", "sample-call", "--quirk", "chat-index-missing")
    usage = '{"stream_options": {"include_usage": true}}'
    printed = (_run("show", "unicode", "--request", "-", stdin=one) for one in (usage, "[]", "{"))
    yield "show/request", b"".join(printed)


_SHOW_OPTIONS = (
    (),
    ("--body",),
    ("--timing",),
    ("--turn", "2", "--timing"),
    ("--attempt", "1"),
    ("--quirk", "sse-crlf"),
)


def _validations(folder: Path) -> Texts:
    for kind, rows in access.BAD_DOCUMENTS.items():
        yield f"validate/{kind}", _joined(_validated(folder / "bad.yaml", rows))
    for title, text, _ in access.BAD_DOCUMENTS["meanings"][:20]:
        path = folder / "many" / f"{title.replace('/', '-')}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    yield "validate/many", _run("validate", "many") + _run("validate", "--json", "many")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for scenario in access.shipped():
            Path(name, f"{scenario.name}.yaml").write_text(access.written(scenario))
        shutil.move(name, "good")
        Path(name).mkdir()
    yield "validate/losses", _run("validate", "--losses", "good")


def _validated(path: Path, rows: list[tuple[str, str, list[str]]]) -> Texts:
    for title, text, _ in rows:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        yield title, _run("validate", path) + _run("validate", "--json", path)


def _scrubs(folder: Path) -> Texts:
    """Secrets of every kind in files of every kind: reported, then replaced."""
    _write_secrets(folder / "s")
    yield "scrub/check", _run("scrub", "s", "--check")
    yield "scrub/options", _run("scrub", "s", "--check", "--redact", "place-[0-9]")
    yield "scrub/wrong", _run("scrub", "s", "--redact", "(")
    # Which of many secrets has which number depends on the order of a set, PYTHONHASHSEED.
    done = _run("scrub", "s") + _joined(_files(folder / "s"))
    yield "scrub/done", re.sub(rb"(REDACTED-|hidden-)\d+x*", rb"\1N", done)
    yield "scrub/alone", _joined(_scrubbed_alone(folder / "one.json"))
    yield "scrub/again", _run("scrub", "s", "--check")


def _scrubbed_alone(path: Path) -> Texts:
    """Every secret alone in a file, so that its placeholder is certain."""
    for number, secret in enumerate(_secrets()):
        path.write_text(json.dumps({"a": secret, "b": [secret, "hidden-1"]}))
        yield str(number), _run("scrub", path) + path.read_bytes()


def _secrets() -> list[str]:
    drawn = random.Random("golden")
    return [access.secret(drawn, index)[0] for index in range(44)]


def _write_secrets(folder: Path) -> None:
    folder.mkdir()
    secrets = _secrets()
    document = {"a": secrets, "b": {"place-1": secrets[0]}}
    (folder / "a.json").write_text(json.dumps(document, indent=1))
    (folder / "b.txt").write_text("\n\n".join(secrets))
    lines = "".join(f"  - reply: {{text: {json.dumps(secret)}}}\n" for secret in secrets)
    (folder / "c.yaml").write_text(f"scenario: c # eve@corp.io\nturns:\n{lines}")
    (folder / "d.jsonl").write_text("".join(json.dumps({"x": secret}) + "\n" for secret in secrets))
    (folder / "e.sse").write_text("".join(f"data: {json.dumps(secret)}\n\n" for secret in secrets))
    (folder / "broken.1.jsonl").write_text('{"mockllm-tape": 1}\n')


# The checking kit


MUTANTS = access.MUTANTS[::24]
"""Some accumulators with a mistake; tests/checking/judging judges the reports on all of them."""


def _kit() -> Texts:
    yield "invariants", _json(access.invariants())
    for api, level in access.levels():
        found = [(case, data) for case, data in access.kit_cases(api, level)]
        facts = [(one.name, _json(access.case_json(one)) + b"\n" + data) for one, data in found]
        yield f"cases/{api}/{level}", _joined(facts)
        outcomes = [(name, _json(value)) for name, value in access.by_reference(api, level)]
        yield f"reference/{api}/{level}", _joined(outcomes)
    for api in access.APIS:
        yield f"bodies/{api}", _json(access.wrong_bodies(api))
        yield f"samples/{api}", _json(list(access.sample_cases(api)))
    for mutant in MUTANTS:
        report, printed = access.report_of(mutant)
        text = _json(report) + b"\n" + printed.encode("utf-8", "surrogatepass")
        # Where a mutant stands is no behaviour of the kit.
        text = re.sub(rb"\(\w+\.py:\d+ in ", b"(", text)
        text = re.sub(rb"tests\.checking\.mutants\.\w+", b"tests.checking.mutants", text)
        yield f"mutant/{mutant}", re.sub(rb"unknown fields \{(.*?)\}", _sorted_fields, text)


def _sorted_fields(found: re.Match[bytes]) -> bytes:
    """The set in a mutant's message, sorted."""
    return b"unknown fields " + b", ".join(sorted(found[1].split(b", ")))


# Requests, and conversations


def _requests() -> Texts:
    for scenario in access.shipped():
        conversations = ((api, _joined(access.conversation(scenario, api))) for api in access.APIS)
        yield f"conversation/{scenario.name}", _joined(conversations)
    urls = {api: f"http://127.0.0.1:1/{api}/v1" for api in access.APIS}
    yield "environment/all", _json(access.environments(urls))
    for api, url in urls.items():
        yield f"environment/{api}", _json(access.environments({api: url}))


def _verify() -> Texts:
    found: dict[str, list[tuple[str, bytes]]] = {}
    for name, verdict in access.bad_conversations():
        bad, _, how = name.partition("/")
        found.setdefault(bad, []).append((how, _json(verdict)))
    for bad, verdicts in found.items():
        yield f"bad/{bad}", _joined(verdicts)
    for api in access.APIS:
        verdicts = [(name, _json(value)) for name, value in access.shipped_conversations(api)]
        yield f"begun/{api}", _joined(verdicts)


# Importing


def _imported(path: Path, out: str = "out") -> bytes:
    """The import of a file or folder: report, files, and the report of a second import."""
    report = _run("import", path, "-o", out)
    files = _joined(_files(Path(out))) if Path(out).exists() else b""
    return report + files + _run("import", path, "-o", out, "--json")


def _imported_alone(source: Path) -> bytes:
    """The import of a copy of a file or folder, in an empty folder."""
    with _folder():
        return _imported(_copied(source))


def _copied(source: Path) -> Path:
    copy = Path(source.name)
    if source.is_dir():
        shutil.copytree(source, copy)
    else:
        shutil.copyfile(source, copy)
    return copy


def _imports() -> Texts:
    for path in sorted((CORPUS / "cassettes").glob("*.yaml")):
        yield f"cassettes/{path.stem}", _imported_alone(path)
    for path in sorted((CORPUS / "streams").glob("*/*/")):
        yield f"streams/{path.parent.name}/{path.name}", _imported_alone(path)
    for path in _of_suite():
        yield f"suite/{_name(path)}", _imported_alone(path)
    for name in ("cassettes", "streams/anthropic", "streams/gemini", "streams/responses"):
        yield f"together/{name.replace('/', '-')}", _imported_alone(CORPUS / name)


def _of_suite() -> list[Path]:
    """Some cassettes of the suite, always the same."""
    found = sorted((CORPUS / "suite").rglob("*.yaml"), key=lambda one: _digest(_name(one).encode()))
    return sorted(found[:SUITE_SAMPLE])


def _name(path: Path) -> str:
    return path.relative_to(CORPUS / "suite").with_suffix("").as_posix().replace("/", "-")


def _written_files() -> Texts:
    """Imports of kinds of files that the corpus lacks, and of exported files."""
    with _folder():
        Path("a.har").write_text(json.dumps({"log": {"version": "1.2", "entries": _entries()}}))
        yield "har", _imported(Path("a.har"), "har")
        Path("fixtures.json").write_text(json.dumps({"fixtures": FIXTURES}))
        yield "aimock", _imported(Path("fixtures.json"), "aimock")
        for api in access.APIS:
            yield f"sse/{api}", _imported(_sse_dump(api), f"sse-{api}")
        for scenario in access.shipped():
            name = scenario.name
            _run("export", name, "--to", "vcr", "-o", f"{name}.yaml")
            if Path(f"{name}.yaml").exists():
                yield f"vcr/{name}", _imported(Path(f"{name}.yaml"), f"vcr-{name}")
        yield "scrubbed", _run("scrub", "har", "--redact", "Hel+o") + _joined(_files(Path("har")))
        Path("odd.yaml").write_text("scenario: a\nturns: []\n")
        yield "odd", _run("import", "odd.yaml", "-o", "odd") + _run("import", "no", "-o", "odd")


def _sse_dump(api: str) -> Path:
    folder = Path(f"dump-{api}")
    folder.mkdir()
    (folder / "answer.sse").write_bytes(_stream("sample-text-and-two-calls", api))
    (folder / "request.json").write_text(json.dumps(access.first_request(api, "Two calls")))
    (folder / "alone.sse").write_bytes(_stream("sample-reasoning", api))
    return folder


def _stream(sample: str, api: str) -> bytes:
    result = CliRunner().invoke(access.command_line, ["show", sample, "--api", api])
    return result.stdout_bytes


def _entries() -> list[dict[str, object]]:
    """An archive with an answer of each API to some samples, and secrets in the requests."""
    entries = []
    for api in access.APIS:
        path, headers = access.address(api)
        for sample in ("sample-text", "sample-two-calls", "sample-reasoning", "sample-unicode"):
            sent = access.first_request(api, f"{sample}, says eve@corp.io")
            request = {
                "method": "POST",
                "url": f"https://llm.example{path}",
                "headers": [{"name": name, "value": value} for name, value in headers.items()],
                "postData": {"mimeType": "application/json", "text": json.dumps(sent)},
            }
            content = {"mimeType": "text/event-stream", "text": _stream(sample, api).decode()}
            event_stream = {"name": "content-type", "value": "text/event-stream"}
            response = {"status": 200, "headers": [event_stream], "content": content}
            began = {"startedDateTime": f"2026-01-02T03:04:{len(entries):02}.500Z"}
            entries.append({**began, "request": request, "response": response})
    return entries


FIXTURES = [
    {"match": {"userMessage": "hello"}, "response": {"content": "Hi!"}},
    {"match": {"userMessage": "json"}, "response": {"content": {"a": [1, None]}}},
    {"match": {"userMessage": "again"}, "response": {"content": ""}, "chunkSize": 3},
    {
        "match": {"userMessage": "tools", "toolName": "f"},
        "response": {"toolCalls": [{"name": "f", "arguments": '{"a":1}'}], "content": "Wait."},
    },
    {"match": {"toolCallId": "call_1"}, "response": {"content": "Done."}},
    {"match": {"model": "gpt-4"}, "response": {"error": {"message": "No."}, "status": 429}},
    {"match": {"odd": 1}, "response": {"content": "x"}},
    {"match": {"userMessage": "image"}, "response": {"image": {"url": "x"}}},
]


def _corpus() -> Texts:
    """The normalised form and the detected API of every stream, and the API of every exchange."""
    for name, found in access.streams(CORPUS / "streams"):
        yield f"streams/{name}", _json(found)
    for path in sorted((CORPUS / "cassettes").glob("*.yaml")):
        yield f"cassettes/{path.stem}", _json(access.exchanges(path, path.name))
    folders = sorted({path.parent for path in (CORPUS / "suite").rglob("*.yaml")})
    for folder in folders:
        paths = sorted(folder.glob("*.yaml"))
        found = ((path.name, _json(access.exchanges(path, path.name))) for path in paths)
        yield f"suite/{_name(folder)}", _joined(found)


GROUPS: dict[str, Callable[[], Texts]] = {
    "wire": _wire,
    "server": _server,
    "cli": _cli,
    "kit": _kit,
    "requests": _requests,
    "verify": _verify,
    "made": _written_files,
    "import": _imports,
    "corpus": _corpus,
}
OF_CORPUS = ("import", "corpus")
"""The groups that need recorded traffic."""


# The record


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]


def _entry(group: str, data: bytes) -> str:
    """What the record has of a text."""
    if group in OF_CORPUS or len(data) > LONGEST.get(group, 4_000):
        return f"{MARK}{len(data):,} bytes, sha256 {_digest(data)}\n"
    return visible(data) + "\n"


def visible(data: bytes) -> str:
    """A text as it is recorded."""
    text = data.decode("utf-8", "surrogateescape")
    return _NOT_VISIBLE.sub(lambda found: f"{MARK}{ord(found[0]):x};", text)


def entries(group: str, dump: Path | None = None) -> dict[str, str]:
    """The entries of a group by key; with `dump`, the texts are written there."""
    found: dict[str, str] = {}
    for name, data in GROUPS[group]():
        key = f"{group}/{name}"
        if key in found:
            raise ValueError(f"two texts have the key {key!r}")
        found[key] = _entry(group, data)
        if dump is not None:
            path = dump / f"{key}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return found


def recorded(group: str) -> dict[str, str]:
    """The committed entries of a group."""
    found: dict[str, str] = {}
    for path in (RECORD / group).glob("*.txt"):
        for section in path.read_text(encoding="utf-8").split(f"{MARK} ")[1:]:
            key, _, entry = section.partition("\n")
            found[key] = entry
    return found


def _write(group: str, found: dict[str, str]) -> None:
    """A file for all keys that have the first two parts of their names in common."""
    shutil.rmtree(RECORD / group, ignore_errors=True)
    files: dict[str, list[str]] = {}
    for key, entry in sorted(found.items()):
        files.setdefault(key.split("/")[1], []).append(f"{MARK} {key}\n{entry}")
    for name, sections in files.items():
        path = RECORD / group / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(sections), encoding="utf-8", newline="\n")


Pair = tuple[str, str | None, str | None]
"""A key, and its text before and after; None where there is none."""


def _since_record(groups: list[str], dump: Path | None) -> Iterator[Pair]:
    for group in groups:
        before, after = recorded(group), entries(group, dump)
        for key in sorted(before.keys() | after.keys()):
            yield key, before.get(key), after.get(key)


def _since_commit(groups: list[str], commit: str) -> Iterator[Pair]:
    """Whole texts, and those of another commit, which is checked out and run."""
    with tempfile.TemporaryDirectory() as name:
        checkout, before, after = (Path(name, part) for part in ("checkout", "before", "after"))
        if CORPUS.is_dir():
            Path(name, CORPUS.parent.name).symlink_to(CORPUS.parent)
        worktree = ["git", "-C", ROOT, "worktree"]
        subprocess.run([*worktree, "add", "--quiet", "--detach", checkout, commit], check=True)
        try:
            only = [argument for group in groups for argument in ("--only", group)]
            dump = [sys.executable, "-m", "tests.golden.record", "--dump", before, *only]
            subprocess.run(dump, cwd=checkout, check=True)
        finally:
            subprocess.run([*worktree, "remove", "--force", checkout], check=True)
        for group in groups:
            entries(group, after)
        files = {path.relative_to(top) for top in (before, after) for path in top.rglob("*.txt")}
        for file in sorted(files):
            yield str(file.with_suffix("")), _read(before / file), _read(after / file)


def _read(file: Path) -> str | None:
    return visible(file.read_bytes()) if file.exists() else None


def differences(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    """The keys with different texts by their difference, which many may have in common."""
    found: dict[str, list[str]] = {}
    for key, before, after in pairs:
        if before != after:
            lines = difflib.unified_diff(_lines(before), _lines(after), n=1, lineterm="")
            found.setdefault("\n".join([*lines][2:]), []).append(key)
    return found


def _lines(text: str | None) -> list[str]:
    """Lines that end behind commas, too: so those of JSON are short."""
    lines = ["(no such key)"] if text is None else text.split("\n")
    return [piece for line in lines for piece in re.findall("[^,]{1,400},?|,", line) or [""]]


def report(found: dict[str, list[str]]) -> str:
    """The differences for people, of each the first 60 lines, and how many keys differ."""
    shown: list[str] = []
    for difference, keys in found.items():
        lines = difference.split("\n")
        shown += [f"== {key}" for key in keys] + lines[:60]
        shown += [f"... and {len(lines) - 60} lines"] if len(lines) > 60 else []
    return "\n".join([*shown, f"{sum(map(len, found.values()))} keys differ"])


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--check", action="store_true", help="compare with the record (default)")
    parser.add_argument("--write", action="store_true", help="write the record")
    parser.add_argument("--against", metavar="COMMIT", help="compare with whole texts of a commit")
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP")
    parser.add_argument("--dump", type=Path, metavar="DIR", help="write the texts below DIR")
    given = parser.parse_args(arguments)
    dump = given.dump and given.dump.resolve()
    groups = [one for one in given.only or GROUPS if one not in OF_CORPUS or CORPUS.is_dir()]
    if given.write or (dump and not given.check):
        for group in groups:
            found = entries(group, dump)
            if given.write:
                _write(group, found)
        return 0
    pairs = _since_commit(groups, given.against) if given.against else _since_record(groups, dump)
    differing = differences(pairs)
    print(report(differing))
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
