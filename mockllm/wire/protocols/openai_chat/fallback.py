"""Answers of OpenAI's routes that follow from the request: here embeddings and moderations, and
what vLLM's server has besides; images and audio are in `media_routes`.

https://platform.openai.com/docs/api-reference/embeddings and
https://platform.openai.com/docs/api-reference/moderations; the fields are those of the types in
OpenAI's Python SDK (`CreateEmbeddingResponse`, `ModerationCreateResponse`).
"""

from __future__ import annotations

import base64
import re
import struct
import sys

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.seeded import derive, unit_vector
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_chat.media_routes import MEDIA_ROUTES, served_model
from mockllm.wire.protocols.openai_common import bad_value, invalid_type, missing, text_of
from mockllm.wire.protocols.records import FallbackBody, FallbackRoute, Fields, Json
from mockllm.wire.protocols.values import mapping, string

_DIMENSIONS = {"text-embedding-3-large": 3072}
_USUAL_DIMENSIONS = 1536  # of text-embedding-3-small and text-embedding-ada-002
_MOST_DIMENSIONS = 16_384
_MOST_INPUTS = 2048
"""How many inputs a request may have; the service has the same bound."""

_MODERATION = "omni-moderation-latest"
_CATEGORIES = {
    "harassment": False,
    "harassment/threatening": False,
    "sexual": True,
    "hate": False,
    "hate/threatening": False,
    "illicit": False,
    "illicit/violent": False,
    "self-harm/intent": True,
    "self-harm/instructions": True,
    "self-harm": True,
    "sexual/minors": False,
    "violence": True,
    "violence/graphic": True,
}
"""The categories of moderations, and whether they apply to images, too."""

_SCORE = 0.00001
"""The score of every category: nothing is flagged."""


# Embeddings


def _embeddings(body: Fields, target: Target) -> Json:
    """A unit vector for each input (`mockllm.core.seeded`)."""
    texts = _inputs(body)
    model = served_model(body, target)
    dimensions = _dimensions(body, model)
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise bad_value("encoding_format", encoding, ("float", "base64"))
    count = sum(map(tokens, texts))
    vectors = [unit_vector(text, dimensions) for text in texts]
    return {
        "object": "list",
        "data": [
            {
                "object": "embedding",
                "index": index,
                "embedding": _base64_floats(vector) if encoding == "base64" else list(vector),
            }
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


def _inputs(body: Fields) -> list[str]:
    """The texts of `input`: a text, a list of tokens, or a list of these. Tokens stand for the text
    of their numbers."""
    given = body.get("input")
    if given is None:
        raise missing("input")
    if isinstance(given, list) and given and all(type(item) is int for item in given):
        given = [given]
    inputs = given if isinstance(given, list) else [given]
    if not inputs or len(inputs) > _MOST_INPUTS:
        raise RequestError(
            f"Invalid 'input': expected 1 to {_MOST_INPUTS} inputs, got {len(inputs)}.",
            param="input",
        )
    return [_text(item, index) for index, item in enumerate(inputs)]


def _text(given: object, index: int) -> str:
    if isinstance(given, list) and given and all(type(token) is int for token in given):
        return " ".join(map(str, given))
    if not isinstance(given, str):
        raise invalid_type(f"input[{index}]", "a string or an array of tokens", given)
    if not given:
        raise RequestError("Invalid 'input': input cannot be an empty string.", param="input")
    return given


def _dimensions(body: Fields, model: str) -> int:
    given = body.get("dimensions")
    if given is None:
        return _DIMENSIONS.get(model, _USUAL_DIMENSIONS)
    if type(given) is not int:
        raise invalid_type("dimensions", "an integer", given)
    if not 1 <= given <= _MOST_DIMENSIONS:
        raise RequestError(
            f"Invalid 'dimensions': expected 1 to {_MOST_DIMENSIONS}, got {given}.",
            param="dimensions",
        )
    return given


def _base64_floats(vector: tuple[float, ...]) -> str:
    """The vector as 32-bit floats, the lowest byte first, in base64: `encoding_format: base64`."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


# Moderations


def _moderations(body: Fields, target: Target) -> Json:
    """A result for each input, in which nothing is flagged."""
    given = body.get("input")
    if given is None:
        raise missing("input")
    # A list of parts (texts and images) is one input, a list of texts is several.
    several = isinstance(given, list) and all(isinstance(part, str) for part in given)
    inputs = given if isinstance(given, list) and several else [given]
    kinds = ["text"]
    if isinstance(given, list) and not several:
        kinds = sorted({_kind(part) for part in given}, reverse=True)
    return {
        "id": "modr-" + derive(dumps(given), "moderation"),
        "model": string(body.get("model")) or _MODERATION,
        "results": [_result(kinds) for _ in inputs],
    }


def _kind(part: object) -> str:
    return "image" if mapping(part).get("type") == "image_url" else "text"


def _result(kinds: list[str]) -> Json:
    applied = {
        name: [kind for kind in kinds if kind == "text" or images]
        for name, images in _CATEGORIES.items()
    }
    return {
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, _SCORE),
        "category_applied_input_types": applied,
    }


# vLLM's server: https://docs.vllm.ai/en/stable/serving/openai_compatible_server/

_LENGTH = 32_768
"""Of the context of a model, in tokens."""


def _health(_body: Fields, _target: Target) -> FallbackBody:
    return FallbackBody("application/json", ())


def _version(_body: Fields, _target: Target) -> Json:
    return {"version": "0.11.0"}


def _tokenize(body: Fields, _target: Target) -> Json:
    """A token for each character, its code point; so each text has an inverse."""
    text = string(body.get("prompt"))
    if body.get("prompt") is None:
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise missing("prompt")
        text = "\n".join(text_of(mapping(message).get("content")) for message in messages)
    strings = list(text) if body.get("return_token_strs") else None
    counts = {"count": len(text), "max_model_len": _LENGTH}
    return {**counts, "tokens": list(map(ord, text)), "token_strs": strings}


def _detokenize(body: Fields, _target: Target) -> Json:
    given = body.get("tokens")
    if not isinstance(given, list):
        raise missing("tokens")
    if not all(type(token) is int and 0 <= token <= sys.maxunicode for token in given):
        raise invalid_type("tokens", "an array of tokens", given)
    return {"prompt": "".join(map(chr, given))}


FALLBACK_ROUTES = (
    FallbackRoute(re.compile(r"/health$"), _health, method="GET"),
    FallbackRoute(re.compile(r"/version$"), _version, method="GET"),
    FallbackRoute(re.compile(r"/tokenize$"), _tokenize),
    FallbackRoute(re.compile(r"/detokenize$"), _detokenize),
    FallbackRoute(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/embeddings$"), _embeddings),
    FallbackRoute(re.compile(r"/moderations$"), _moderations),
    *MEDIA_ROUTES,
)
