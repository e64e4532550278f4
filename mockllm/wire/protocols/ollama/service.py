"""The answers about the service itself and its models, and its embeddings.

https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models
"""

from __future__ import annotations

import re

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.seeded import derive, unit_vector
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.base import Lookup
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
    if name not in lookup.models and not lookup.any_model:
        raise RequestError(f"model '{name}' not found", status=404)
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
