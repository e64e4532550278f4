"""Group F: the bytes of each quirk's sample."""

import json
import re
from itertools import pairwise

import pytest

from mockllm.play.quirks import find
from mockllm.play.quirks.framing import QUIRKS
from mockllm.play.quirks.samples import CALL, TEXT, UNICODE
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from tests.carried import payload
from tests.cases import for_all
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, events, plain, play

APIS = find("sse-bom")[0].apis

NAMED = {quirk.name: quirk for quirk in QUIRKS}


def sample(name, api="chat"):
    """The bytes of the sample with a quirk, write by write."""
    plain, _, variant = name.partition(":")
    quirk = NAMED[plain]
    return play(quirk, quirk.variant(variant), api).data


def body(name, api="chat"):
    return b"".join(sample(name, api))


# The bytes of the samples


def test_crlf():
    """Every line ends in CRLF, or in CR, or in LF, CR and CRLF in turn."""
    assert body("sse-crlf") == body("sse-crlf:crlf")
    assert body("sse-crlf").startswith(b'data: {"id":"chatcmpl-')
    assert body("sse-crlf").endswith(b"}\r\n\r\ndata: [DONE]\r\n\r\n")
    assert body("sse-crlf").count(b"\r\n") == body("sse-crlf").count(b"\n") == 12
    assert body("sse-crlf:cr").endswith(b"}\r\rdata: [DONE]\r\r")
    mixed = sample("sse-crlf:mixed")
    assert mixed[0].endswith(b"}\n\r")
    assert mixed[1].endswith(b"}\r\n\r")
    assert mixed[2].endswith(b"}\r\n\n")
    assert mixed[3].endswith(b"}\r\r\n")


@pytest.mark.parametrize("api", NAMED["sse-crlf"].apis)
def test_mixed_line_ends_separate_events(api):
    """Before its last event, the sample has a blank line whose two line ends are LF and CR: a
    reader that looks for two equal ones does not see it."""
    *before, _ = sample("sse-crlf:mixed", api)
    assert any(re.search(rb"[^\r\n]\n\r\Z", write) for write in before)


def test_crlf_in_two_writes():
    """The LF of each CRLF begins a write of its own."""
    writes = sample("sse-crlf:split")
    assert b"".join(writes) == body("sse-crlf")
    assert writes[-3:] == (b"data: [DONE]\r", b"\n\r", b"\n")
    assert not any(b"\r\n" in write for write in writes)


def test_no_space():
    """The value follows the colon of its field at once."""
    assert sample("sse-no-space")[0].startswith(b'data:{"id":"chatcmpl-')
    assert sample("sse-no-space")[-1] == b"data:[DONE]\n\n"
    begin = sample("sse-no-space", "anthropic")[0]
    assert begin.startswith(b'event:message_start\ndata:{"type":"message_start"')


def test_comments():
    """A comment between two events, or several before the first."""
    writes = sample("sse-comments")
    assert writes[0].startswith(b"data: {")
    assert writes[1::2] == (b": keep-alive\n\n",) * 5
    assert sample("sse-comments:processing")[0] == b": OPENROUTER PROCESSING\n\n"
    assert sample("sse-comments", "gemini")[1] == b": keep-alive\r\n\r\n"


def test_comments_without_a_blank_line():
    """The comment is a line of the event that follows, or stands between the lines of an event."""
    first, second, *_ = sample("sse-comments:no-blank", "anthropic")
    assert first.startswith(b"event: message_start\n")
    assert second.startswith(b": ping\nevent: content_block_start\ndata: {")
    first, *_ = sample("sse-comments:inside", "anthropic")
    assert first.startswith(b"event: message_start\ndata: {\n: ping\ndata: ")
    assert first.endswith(b"\ndata: }\n: ping\n\n")


def test_bare_colon():
    """A lone colon is between the events."""
    assert sample("sse-bare-colon")[1::2] == (b":\n\n",) * 5


def test_keepalive_as_data():
    """The comment is sent as data."""
    assert sample("sse-keepalive-as-data")[1] == b"data: : keepalive\n\n"
    quirk = NAMED["sse-keepalive-as-data"]
    assert events(play(quirk, quirk.variants[0], "chat"))[1] == ": keepalive"


def test_id_then_comment():
    """Each event has an id, and a comment follows."""
    writes = sample("sse-id-then-comment")
    assert writes[0].startswith(b'id: 1\ndata: {"id":"chatcmpl-')
    assert writes[0].endswith(b"}\n\n")
    assert writes[1] == b": ping\n\n"
    assert writes[-1] == b"id: 6\ndata: [DONE]\n\n"


def test_event_without_data():
    """A block that has an event name only."""
    assert sample("sse-event-without-data")[1::2] == (b"event: ping\n\n",) * 5


def test_empty_data():
    """A block whose data line is empty."""
    assert sample("sse-empty-data")[1::2] == (b"data: \n\n",) * 5


def test_retry_field():
    """The first block has a `retry` line only."""
    writes = sample("sse-retry-field")
    assert writes[0] == b"retry: 3000\n\n"
    assert writes[1:] == plain(TEXT, "chat").data


def test_other_fields():
    """A line with another field precedes the data."""
    assert sample("sse-other-fields")[0].startswith(b'id: as-1\ndata: {"id":')
    assert sample("sse-other-fields:event")[0].startswith(b'event: message\ndata: {"id":')
    own = sample("sse-other-fields:event", "anthropic")
    assert own == plain(TEXT, "anthropic").data


def test_multiline_data():
    """The JSON of an event is split over several data lines."""
    writes = sample("sse-multiline-data")
    assert writes[0].startswith(b'data: {\ndata:  "id": "chatcmpl-')
    assert writes[0].endswith(b'data:  "usage": null\ndata: }\n\n')
    assert writes[-1] == b"data: [DONE]\n\n"
    assert sample("sse-multiline-data", "gemini")[0].startswith(
        b'data: {\r\ndata:  "candidates": [\r\ndata:   {'
    )


def test_single_newline():
    """Without any blank line there is, by the specification, one event that never ends."""
    whole = body("sse-single-newline")
    assert whole.startswith(b'data: {"id"')
    assert whole.count(b"}\ndata: ") == 5
    assert whole.endswith(b"\ndata: [DONE]\n")
    assert decode(whole) == []


def test_bom():
    """A byte order mark precedes the first event, and only that."""
    assert b'"name":"get_weather"' in sample("sse-bom")[0]
    assert body("sse-bom").startswith(b"\xef\xbb\xbfdata: {")
    assert body("sse-bom")[3:] == b"".join(plain(CALL, "chat").data)


def test_utf8_split():
    """Each character of several bytes is cut before its last byte."""
    writes = sample("sse-utf8-split")
    assert b"".join(writes) == b"".join(plain(UNICODE, "chat").data)
    assert any(a.endswith(b"\xe4\xbd") and b.startswith(b"\xa0") for a, b in pairwise(writes))
    assert any(a.endswith(b"\xf0\x9f\x91") and b.startswith(b"\x8b") for a, b in pairwise(writes))
    quirk = NAMED["sse-utf8-split"]
    assert play(quirk, quirk.variants[0], "chat").segmented


def test_unicode_line_separators():
    """The separators are raw bytes in a data line, controls are escaped."""
    assert b'"content":"H\xe2\x80\xa8\xe2\x80\xa9\xc2\x85e' in body("sse-unicode-line-separators")
    assert b'"content":"l\xe2\x80\xa8o' in body("sse-unicode-line-separators:line-separator")
    assert rb"l\u000b\f\u001c\u001d\u001eo" in body("sse-unicode-line-separators:controls")


@for_all("api", APIS)
@for_all("name", ["", ":line-separator", ":next-line", ":controls"])
def test_separators_are_part_of_the_text(api, name):
    """The text that a client decodes has the separators in it."""
    quirk = NAMED["sse-unicode-line-separators"]
    variant = quirk.variant(name[1:])
    text = decoded_turn(play(quirk, variant, api), api).text
    assert text == "".join(c + text[1 : len(text) // 5] for c in "Hello")
    assert (
        expected_turn(
            f"{quirk.name}:{variant.name}", variant, decoded_turn(plain(TEXT, api), api)
        ).text
        == text
    )


def test_huge_event():
    """One data line has 300 kB, or more than 1 MB; the others are unchanged."""
    writes = sample("sse-huge-event")
    assert [len(write) > 300_000 for write in writes] == [False, False, True, False, False, False]
    assert b'"content":"lo"' in writes[2]
    assert writes[2].endswith(b"   }\n\n")
    assert max(map(len, sample("sse-huge-event:1-mb"))) > 1_048_576


def test_chunk_boundaries():
    """All events in one write, or each byte in one."""
    whole = b"".join(plain(TEXT, "chat").data)
    assert sample("sse-chunk-boundaries") == (whole,)
    single = sample("sse-chunk-boundaries:bytewise")
    assert b"".join(single) == whole
    assert set(map(len, single)) == {1}


def test_no_final_blank():
    """The stream ends after the line of the usage, without blank line and `[DONE]`."""
    whole = body("sse-no-final-blank")
    assert whole.endswith(b'"rejected_prediction_tokens":0}}}\n')
    assert not whole.endswith(b"\n\n")
    assert b"[DONE]" not in whole
    assert body("sse-no-final-blank", "gemini").endswith(b"}\r\n")
    assert not body("sse-no-final-blank", "gemini").endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("no-space", b"\n\ndata:[DONE]\n\n"),
        ("trailing-space", b"\n\ndata: [DONE] \n\n"),
        ("twice", b"\n\ndata: [DONE]\n\ndata: [DONE]\n\n"),
        ("unterminated", b"\n\ndata: [DONE]"),
    ],
)
def test_done_variants(name, end):
    """`[DONE]` is written in another form; nothing else changes."""
    whole = body(f"sse-done-variants:{name}")
    assert whole.endswith(end)
    assert whole.startswith(b"".join(plain(TEXT, "chat").data[:-1]))


@pytest.mark.parametrize("api", APIS)
def test_cut(api):
    """The stream ends inside the event with the finish."""
    plain_bytes = b"".join(plain(TEXT, api).data)
    whole = body("sse-cut", api)
    assert plain_bytes.startswith(whole)
    *_, (_, end) = PROTOCOLS[api].usual.scanner().read(whole)
    assert end < len(whole)
    turn = decoded_turn(play(NAMED["sse-cut"], NAMED["sse-cut"].variants[0], api), api)
    assert (turn.text, turn.finish, turn.error) == ("Hello", None, None)


def test_cut_in_three_ways():
    """The bytes are the same; then the answer ends, or the connection."""
    quirk = NAMED["sse-cut"]
    answers = [play(quirk, variant, "chat") for variant in quirk.variants]
    assert [answer.ending for answer in answers] == ["complete", "closed", "reset"]
    assert len({answer.data for answer in answers}) == 1
    last = answers[0].data[-1]
    assert last.startswith(b'data: {"id":"chatcmpl-')
    assert b'"object":"chat.comp' in last
    assert b"finish_reason" not in last


def test_malformed_json():
    """The event with the last text lacks its closing braces."""
    write = sample("sse-malformed-json")[2]
    assert write.startswith(b'data: {"id":"chatcmpl-')
    assert write.endswith(b'"delta":{"content":"lo"}\n\n')


@pytest.mark.parametrize("api", APIS)
def test_malformed_json_is_malformed(api):
    """Exactly one event is no JSON; the others are unchanged."""
    found = sample("sse-malformed-json", api)
    expected = plain(TEXT, api).data
    (broken,) = (index for index, write in enumerate(found) if write != expected[index])
    assert len(found) == len(expected)
    with pytest.raises(ValueError):
        json.loads(payload(PROTOCOLS[api].usual, found[broken]))


def test_content_type():
    """The stream has another content type, or none; the bytes are the same."""
    quirk = NAMED["sse-content-type"]
    json_type, none = (dict(play(quirk, variant, "chat").headers) for variant in quirk.variants)
    assert json_type["content-type"] == "application/json"
    assert "content-type" not in none
    assert body("sse-content-type") == b"".join(plain(TEXT, "chat").data)
