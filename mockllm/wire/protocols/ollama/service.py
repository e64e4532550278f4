"""The answers about the service itself and its models, and its embeddings.

https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.jsontext import json_bytes
from mockllm.core.seeded import derive, unit_vector
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.base import Lookup, dumps
from mockllm.wire.protocols.jobs import JobCall, JobReply, ObjectKind, ObjectRoute
from mockllm.wire.protocols.ollama.errors import CHECKS, TEXT
from mockllm.wire.protocols.records import FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import string

VERSION = "0.13.5"
"""The version of Ollama whose answers are played."""

_MOMENT = "2026-01-01T00:00:00Z"
_LATER = "2026-01-01T00:05:00Z"
_SIZE = 5_225_388_164
_CONTEXT = 40_960
_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "mockllm",
    "families": ["mockllm"],
    "parameter_size": "8.2B",
    "quantization_level": "Q4_K_M",
}


def models(lookup: Lookup) -> Json:
    """The models that are served, or (`/api/ps`) that are loaded: these are the same."""
    loaded = lookup.target.segments["list"] == "ps"
    of_list = (
        {"expires_at": _LATER, "size_vram": _SIZE, "context_length": _CONTEXT}
        if loaded
        else {"modified_at": _MOMENT}
    )
    return {
        "models": [
            {
                "name": name,
                "model": name,
                "size": _SIZE,
                "digest": derive(name, "digest", length=64, hex=True),
                "details": _DETAILS,
                **of_list,
            }
            for name in lookup.models
        ]
    }


def model(lookup: Lookup) -> Json:
    """One model; raises `RequestError` for one that is not served."""
    name = string(lookup.request.get("model")) or string(lookup.request.get("name"))
    if not name:
        raise RequestError("model is required", param="model")
    if name in lookup.gone or (name not in lookup.models and not lookup.any_model):
        raise _no_model(name)
    return {
        "license": "",
        "modelfile": f"FROM {name}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _DETAILS,
        "model_info": {"general.architecture": "mockllm", "mockllm.context_length": _CONTEXT},
        "capabilities": ["completion", "tools", "thinking", "vision"],
        "modified_at": _MOMENT,
    }


# Models that clients make


def _no_model(name: str) -> RequestError:
    return RequestError(f"model '{name}' not found", status=404)


def _name(call: JobCall) -> str:
    """The model that a request is about, or makes."""
    fields = call.fields
    name = string(fields.get("destination") or fields.get("model") or fields.get("name"))
    if not name:
        raise RequestError("model is required", param="model")
    return name


def _model(call: JobCall) -> Json:
    source = string(call.fields.get("source") or call.fields.get("from"))
    if source and not call.is_kept and source not in call.jobs.models():
        raise _no_model(source)
    return {"name": _name(call)}


def _progress(*statuses: Json) -> Callable[[object, JobCall], Json | JobReply]:
    """An answer that is streamed unless the request says else: a line for each status."""

    def answer(_: object, call: JobCall) -> Json | JobReply:
        if call.fields.get("stream") is False:
            return dict(statuses[-1])
        lines = "".join(dumps(status) + "\n" for status in statuses)
        return JobReply(json_bytes(lines), content_type="application/x-ndjson")

    return answer


_DIGEST = f"sha256:{derive('layer', 'digest', length=64, hex=True)}"
_LAYER: Json = {"status": f"pulling {_DIGEST[7:19]}", "digest": _DIGEST, "total": _SIZE}
_PULL: tuple[Json, ...] = (
    {"status": "pulling manifest"},
    *({**_LAYER, "completed": _SIZE * part // 4} for part in range(1, 5)),
    *({"status": text} for text in ("verifying sha256 digest", "writing manifest", "success")),
)
_PUSH = (
    {"status": "retrieving manifest"},
    {**_LAYER, "status": f"pushing {_DIGEST[7:19]}", "completed": _SIZE},
    {"status": "pushing manifest"},
    {"status": "success"},
)
_CREATE = tuple(
    {"status": text} for text in ("using existing layer " + _DIGEST, "writing manifest", "success")
)


def _nothing(_state: object, _call: JobCall) -> JobReply:
    return JobReply(b"")


MODELS = ObjectKind(
    "model",
    "",
    _model,
    _no_model,
    (
        ObjectRoute("POST /api/pull", "make", _progress(*_PULL)),
        ObjectRoute("POST /api/create", "make", _progress(*_CREATE)),
        ObjectRoute("POST /api/copy", "make", _nothing),
        ObjectRoute("POST /api/push", answer=_progress(*_PUSH)),
        ObjectRoute("DELETE /api/delete", "delete", _nothing),
        ObjectRoute("POST /api/blobs/{digest}", "call", lambda _, __: JobReply(b"", status=201)),
    ),
    named=_name,
    id_in_body=_name,
    is_model=True,
)


# Embeddings

_DIMENSIONS = {"all-minilm": 384, "mxbai-embed-large": 1024, "qwen3-embedding": 4096}
_USUAL_DIMENSIONS = 768  # of nomic-embed-text
_MOST_DIMENSIONS = 16_384
_MOST_INPUTS = 2048
_TIME_OF_TOKEN = 10**6
"""Nanoseconds."""

_EMBED = CHECKS.fields({"model": TEXT}, {"dimensions": CHECKS.of_kind(int, "int")})
_EMBEDDING = CHECKS.fields({"model": TEXT}, {"prompt": TEXT})


def _embed(body: Fields, target: Target) -> Json:
    """A unit vector for each input (`mockllm.core.seeded`)."""
    _EMBED("EmbedRequest", body)
    given = body.get("input")
    inputs = given if isinstance(given, list) else [given or ""]
    if len(inputs) > _MOST_INPUTS or not all(isinstance(text, str) for text in inputs):
        raise RequestError("invalid input type", param="input")
    count = sum(map(tokens, inputs))
    size = body.get("dimensions") or _size(body)
    if isinstance(size, bool) or not 1 <= size <= _MOST_DIMENSIONS:
        raise RequestError("invalid dimensions", param="dimensions")
    durations = dict.fromkeys(("total_duration", "load_duration"), count * _TIME_OF_TOKEN)
    return {
        "model": body["model"],
        "embeddings": [list(unit_vector(text, size)) for text in inputs if text],
        **durations,
        "prompt_eval_count": count,
    }


def _embedding(body: Fields, target: Target) -> Json:
    """The vector of a prompt; an empty list without one, as the service sends it."""
    _EMBEDDING("EmbeddingRequest", body)
    prompt = string(body.get("prompt"))
    return {"embedding": list(unit_vector(prompt, _size(body))) if prompt else []}


def _size(body: Fields) -> int:
    name = string(body.get("model")).partition(":")[0]
    return _DIMENSIONS.get(name, _USUAL_DIMENSIONS)


FALLBACK_ROUTES = (
    FallbackRoute(re.compile(r"/api/embed$"), _embed),
    FallbackRoute(re.compile(r"/api/embeddings$"), _embedding),
)
