"""Images and files are read from the requests of each API, compared, and named in messages."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import NoMatchError
from mockllm.core.request import Message, Request, SentFile
from mockllm.play.matching.conditions import first_problem, judged_expectations, judged_match
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.matching.sent_files import check_files, source_of
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Match, TextCondition
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

PNG = b"\x89PNG\r\n\x1a\n\xfb\xff"
DATA = b64encode(PNG).decode()
DIGEST = f"sha256:{sha256(PNG).hexdigest()}"
URL = "https://a.example/cat.png"
S3 = {"s3Location": {"uri": "s3://a/b"}}


def read(api: str, message: Any) -> list[tuple[str, str]]:
    """Type and source of each file in a user message, which is the only one of a request."""
    protocol = PROTOCOLS[api]
    fields = {"responses": "input", "interactions": "input", "gemini": "contents"}
    field = fields.get(api, "messages")
    body = {**first_body(protocol, "m", "x"), field: [{"role": "user", **message}]}
    request = protocol.parse(body, client_target(protocol, "m"), True)
    (sent,) = [message for message in request.messages if message.role == "user"]
    assert sent.text == ""
    return [(file.media_type, source_of(file)) for file in sent.files]


def content(*parts: Any) -> Any:
    return {"content": list(parts)}


@pytest.mark.parametrize(
    ("api", "message", "files"),
    [
        (
            "chat",
            content(
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
                {"type": "image_url", "image_url": {"url": URL}},
                {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
                {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{DATA}"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ),
            [
                ("image/png", DIGEST),
                ("image/*", URL),
                ("audio/wav", DIGEST),
                ("application/pdf", DIGEST),
                ("*/*", "file-1"),
            ],
        ),
        (
            "responses",
            content(
                {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
                {"type": "input_image", "file_id": "file-1"},
                {"type": "input_file", "file_url": URL},
            ),
            [("image/png", DIGEST), ("image/*", "file-1"), ("*/*", URL)],
        ),
        (
            "anthropic",
            content(
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": DATA},
                },
                {"type": "image", "source": {"type": "url", "url": URL}},
                {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
            ),
            [("image/png", DIGEST), ("image/*", URL), ("*/*", "file_1")],
        ),
        (
            "gemini",
            {
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": DATA}},
                    {"inline_data": {"mime_type": "image/png", "data": DATA}},
                    {"fileData": {"mimeType": "video/mp4", "fileUri": URL}},
                ]
            },
            [("image/png", DIGEST), ("image/png", DIGEST), ("video/mp4", URL)],
        ),
        (
            "bedrock",
            content(
                {"image": {"format": "png", "source": {"bytes": DATA}}},
                {"document": {"format": "pdf", "name": "a", "source": {"bytes": DATA}}},
                {"video": {"format": "mp4", "source": S3}},
            ),
            [("image/png", DIGEST), ("application/pdf", DIGEST), ("video/mp4", "s3://a/b")],
        ),
        (
            "interactions",
            {
                "type": "user_input",
                **content(
                    {"type": "image", "data": DATA, "mime_type": "image/png"},
                    {"type": "image", "uri": URL},
                    {"type": "document", "data": DATA, "mime_type": "application/pdf"},
                ),
            },
            [("image/png", DIGEST), ("image/*", URL), ("application/pdf", DIGEST)],
        ),
        ("ollama", {"content": "", "images": [DATA]}, [("image/*", DIGEST)]),
        (
            "cohere",
            content({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}),
            [("image/png", DIGEST)],
        ),
    ],
)
def test_each_api_has_files(api: str, message: Any, files: list[tuple[str, str]]) -> None:
    """The parts that hold no text are read, whether sent whole or by reference."""
    assert read(api, message) == files


@given(st.binary(min_size=1))
def test_the_digest_is_of_the_bytes(data: bytes) -> None:
    """Neither the alphabet nor the padding nor the line breaks of base64 count."""
    plain, urlsafe = b64encode(data).decode(), urlsafe_b64encode(data).decode().rstrip("=")
    lines = "\n".join(plain[at : at + 3] for at in range(0, len(plain), 3))
    digest = f"sha256:{sha256(data).hexdigest()}"
    assert {source_of(SentFile("", text)) for text in (plain, urlsafe, lines)} == {digest}


SENT = (SentFile("image/png", DATA), SentFile("*/*", reference="file-1"))


@for_all(
    ("expected", "message"),
    [
        ([DIGEST, "file-1"], None),
        (["image/*", "*"], None),
        (["image/png", "*/*"], None),
        (
            [DIGEST],
            f"it must have 1 file, got 2: image/png {DIGEST} (10 bytes), */* 'file-1'",
        ),
        (
            ["sha256:00", "file-1"],
            f"it: image 1 must be sha256:00, got image/png {DIGEST} (10 bytes)",
        ),
        (["image/*", "image/*"], "it: file 2 must be image/*, got */* 'file-1'"),
    ],
)
def test_files_are_compared_in_their_order(expected: list[str], message: str | None) -> None:
    """A message names the first file that is another."""
    assert check_files("it", expected, SENT) == message


@for_all(
    ("count", "message"),
    [
        ("{type: image/*}", None),
        ("{count: 1, type: image/*}", None),
        ("{count: 2}", None),
        ("{count: {least: 2, most: 3}}", None),
        ("{count: {most: 2}}", None),
        ("{count: 0, type: audio/*}", None),
        (f"{{digest: '{DIGEST}'}}", None),
        ("{count: 2, type: image/*}", "2 files of the type image/*, got 1 of 2"),
        ("{count: 0, type: image/*}", "0 files of the type image/*, got 1 of 2"),
        ("{type: audio/*}", "at least 1 file of the type audio/*, got 0 of 2"),
        ("{count: {least: 3}}", "at least 3 files, got 2"),
        ("{count: {most: 1}}", "at most 1 file, got 2"),
        ("{count: {least: 3, most: 4}}", "3 to 4 files, got 2"),
        (
            f"{{type: image/png, digest: 'sha256:{'0' * 64}'}}",
            f"at least 1 file of the type image/png with the digest sha256:{'0' * 64}, got 0 of 2",
        ),
    ],
)
def test_files_are_counted(count: str, message: str | None) -> None:
    """The files that have the type and the digest are counted; without a count one is enough."""
    (scenario,) = loads(
        f"scenario: a\nmatch: {{user_files: {count}}}\nturns: [{{reply: {{text: x}}}}]"
    )
    assert scenario.match is not None
    sent = f"image/png {DIGEST} (10 bytes), */* 'file-1'"
    found = check_files("it", scenario.match.user_files, SENT)
    assert found == (None if message is None else f"it must have {message}: {sent}")


def test_a_number_of_files_is_asked_of_match_and_request() -> None:
    """The files of a user message that meets `user` are counted, or of the last one; a count is one
    condition, and may stand in `any`, `all` and `not`."""
    (scenario,) = loads(
        "scenario: a\n"
        "match: {user: look, user_files: {count: {least: 1}, type: image/*}, "
        "not: {user_files: {type: '*/*', count: 3}}}\n"
        "turns:\n- request: {user_files: {count: 2}}\n  reply: {text: y}"
    )
    match, expect = scenario.match, scenario.turns[0].request
    assert match is not None
    assert expect is not None
    assert match.conditions == 3

    def answered(files: tuple[SentFile, ...]) -> bool:
        messages = (Message("user", "look", files=files),)
        request = Request("chat", "m", {}, messages=messages)
        try:
            select(ScenarioIndex([scenario]), request, {})
        except NoMatchError:
            return False
        return first_problem(judged_expectations(expect, request, messages)) is None

    assert answered(SENT)
    assert not answered(SENT[:1])
    assert not answered(SENT[1:])
    assert not answered((*SENT, SENT[0]))


@for_all("data", ["a", "ab!c", "ä"])
def test_data_that_is_no_base64_meets_no_digest(data: str) -> None:
    """It is said, and nothing is raised."""
    message = "it: image 1 must be sha256:00, got image/png that is no base64"
    assert check_files("it", ["sha256:00"], [SentFile("image/png", data)]) == message


def test_the_files_are_those_of_the_message_that_meets_user() -> None:
    """Files of another user message do not count; without `user`, those of any message do."""
    messages = (Message("user", "", files=SENT), Message("user", "what is it?"))
    request = Request("chat", "m", {}, messages=messages)
    match = Match(user_files=("image/*", "file-1"))
    assert first_problem(judged_match(match, request, {})) is None
    match = Match(user=TextCondition("contains", "what"), user_files=("image/*", "file-1"))
    message = "match.user_files: the user message must have 2 files, got 0: none"
    assert first_problem(judged_match(match, request, {})) == message


def test_a_turn_asks_for_files() -> None:
    """`request.user_files` is about the last user message, and its message says so."""
    (scenario,) = loads(
        "scenario: a\nturns:\n- request: {user_files: [image/png]}\n  reply: {text: y}"
    )
    expect = scenario.turns[0].request
    assert expect is not None
    image, text = Message("user", "x", files=(SentFile("image/png", DATA),)), Message("user", "y")

    def problem(*messages: Message) -> str | None:
        request = Request("chat", "m", {}, messages=messages)
        return first_problem(judged_expectations(expect, request, messages))

    assert problem(text, image) is None
    found = problem(image, text)
    assert found is not None
    assert found.startswith("request.user_files: the user message must have")


def test_a_message_names_the_files_that_no_scenario_matches() -> None:
    """A user message without text is named by its files."""
    served = ScenarioIndex(
        loads(
            f"scenario: a\nmatch: {{user_files: ['sha256:{'0' * 64}']}}\n"
            "turns: [{reply: {text: x}}]"
        )
    )
    request = Request("chat", "m", {}, messages=(Message("user", "", files=SENT[:1]),))
    with pytest.raises(NoMatchError) as error:
        select(served, request, {})
    first, _, nearest = str(error.value).splitlines()[:3]
    got = f"image/png {DIGEST} (10 bytes)"
    assert first == f"No scenario answers this request (model 'm', user sent {got}); 1 served."
    assert nearest == (
        f"- a: match.user_files: the user message: image 1 must be sha256:{'0' * 64}, got {got}"
    )
