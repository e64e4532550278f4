"""Secrets in the event streams of AWS: taken out of the frames, which stay frames."""

import base64
import json
import struct
import zlib
from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.play.tapes.captured import Captured, Tape, dump_tape, load_tape
from mockllm.record.redaction.find.bodies import FramesBody, body_of
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.scrub import scrub
from mockllm.wire.framing.eventstream import EVENTSTREAM, encode, message
from tests.cases import for_all
from tests.record.redaction.test_redact_laws import RULES, SECRETS, captured, cut, cuts, texts

KEY = "sk-proj-Ab3dEfGh1jKlMn0pQrStUv"
TYPE = (("content-type", EVENTSTREAM.content_type),)


def event(value: object, *, chunk: bool = False) -> bytes:
    """A frame with a JSON payload; a `chunk` has it as base64, as Anthropic's on Bedrock."""
    data = json.dumps(value)
    if not chunk:
        return encode(Frame(data, "contentBlockDelta"))
    wrapped = {"bytes": base64.b64encode(data.encode()).decode(), "p": "abcdefgh"}
    return encode(Frame(json.dumps(wrapped), "chunk"))


def stream(fragments: Sequence[str], *, chunk: bool = False) -> list[bytes]:
    """A frame for each fragment of a text."""
    deltas = ({"delta": {"text": fragment}, "index": 0} for fragment in fragments)
    return [event(delta, chunk=chunk) for delta in deltas]


def sse(fragments: Sequence[str]) -> bytes:
    """The same as server-sent events."""
    deltas = ({"delta": {"text": fragment}, "index": 0} for fragment in fragments)
    return "".join(f"data: {json.dumps(delta)}\n\n" for delta in deltas).encode()


def fragments_of(data: bytes) -> list[str]:
    """The fragments in a stream of frames or of server-sent events."""
    if data.startswith(b"data:"):
        values = [json.loads(line[6:]) for line in data.decode().split("\n\n")[:-1]]
    else:
        values = [json.loads(frame.data or "") for frame in EVENTSTREAM.decode(data)]
        values = [
            json.loads(base64.b64decode(value["bytes"])) if "bytes" in value else value
            for value in values
        ]
    return [value["delta"]["text"] for value in values]


def redacted(data: bytes, redactor: Redactor | None = None) -> bytes:
    return (redactor or Redactor(RULES)).exchange(captured([data], headers=TYPE)).body


@given(texts, cuts, st.booleans())
def test_what_is_found_is_what_is_found_in_server_sent_events(
    text: str, positions: list[int], chunk: bool
) -> None:
    """However a text is cut into frames, its fragments become those of the same events in SSE."""
    fragments = cut(text, positions)
    clean = redacted(b"".join(stream(fragments, chunk=chunk)))
    assert fragments_of(clean) == fragments_of(redacted(sse(fragments)))
    assert redacted(clean) == clean


@given(texts, cuts, st.booleans())
def test_frames_without_secrets_keep_their_bytes(
    text: str, positions: list[int], chunk: bool
) -> None:
    """Also where others of the stream change."""
    fragments = cut(text, positions)
    before = stream(fragments, chunk=chunk)
    after = fragments_of(redacted(b"".join(before)))
    clean = redacted(b"".join(before))
    at = 0
    for fragment, other, frame in zip(fragments, after, before, strict=True):
        (size,) = struct.unpack_from(">I", clean, at)
        if fragment == other:
            assert clean[at : at + size] == frame
        at += size
    assert at == len(clean)


@given(st.sampled_from(SECRETS[:3]), cuts, st.booleans(), st.floats(0, 1))
def test_no_part_of_a_secret_survives_in_a_stream_that_breaks_off(
    secret: str, positions: list[int], chunk: bool, share: float
) -> None:
    """At any byte: no twelve characters of a secret that the request shows are left, what is whole
    decodes, and what is not stays incomplete."""
    whole = b"".join(stream(cut(f"it is {secret}, {secret}.", positions), chunk=chunk))
    data = whole[: round(share * len(whole))]
    request = json.dumps({"messages": [{"content": f"use {secret}"}]}).encode()
    exchange = captured([data], request, headers=TYPE, cut="upstream")
    clean = Redactor(RULES).exchange(exchange).body
    assert len(EVENTSTREAM.decode(clean)) == len(EVENTSTREAM.decode(data))
    found = "".join(fragments_of(clean)) + "|" + FramesBody(clean).text
    assert not any(secret[at : at + 12] in found for at in range(len(secret) - 11))


@given(st.binary(max_size=60), st.lists(st.text(max_size=9).filter(lambda text: "@" not in text)))
def test_bytes_without_secrets_are_unchanged(rest: bytes, fragments: list[str]) -> None:
    """Frames, and whatever follows them."""
    data = b"".join(stream(fragments)) + rest
    assert redacted(data, Redactor()) == data
    assert body_of(data).edit([]) == (data, [])


@given(cuts)
def test_the_chunks_of_the_recording_are_kept(positions: list[int]) -> None:
    """As many, at the same times, none of them empty; one that ended with a frame still does."""
    frames = stream(["no secret", f"my key {KEY[:11]}", f"{KEY[11:]} is long", "the end"])
    body = b"".join(frames)
    ends = sorted({len(b"".join(frames[:number])) for number in range(1, 5)} | {*positions})
    ends = [end for end in ends if 0 < end <= len(body)]
    chunks = [body[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    clean = Redactor().exchange(captured(chunks, headers=TYPE))
    assert [chunk.at for chunk in clean.chunks] == [7 * index for index in range(len(chunks))]
    assert all(chunk.data for chunk in clean.chunks)
    sizes = {
        len(b"".join(chunk.data for chunk in clean.chunks[:n])) for n in range(len(chunks) + 1)
    }
    starts = {sum(map(len, map(encode, EVENTSTREAM.decode(clean.body)[:n]))) for n in range(5)}
    assert starts <= sizes


def test_headers_and_other_payloads() -> None:
    """The message of an error, a header that no one knows, and a payload that is no JSON."""
    frames = [
        encode(Frame(f"the key {KEY} is wrong", "badKey", kind="error")),
        message([(":event-type", "note"), ("x-key", KEY)], b"{}"),
        message([(":event-type", "text")], f"key\r\n{KEY}".encode()),
    ]
    clean = EVENTSTREAM.decode(redacted(b"".join(frames)))
    hidden = "sk-proj-REDACTED-1xxxxxxxxxxxxxx"
    assert [frame.data for frame in clean] == [
        f"the key {hidden} is wrong",
        "{}",
        f"key\r\n{hidden}",
    ]
    assert KEY.encode() not in redacted(b"".join(frames))


def test_a_wrong_checksum_stays_as_wrong_as_it_was() -> None:
    """A recording of a broken service stays one: its frame does not become right by redaction."""
    frame = bytearray(event({"text": KEY}))
    frame[-1] ^= 0x40
    clean = redacted(bytes(frame))
    assert KEY.encode() not in clean
    assert struct.unpack(">I", clean[-4:])[0] ^ zlib.crc32(clean[:-4]) == 0x40


def cassette(body: bytes) -> str:
    """A cassette with an answer, as VCR writes it."""
    answer = {"body": {"string": body}, "headers": {}, "status": {"code": 200, "message": "OK"}}
    return yaml.safe_dump({"interactions": [{"response": answer}], "version": 1})


@pytest.mark.parametrize("chunk", [False, True])
def test_scrub_reads_binary_bodies_of_cassettes(chunk: bool) -> None:
    """The frames in `!!binary` lose the secret across them, and the cassette keeps its form."""
    body = b"".join(stream([f"my key {KEY[:11]}", f"{KEY[11:]} is long"], chunk=chunk))
    text = cassette(body)
    (file,) = scrub({"a.yaml": text.encode()}, Redactor())
    assert [(found.line, found.column) for found in file.findings] == [(4, 15)]
    assert file.content is not None
    clean = yaml.safe_load(file.content)["interactions"][0]["response"]["body"]["string"]
    assert file.content.decode() == cassette(clean)
    assert fragments_of(clean) == fragments_of(redacted(body))
    assert scrub({"a.yaml": file.content}, Redactor()) == []


def test_scrub_reads_binary_of_other_forms() -> None:
    """On one line, of text; what is no text, and what is no base64, stays."""
    text = base64.b64encode(f"é {KEY}".encode()).decode()
    others = f"b: !!binary {base64.b64encode(bytes(range(255))).decode()}\nc: !!binary é\n"
    (file,) = scrub({"a.yaml": f"a: !!binary {text} # why\n{others}".encode()}, Redactor())
    assert file.content is not None
    first, _, rest = file.content.decode().partition("\n")
    assert rest == others
    assert yaml.safe_load(first)["a"].decode() == "é sk-proj-REDACTED-1xxxxxxxxxxxxxx"
    assert first.endswith(" # why")


def test_scrub_reads_frames_in_base64() -> None:
    """As HAR files have them."""
    body = b"".join(stream([f"my key {KEY[:11]}", f"{KEY[11:]} is long"]))
    text = json.dumps({"encoding": "base64", "text": base64.b64encode(body).decode()})
    (file,) = scrub({"a.json": text.encode()}, Redactor())
    assert file.content is not None
    clean = base64.b64decode(json.loads(file.content)["text"])
    assert fragments_of(clean) == fragments_of(redacted(body))


def test_scrub_reads_tapes() -> None:
    """Whose chunks are base64, and cut anywhere."""
    body = b"".join(stream([f"my key {KEY[:11]}", f"{KEY[11:]} is long"]))
    chunks = tuple(TimedBytes(at, body[at : at + 50]) for at in range(0, len(body), 50))
    exchange = Captured("POST", "https://x.io/model/a", (), b"{}", 200, TYPE, chunks)
    (file,) = scrub({"a.jsonl": dump_tape(Tape("", True, exchange))}, Redactor())
    assert file.content is not None
    clean = load_tape(file.content, "a.jsonl").exchange
    assert [chunk.at for chunk in clean.chunks] == [chunk.at for chunk in chunks]
    assert fragments_of(clean.body) == fragments_of(redacted(body))


@for_all("mark", ["", "[DONE]", "*silence*", "upstream failed", '{"broken'])
@for_all("at", [1, 2])
def test_scrub_reads_json_lines(mark: str, at: int) -> None:
    """A secret across the lines of a stream, which stay lines; what is no JSON among them stays."""
    lines = [f"my key {KEY[:11]}", f"{KEY[11:]} is long"]
    written = [json.dumps({"message": {"content": line}}) for line in lines]
    written.insert(at, mark)
    text = "".join(f"{line}\n" for line in written)
    (file,) = scrub({"a.txt": text.encode()}, Redactor())
    assert file.content is not None
    clean = file.content.decode().split("\n")
    assert clean.pop(at) == mark
    found = [json.loads(line)["message"]["content"] for line in clean[:2]]
    assert "".join(found) == "my key sk-proj-REDACTED-1xxxxxxxxxxxxxx is long"
