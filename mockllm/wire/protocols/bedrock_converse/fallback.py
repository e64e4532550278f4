"""Answers of InvokeModel for the embedding models of Amazon and Cohere, which follow from the
request. The bodies are those of the model's vendor.

https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html,
https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html and
https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from mockllm.core.http import Target
from mockllm.core.seeded import derive_uuid, unit_vector
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.bedrock_converse.errors import CHECKS, TEXT, validation_error
from mockllm.wire.protocols.records import FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import array, mapping, string

Vector = tuple[float, ...]

_FORMS: dict[str, Callable[[Vector], Any]] = {
    "float": list,
    "binary": lambda vector: [int(value > 0) for value in vector],
    "int8": lambda vector: [round(127 * value) for value in vector],
    "uint8": lambda vector: [round(127 * value) + 128 for value in vector],
}


def _one_of(where: str, value: object, known: Iterable[int], usual: int) -> int:
    """A number of dimensions that a model has."""
    known = tuple(known)
    if value is None:
        return usual
    if type(value) is not int or value not in known:
        raise validation_error(f"{where} must be one of {', '.join(map(str, known))}.", where)
    return value


# Titan

_TITAN_TEXT = CHECKS.fields(
    {"inputText": TEXT}, {"embeddingTypes": CHECKS.list_of(CHECKS.one_of("float", "binary"))}
)


def _titan_text_1(body: Fields, target: Target) -> Json:
    """Titan Text Embeddings G1, which has no parameters."""
    _TITAN_TEXT("", body)
    text = body["inputText"]
    return {"embedding": list(unit_vector(text, 1536)), "inputTextTokenCount": tokens(text)}


def _titan_text(body: Fields, target: Target) -> Json:
    """Titan Text Embeddings V2: `embedding` has the numbers, `embeddingsByType` what was asked."""
    _TITAN_TEXT("", body)
    text = body["inputText"]
    size = _one_of("dimensions", body.get("dimensions"), (256, 512, 1024), 1024)
    vector = unit_vector(text, size)
    forms = array(body.get("embeddingTypes")) or ["float"]
    whole = {"embedding": list(vector)} if "float" in forms else {}
    by_type = {form: _FORMS[form](vector) for form in forms}
    return {**whole, "embeddingsByType": by_type, "inputTextTokenCount": tokens(text)}


def _titan_image(body: Fields, target: Target) -> Json:
    """Titan Multimodal Embeddings: of a text, an image, or both."""
    text, image = string(body.get("inputText")), string(body.get("inputImage"))
    if not text and not image:
        raise validation_error("inputText or inputImage is required.", "inputText")
    length = mapping(body.get("embeddingConfig")).get("outputEmbeddingLength")
    size = _one_of("embeddingConfig.outputEmbeddingLength", length, (256, 384, 1024), 1024)
    return {
        "embedding": list(unit_vector(text + image, size)),
        "inputTextTokenCount": tokens(text),
        "message": None,
    }


# Nova


def _nova(body: Fields, target: Target) -> Json:
    """Nova Multimodal Embeddings of one input; jobs for several are another route."""
    asked = mapping(body.get("singleEmbeddingParams"))
    if body.get("taskType") != "SINGLE_EMBEDDING" or not asked:
        raise validation_error(
            "taskType must be SINGLE_EMBEDDING, with singleEmbeddingParams.", "taskType"
        )
    size = _one_of(
        "embeddingDimension", asked.get("embeddingDimension"), (256, 384, 1024, 3072), 3072
    )
    kinds = [kind for kind in ("text", "image", "audio", "video") if kind in asked]
    if not kinds:
        raise validation_error("One of text, image, audio and video is required.", "text")
    given = mapping(asked[kinds[0]])
    vector = unit_vector(string(given.get("value")) or dumps(dict(given)), size)
    return {"embeddings": [{"embeddingType": kinds[0].upper(), "embedding": list(vector)}]}


# Cohere

_COHERE = CHECKS.fields(
    {"input_type": TEXT},
    {
        "texts": CHECKS.list_of(TEXT),
        "images": CHECKS.list_of(TEXT),
        "inputs": CHECKS.list_of(CHECKS.mapping),
        "embedding_types": CHECKS.list_of(CHECKS.one_of(*_FORMS)),
    },
)
_MOST_TEXTS = 96  # `texts` of the reference
_LATER = re.compile(r"embed-v[4-9]")
"""Models whose embeddings are by type, whether the request says so or not."""


def _cohere(body: Fields, target: Target) -> Json:
    """Embed, whose version 3 has one list of vectors unless the request names types."""
    _COHERE("", body)
    later = _LATER.search(target.segments["model"]) is not None
    texts = array(body.get("texts"))
    inputs = [*texts, *map(dumps, (*array(body.get("images")), *array(body.get("inputs"))))]
    if not 1 <= len(inputs) <= _MOST_TEXTS:
        raise validation_error(f"texts must be 1 to {_MOST_TEXTS}, got {len(inputs)}.", "texts")
    size = 1024
    if later:
        given = body.get("output_dimension")
        size = _one_of("output_dimension", given, (256, 512, 1024, 1536), 1536)
    vectors = [unit_vector(text, size) for text in inputs]
    forms = array(body.get("embedding_types")) or (["float"] if later else [])
    by_type = {form: [_FORMS[form](vector) for vector in vectors] for form in forms}
    if "embed-english" in target.segments["model"]:
        texts = [text.lower() for text in texts]  # what its tokenizer reads, as recorded
    return {
        "embeddings": by_type or list(map(list, vectors)),
        "id": derive_uuid(dumps(inputs), "embed"),
        "response_type": "embeddings_by_type" if forms else "embeddings_floats",
        "texts": texts,
    }


def _invoke_route(model: str, answer: Callable[[Fields, Target], Json]) -> FallbackRoute:
    return FallbackRoute(re.compile(rf"/model/(?P<model>[^/]*{model}[^/]*)/invoke$"), answer)


FALLBACK_ROUTES = (
    _invoke_route(r"amazon\.titan-embed-(?:g1-)?text-(?:01|v1)", _titan_text_1),
    _invoke_route(r"amazon\.titan-embed-text-v2", _titan_text),
    _invoke_route(r"amazon\.titan-embed-image", _titan_image),
    _invoke_route(r"amazon\.nova-[^/]*embeddings", _nova),
    _invoke_route(r"cohere\.embed", _cohere),
)
