"""The operations of official SDKs that a server with `--fallback auto` does not know.

`python -m tools.operations` writes docs/maintainers/operations.md; `--check` only reports. The
source of each SDK says with which method and path it calls its service; a server is asked for each.
What it does not know belongs to a group of operations.yaml, the ones in likely use first.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import yaml

from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

PAGE = Path(__file__).parents[1] / "docs" / "maintainers" / "operations.md"
GROUPS = Path(__file__).with_name("operations.yaml")

_VERBS = {f"_{verb}": verb.upper() for verb in ("get", "post", "put", "patch", "delete")}
_VERBS["_get_api_list"] = "GET"
_UNKNOWN = ("mockllm knows no route", "Not allowed to")
"""What the messages of a server have about a path that it does not know."""

_FIELDS = {
    "file_search_store_name": "fileSearchStores/x",
    "model": "models/x",
    "models_url": "models",
    "operationName": "models/x/operations/x",
    "parent": "fileSearchStores/x",
    "resourceName": "models/x",
}
_NAMES = {
    "batches": "batches/x",
    "caches": "cachedContents/x",
    "documents": "fileSearchStores/x/documents/x",
    "file_search_stores": "fileSearchStores/x",
    "models": "models/x",
    "tunings": "tunedModels/x",
}
"""What `google-genai` puts into its paths, by the field, and of `name` at the beginning by the
module."""


@dataclass(frozen=True, order=True)
class Operation:
    """A method of an SDK, and the request that it sends; ids in the path are `x`."""

    sdk: str
    name: str
    method: str
    path: str


# Reading SDKs


def _modules(package: str, folder: str, pattern: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules of a package that match, by their dotted names below a folder."""
    root = Path(str(import_module(package).__file__)).parent / folder
    for file in sorted(root.rglob(pattern)):
        parts = file.relative_to(root).with_suffix("").parts
        if "tests" not in parts and not parts[-1].startswith("__"):
            yield ".".join(parts), ast.parse(file.read_text(encoding="utf-8"))


def _methods(module: ast.Module) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef]]:
    """The methods of the classes that are not asynchronous."""
    for kind in module.body:
        if isinstance(kind, ast.ClassDef) and not kind.name.startswith("Async"):
            yield from ((kind, one) for one in kind.body if isinstance(one, ast.FunctionDef))


def _calls(function: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """The calls of methods in a function, by their names."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node


def _text(node: ast.expr | None) -> str | None:
    """A text in the source; `x` stands for what is put into it. None for no text."""
    if isinstance(node, ast.Call) and node.args:  # `path_template("...")`, `"...".format_map(...)`
        inner = node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "format_map":
            inner = node.func.value
        return _text(inner)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{\w+\}", "x", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "x" for part in node.values)
    return None


def _keyword(call: ast.Call, name: str) -> str | None:
    return next((_text(word.value) for word in call.keywords if word.arg == name), None)


def _generated(package: str) -> Iterator[Operation]:
    """Of the SDKs of OpenAI and Anthropic, whose resources call `self._get(path, ...)`."""
    prefix = "/v1" if package == "openai" else ""
    for module, tree in _modules(package, "resources", "*.py"):
        parts = module.split(".")
        resource = ".".join(parts[:-1] if parts[-1] in parts[:-1] else parts)
        for _, function in _methods(tree):
            for name, call in _calls(function):
                path = _text(call.args[0]) if call.args and name in _VERBS else None
                if path is not None:
                    method = (_keyword(call, "method") or _VERBS[name]).upper()
                    path = f"{prefix}{path}".partition("?")[0]
                    yield Operation(package, f"{resource}.{function.name}", method, path)


def _google() -> Iterator[Operation]:
    for module, tree in _modules("google.genai", "", "*.py"):
        for _, function in _methods(tree):
            paths = [
                node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "path"
            ]
            texts = [path for node in paths if (path := _raw(node))]
            for name, call in _calls(function):
                if name in ("request", "request_streamed") and texts and call.args:
                    method = (_text(call.args[0]) or "post").upper()
                    place = f"{module}.{function.name.lstrip('_')}"
                    yield Operation("google-genai", place, method, _filled(module, texts[-1]))
    for module, tree in _modules("google.genai", "_gaos", "*.py"):
        for _, function in _methods(tree):
            for name, call in _calls(function):
                method = _keyword(call, "method") if name == "_build_request" else None
                if method is not None:
                    paths = (word.value for word in call.keywords if word.arg == "path")
                    path = next(filter(None, map(_raw, paths))).removeprefix("/{api_version}")
                    place = f"{module}.{function.name}"
                    yield Operation(
                        "google-genai", place, method, _filled(module, path.lstrip("/"))
                    )


def _raw(node: ast.expr) -> str | None:
    """The text of a template, with its fields."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _filled(module: str, path: str) -> str:
    """A path of the Gemini API; the last one of a method that knows two services."""
    path = path.replace("{api_version}", "v1beta")
    fields = _FIELDS | ({"name": _NAMES[module]} if path.startswith("{name}") else {})
    named = re.sub(r"\{(\w+)\}", lambda field: fields.get(field[1], "x"), path)
    if named.endswith(":predict"):  # images are all that it makes without an instance
        named = named.replace("models/x", "models/imagen-x")
    return f"/{named}" if named.startswith("upload/") else f"/v1beta/{named}"


def _cohere() -> Iterator[Operation]:
    for module, tree in _modules("cohere", "", "raw*client.py"):
        resource = re.sub(r"\.?raw(_base)?_client$", "", module)
        for _, function in _methods(tree):
            for name, call in _calls(function):
                path = _text(call.args[0]) if name in ("request", "stream") and call.args else None
                method = _keyword(call, "method")
                if path is not None and method is not None:
                    place = ".".join(filter(None, (resource, function.name)))
                    yield Operation("cohere", place, method, f"/{path}")


def _ollama() -> Iterator[Operation]:
    for _, tree in _modules("ollama", "", "_client.py"):
        for _, function in _methods(tree):
            for name, call in _calls(function):
                if name in ("_request", "_request_raw"):
                    texts = [text for text in map(_text, call.args) if text is not None]
                    if len(texts) == 2 and texts[1].startswith("/"):
                        yield Operation("ollama", function.name, *texts)


def _bedrock() -> Iterator[Operation]:
    session: Any = import_module("botocore.session").get_session()
    model = session.get_service_model("bedrock-runtime")
    for name in model.operation_names:
        http = model.operation_model(name).http
        path = re.sub(r"\{[^}]+\}", "x", http["requestUri"])
        yield Operation("botocore", name, http["method"], path)


SDKS = {
    "openai": lambda: _generated("openai"),
    "anthropic": lambda: _generated("anthropic"),
    "google-genai": _google,
    "cohere": _cohere,
    "ollama": _ollama,
    "botocore": _bedrock,
}

_HEADERS = {
    "anthropic": {"anthropic-version": "2023-06-01"},
    "google-genai": {"x-goog-api-key": "k"},
}
"""The headers by which a service is known."""


def operations() -> list[Operation]:
    """The operations of all SDKs, each once."""
    return sorted({operation for read in SDKS.values() for operation in read()})


def unknown(asked: Sequence[Operation]) -> list[Operation]:
    """Those that a server with `--fallback auto` does not know."""
    with (
        ServerThread([], ServerOptions(fallback=True)) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        return [one for one in asked if _is_unknown(client, one)]


def _is_unknown(client: httpx.Client, operation: Operation) -> bool:
    body = {} if operation.method in ("GET", "DELETE") else {"json": {}}
    headers = _HEADERS.get(operation.sdk, {})
    answer = client.request(operation.method, operation.path, headers=headers, **body)
    return answer.status_code in (404, 405) and any(text in answer.text for text in _UNKNOWN)


# The page


@cache
def groups() -> list[dict[str, str]]:
    """The groups of operations that stay unknown, those in likely use first."""
    read: list[dict[str, str]] = yaml.safe_load(GROUPS.read_text(encoding="utf-8"))
    return read


def group_of(operation: Operation) -> dict[str, str] | None:
    """The first group that an operation belongs to; None for one without a reason."""
    name = f"{operation.sdk} {operation.name}"
    # A folded text has a space at each break, which no alternative begins with.
    patterns = ((one, re.sub(r" \|", "|", one["operations"])) for one in groups())
    return next((one for one, pattern in patterns if re.fullmatch(pattern, name)), None)


def page(asked: Sequence[Operation], missing: Sequence[Operation]) -> str:
    """The page with all operations that get a 404."""
    lines = [
        "# Operations of the SDKs that get a 404",
        "",
        "<!-- Written by `python -m tools.operations`; edit tools/operations.yaml instead. -->",
        "",
        f"The official SDKs have {len(asked)} operations, by method and path, of which a server",
        f"with `--fallback auto` knows {len(asked) - len(missing)}. The other {len(missing)} get a",
        "404 with one line. They are below, those in likely use first, each group with a reason.",
        "A test fails for one without a reason, as a new release of an SDK may bring.",
        "",
        "| SDK | operations | known | 404 |",
        "|---|---:|---:|---:|",
    ]
    for sdk in SDKS:
        all_of = sum(one.sdk == sdk for one in asked)
        gone = sum(one.sdk == sdk for one in missing)
        lines.append(f"| {sdk} {version(sdk)} | {all_of} | {all_of - gone} | {gone} |")
    for group in groups():
        found = [one for one in missing if group_of(one) == group]
        if found:
            lines += ["", f"## {group['title']}", "", group["reason"], ""]
            lines += _table(found)
    return "\n".join(lines) + "\n"


def _table(found: Sequence[Operation]) -> Iterator[str]:
    """A line for each resource, with its operations."""
    by_resource: dict[tuple[str, str], list[str]] = {}
    for one in found:
        resource, _, name = one.name.rpartition(".")
        by_resource.setdefault((one.sdk, resource), []).append(name)
    yield "| SDK | resource | operations |"
    yield "|---|---|---|"
    for (sdk, resource), names in by_resource.items():
        yield f"| {sdk} | `{resource or sdk}` | {', '.join(dict.fromkeys(names))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tool; returns 1 if an operation has no reason, or the page is another one."""
    parser = argparse.ArgumentParser(prog="python -m tools.operations", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    asked = operations()
    missing = unknown(asked)
    problems = [
        f"{one.sdk} {one.name} ({one.method} {one.path}) gets a 404, and no group of "
        f"{GROUPS.name} says why"
        for one in missing
        if group_of(one) is None
    ]
    text = page(asked, missing)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        problems.append(f"{PAGE.name} is not up to date; run `python -m tools.operations`")
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
