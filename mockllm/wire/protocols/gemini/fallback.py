"""Answers of Gemini's routes for embeddings and images that follow from the request, on Vertex AI,
too.

https://ai.google.dev/api/embeddings,
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api and
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/imagen-api
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.sample_files import png
from mockllm.core.seeded import unit_vector
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.gemini_common import get, text_of
from mockllm.wire.protocols.records import FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import string

_DIMENSIONS = {
    "embedding-001": 768,
    "text-embedding-004": 768,
    "text-embedding-005": 768,
    "text-multilingual-embedding-002": 768,
}
_USUAL_DIMENSIONS = 3072  # of gemini-embedding-001
_MOST_DIMENSIONS = 16_384
_MOST_REQUESTS = 2048
_MOST_IMAGES = 8
_SIZES = {
    "1:1": (1024, 1024),
    "3:4": (896, 1280),
    "4:3": (1280, 896),
    "9:16": (768, 1408),
    "16:9": (1408, 768),
}
"""Width and height of images, by their ratio."""


def _batch_embed_contents(body: Fields, target: Target) -> Json:
    """The vectors of several contents, in their order."""
    requests = _items(body, "requests")
    return {"embeddings": [_embedding(request, target) for request in requests]}


def _predict(body: Fields, target: Target) -> Json:
    """The vectors of several texts, in the form of Vertex AI's predictions."""
    instances = _items(body, "instances")
    size = _dimensions(get(body, "parameters"), target)
    texts = [string(get(instance, "content")) for instance in instances]
    return {
        "predictions": [
            {
                "embeddings": {
                    "statistics": {"truncated": False, "token_count": tokens(text)},
                    "values": list(unit_vector(text, size)),
                }
            }
            for text in texts
        ],
        "metadata": {"billableCharacterCount": sum(map(len, texts))},
    }


def _images(body: Fields, target: Target) -> Json:
    """Images of one colour, which follows from the prompt (`mockllm.core.sample_files`)."""
    parameters = get(body, "parameters")
    count, ratio = get(parameters, "sampleCount") or 1, get(parameters, "aspectRatio") or "1:1"
    if type(count) is not int or not 1 <= count <= _MOST_IMAGES:
        message = f"sampleCount: must be a whole number from 1 to {_MOST_IMAGES}"
        raise RequestError(message, param="sampleCount")
    if ratio not in tuple(_SIZES):
        raise RequestError(f"aspectRatio: must be one of {', '.join(_SIZES)}", param="aspectRatio")
    kind = get(get(parameters, "outputOptions"), "mimeType")
    if kind not in (None, "image/png"):
        message = "outputOptions.mimeType: mockllm makes image/png alone; a scenario with a 'route'"
        raise RequestError(f"{message} can answer with a file", param="outputOptions")
    prompts = [string(get(instance, "prompt")) for instance in _items(body, "instances")]
    if not all(prompts):
        raise RequestError("instances: each must have a prompt", param="instances")
    return {
        "predictions": [
            {"mimeType": "image/png", "bytesBase64Encoded": _image(f"{prompt}\x1f{index}", ratio)}
            for prompt in prompts
            for index in range(count)
        ]
    }


def _image(seed: str, ratio: str) -> str:
    return base64.b64encode(png(*_SIZES[ratio], seed)).decode()


def _embedding(request: object, target: Target) -> Json:
    """The vector of one content (`mockllm.core.seeded`)."""
    content = get(request, "content")
    if content is None:
        raise RequestError(
            "* EmbedContentRequest.content: contents is not specified", param="content"
        )
    config = get(request, "embedContentConfig")
    size = _dimensions(config if isinstance(config, Mapping) else request, target)
    return {"values": list(unit_vector(text_of(content), size))}


def _items(body: Fields, name: str) -> Sequence[object]:
    items = get(body, name)
    if not isinstance(items, list) or not 0 < len(items) <= _MOST_REQUESTS:
        raise RequestError(f"{name}: must be a list of 1 to {_MOST_REQUESTS} items", param=name)
    return items


def _dimensions(fields: object, target: Target) -> int:
    given = get(fields, "outputDimensionality")
    if given is None:
        return _DIMENSIONS.get(target.segments.get("model", ""), _USUAL_DIMENSIONS)
    if type(given) is not int or not 1 <= given <= _MOST_DIMENSIONS:
        raise RequestError(
            f"outputDimensionality: must be a whole number from 1 to {_MOST_DIMENSIONS}",
            param="outputDimensionality",
        )
    return given


FALLBACK_ROUTES = (
    FallbackRoute(
        re.compile(r"/models/(?P<model>[^/:]+):embedContent$"),
        lambda body, target: {"embedding": _embedding(body, target)},
    ),
    FallbackRoute(
        re.compile(r"/models/(?P<model>[^/:]+):batchEmbedContents$"), _batch_embed_contents
    ),
    FallbackRoute(re.compile(r"/models/(?P<model>[^/:]*embedding[^/:]*):predict$"), _predict),
    FallbackRoute(re.compile(r"/models/(?P<model>[^/:]*imagen[^/:]*):predict$"), _images),
)
