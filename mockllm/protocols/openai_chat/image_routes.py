"""Answers of OpenAI's routes for images: small PNG files of one colour, which follows from prompt
and files.

https://platform.openai.com/docs/api-reference/images; the fields are those of the types in OpenAI's
Python SDK (`ImagesResponse`, `ImageGenCompletedEvent`, `ImageEditCompletedEvent`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import partial

from mockllm.core.events import Frame
from mockllm.core.http import Target
from mockllm.core.sample_files import png
from mockllm.core.seeded import tokens
from mockllm.errors import RequestError
from mockllm.framing import sse
from mockllm.protocols.base import created_at, dumps
from mockllm.protocols.openai_common import bad_value, missing
from mockllm.protocols.records import FallbackBody, FallbackRoute, Fields, Json
from mockllm.protocols.values import array, string

_MOST_IMAGES = 10
_MOST_PIXELS = 4096  # of one side
_PIXELS_OF_TOKEN = 1024


def _images(
    body: Fields,
    target: Target,
    *,
    event: str = "",
    has_prompt: bool = True,
    has_image: bool = True,
) -> Json | FallbackBody:
    """The images of a request.

    Args:
        event: the beginning of the types of events; "" where the route does not stream.
        has_prompt, has_image: whether the request needs a prompt, or images to begin with.
    """
    prompt = string(body.get("prompt"))
    if has_prompt and not prompt:
        raise missing("prompt")
    given = [value for key in ("image", "image[]", "images") for value in _listed(body.get(key))]
    if has_image and not given:
        raise missing("image")
    if body.get("output_format", "png") != "png":
        raise _only("output_format", body["output_format"], ("png",))
    width, height = _size(body)
    seed = dumps([prompt, given])
    count = _count(body)
    files = [png(width, height, f"{seed}\x1f{index}") for index in range(count)]
    encoded = [base64.b64encode(file).decode() for file in files]
    used, made = tokens(prompt), -(-width * height // _PIXELS_OF_TOKEN) * count
    about: Json = {
        "background": "opaque",
        "output_format": "png",
        "quality": _quality(body),
        "size": f"{width}x{height}",
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"image_tokens": 0, "text_tokens": used},
            "output_tokens": made,
            "total_tokens": used + made,
        },
    }
    created = created_at(seed)
    if event and body.get("stream") in (True, "true"):
        kind = f"{event}.completed"
        events = [
            {"type": kind, "b64_json": b64, "created_at": created, **about} for b64 in encoded
        ]
        frames = [sse.encode(Frame(event=kind, data=dumps(event))) for event in events]
        return FallbackBody("text/event-stream; charset=utf-8", tuple(frames), streamed=True)
    if _by_url(body, target):
        data = [{"url": f"data:image/png;base64,{b64}"} for b64 in encoded]
        return {"created": created, "data": data}
    return {"created": created, "data": [{"b64_json": b64} for b64 in encoded], **about}


def _listed(value: object) -> list[object]:
    return array(value) or ([] if value is None else [value])


def _by_url(body: Fields, target: Target) -> bool:
    """Whether images are sent as URLs, as the models of DALL-E do unless asked otherwise."""
    wanted = body.get("response_format")
    if wanted not in (None, "url", "b64_json"):
        raise bad_value("response_format", str(wanted), ("url", "b64_json"))
    model = string(body.get("model")) or target.segments.get("deployment", "")
    return wanted == "url" or (wanted is None and model.startswith("dall-e"))


def _quality(body: Fields) -> str:
    quality = string(body.get("quality"))
    return quality if quality in ("low", "medium", "high", "xhigh", "max") else "medium"


def _count(body: Fields) -> int:
    """`n`, which is text in a form."""
    given = body.get("n")
    text = "1" if given is None else str(given)
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= _MOST_IMAGES:
        raise RequestError(f"Invalid 'n': expected 1 to {_MOST_IMAGES}, got {text}.", param="n")
    return int(text)


def _size(body: Fields) -> tuple[int, int]:
    given = body.get("size")
    if given in (None, "auto"):
        return 1024, 1024
    match = re.fullmatch("([1-9][0-9]{0,3})x([1-9][0-9]{0,3})", str(given))
    if match is None or max(map(int, match.groups())) > _MOST_PIXELS:
        most = f"{_MOST_PIXELS}x{_MOST_PIXELS}"
        raise RequestError(
            f"Invalid 'size': expected WIDTHxHEIGHT up to {most}, or auto, got '{given}'.",
            param="size",
        )
    return int(match[1]), int(match[2])


def _only(where: str, got: object, known: tuple[str, ...]) -> RequestError:
    error = bad_value(where, str(got), known)
    advice = "mockllm makes no other; a scenario with a 'route' can answer with a file."
    return RequestError(f"{error.message} {advice}", param=where, code=error.code)


_Answer = Callable[[Fields, Target], Json | FallbackBody]
_generations: _Answer = partial(_images, event="image_generation", has_image=False)
_edits: _Answer = partial(_images, event="image_edit")
_variations: _Answer = partial(_images, has_prompt=False)

_PATH = r"(?:/deployments/(?P<deployment>[^/]+))?/images"
ROUTES = (
    FallbackRoute(re.compile(_PATH + "/generations$"), _generations),
    FallbackRoute(re.compile(_PATH + "/edits$"), _edits, takes_form=True),
    FallbackRoute(re.compile(_PATH + "/variations$"), _variations, takes_form=True),
)
