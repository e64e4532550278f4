"""Runs a Python client as a runner: `python runner.py FILE FUNCTION`. Standard library only.

FILE is an adapter. Its FUNCTION takes a `Job` and returns the outcome, with the keys of the
protocol of runners (docs/runner-protocol.md, level `http`); a key that is left out is a field that
the client has no place for. `client.toml` beside the adapter says what the client is: the entry
whose command ends with FUNCTION. Lines are read from standard input until it ends.

An exception of the client is its error, with the place that raised it. If that is in the adapter,
the case says nothing about the client.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import platform
import re
import sys
import sysconfig
import threading
import tomllib
import traceback
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

from faults import outcomes_with_faults
from job import Job

__all__ = ["main"]

_CRASHES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RecursionError,
    TypeError,
    UnicodeError,
)
"""Exceptions that point to a bug in the client: a user cannot act on them."""

_OFF = {
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "false",
    # Neither a machine's credentials nor its settings of AWS count.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    # Without it litellm downloads its table of prices at import.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OTEL_SDK_DISABLED": "true",
}
"""All traffic is loopback: telemetry and downloads are off."""

_FOREIGN = (
    *("anthropic_", "aws_", "co_api_", "cohere_", "gemini_", "google_", "langchain_", "langsmith_"),
    *("litellm_", "ollama_", "openai_"),
)


def main(file: str, function: str) -> None:
    """Answers the jobs on standard input with one function of an adapter."""
    _alone()
    # Clients print; their output must not be mixed with the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    entry = _entry(Path(file), function)
    client: Client | None = None
    for line in sys.stdin:
        job = json.loads(line)
        if "mockllm" in job:
            _check(job, entry)
            client = _loaded(Path(file), function)
            _write(answers, _hello(job["mockllm"], entry, file))
        elif client is None:
            sys.exit("the first line has to be that of mockllm, with `mockllm` and `api`")
        else:
            _answer(answers, client, job)
    for thread in _THREADS:
        thread.join()


Client = Callable[[Job], dict[str, Any]]

_FIELDS = ("api", "base_url", "prompt", "model", "tools", "deadline")
_FAULT_FIELDS = ("tries", "idle_timeout", "requests", "together", "cancel")
_LATE = 4.0
"""Seconds after which no answer is expected; mockllm counts one as late long before."""
_THREADS: list[threading.Thread] = []
"""Of cases with a fault, which run side by side: most of their time they wait."""


def _answer(answers: TextIO, client: Client, job: dict[str, Any]) -> None:
    """Answers a case; one with a fault in a thread of its own."""
    id, has_fault = job["id"], "tries" in job
    names = _FIELDS + _FAULT_FIELDS if has_fault else _FIELDS
    case = Job(**{key: job[key] for key in names if key in job})
    if not has_fault:
        _write(answers, {"id": id, **outcome(client, case)})
        return

    def play() -> None:
        found: list[dict[str, Any]] = []
        one = threading.Thread(
            target=lambda: found.append(outcomes_with_faults(client, raised, case)), daemon=True
        )
        one.start()
        one.join(case.deadline + _LATE)
        # A client that waits for an hour must not stop the other cases.
        late = {"crash": f"no answer {_LATE:g} s after the deadline"}
        _write(answers, {"id": id, **(found[0] if found else late)})

    _THREADS.append(threading.Thread(target=play, daemon=True))
    _THREADS[-1].start()


def outcome(client: Client, job: Job) -> dict[str, Any]:
    """The outcome of a client; what it raises is its error.

    Raises:
        ImportError: the client cannot be run.
    """
    try:
        return client(job)
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 - any exception of a client is its outcome
        return raised(error)
    finally:
        # Connections of clients that are not closed would pile up until Python looks for them.
        gc.collect(0)


def raised(error: Exception) -> dict[str, Any]:
    """The outcome of a client that raised: a crash, or an error that it reports."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    report = {"message": _message(error), "raised": _raised_at(error)}
    return {"crash": report} if isinstance(error, _CRASHES) else {"errors": [report]}


def _message(error: Exception) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as other:  # noqa: BLE001 - a client's exception may have any `__str__`
        text = f"its message raises {type(other).__name__}"
    return f"{name}: {text}" if text else name


def _raised_at(error: Exception) -> str:
    """The innermost frame, as `FILE:LINE in FUNCTION`: outside of Python's own library, and where a
    missing attribute is read, the reader's and not that of `__getattr__`."""
    frames = list(traceback.walk_tb(error.__traceback__))
    codes = [(frame.f_code, line) for frame, line in frames]
    own = [one for one in codes if not (_in_library(one[0]) or one[0].co_name in _ACCESS)]
    for code, line in (own or codes)[-1:]:
        return f"{_short(code.co_filename)}:{line} in {code.co_name}"
    return ""


_ACCESS = ("__getattr__", "__getattribute__", "__getitem__")


_LIBRARY = sysconfig.get_path("stdlib")


def _in_library(code: CodeType) -> bool:
    """Whether code is Python's own, such as that of `json/decoder.py`."""
    file = code.co_filename
    return file.startswith((_LIBRARY, "<frozen")) and "site-packages" not in file


def _short(file: str) -> str:
    """The path inside of the package or of this repository."""
    path = Path(file)
    if "site-packages" in path.parts:
        at = len(path.parts) - path.parts[::-1].index("site-packages")
        return Path(*path.parts[at:]).as_posix()
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.name


def _alone() -> None:
    """Removes proxies and the settings of SDKs, and silences the client's warnings."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.lower().startswith(_FOREIGN):
            del os.environ[name]
    os.environ.update(_OFF)
    warnings.simplefilter("ignore")


def _entry(file: Path, function: str) -> dict[str, Any]:
    path = file.parent / "client.toml"
    clients: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["client"]
    for client in clients:
        if client["command"][-1] == function and client["command"][-2].endswith(file.name):
            return client
    names = ", ".join(client["command"][-1] for client in clients)
    sys.exit(f"{path} has no client {function!r}; there are: {names}")


def _check(job: dict[str, Any], entry: dict[str, Any]) -> None:
    if job.get("api") != entry["api"]:
        sys.exit(f"{entry['name']} speaks the API {entry['api']}, not {job.get('api')}")
    if job.get("level", "http") != "http":
        sys.exit(f"{entry['name']} is a whole client: run it with --http, not {job['level']}")


def _hello(version: int, entry: dict[str, Any], file: str) -> dict[str, Any]:
    package: str = entry["package"]
    others: list[str] = entry.get("with", [])
    used = [f"{other} {metadata.version(other)}" for other in others]
    return {
        "mockllm": version,
        "client": {
            "name": entry["name"],
            "version": " with ".join([metadata.version(package), *used]),
            "language": entry["language"],
            "entry_point": entry["entry_point"],
            "adapter": Path(file).as_posix(),
            "notes": entry.get("notes", ""),
            "libraries": {
                "python": platform.python_version(),
                **_libraries([package, *others]),
            },
        },
        "unsupported": entry.get("unsupported", []),
        "intermediate": False,
        **({"resilience": entry["resilience"]} if "resilience" in entry else {}),
    }


def _libraries(names: list[str]) -> dict[str, str]:
    """The versions of distributions and of all that they need, as far as it is installed."""
    found: dict[str, str] = {}
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # for another platform
            continue
        needed = [line for line in metadata.requires(name) or () if "extra ==" not in line]
        names += [re.split(r"[^\w.-]", line)[0] for line in needed]
    return dict(sorted(found.items()))


def _loaded(file: Path, function: str) -> Client:
    """The function of an adapter.

    The folders beside this file have the names of packages, so they are not searched for them.
    """
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != here]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    found: Client = getattr(module, function)
    return found


_LOCK = threading.Lock()


def _write(answers: TextIO, answer: dict[str, Any]) -> None:
    with _LOCK:
        answers.write(json.dumps(answer, default=repr) + "\n")
        answers.flush()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
