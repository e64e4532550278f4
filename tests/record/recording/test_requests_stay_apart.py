"""Two recorded requests never become one: whatever a recording hides, each gets its own answer.

Law 10: no answer goes to a request that differs from its own in what identifies it.
"""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes, host_in
from mockllm.play.matching.hidden import hidden_tag
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.loading import load
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured, Tape, dump_tape, load_tape
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from tests.record.importers.test_batch import cassette
from tests.record.recording.exchanging import JSON, answer, model, user

FORM = "application/x-www-form-urlencoded"
UPLOAD = "multipart/form-data; boundary=b"
BYTES = "application/x-protobuf"
API = "https://api.odd.test"
KEY = "sk-proj-Qx7ZrVb2Nm4Kl9Wd3Tp{}"


def request_to(url: str, body: str = "", kind: str = "application/json") -> Captured:
    """A request whose answer repeats it."""
    method = "POST" if body else "GET"
    number = crc32(f"{url} {body}".encode())  # shows which request it was, and holds no secret
    answer = json.dumps({"number": number}).encode()
    sent = (("content-type", kind),)
    return Captured(method, url, sent, body.encode(), 200, JSON, (TimedBytes(0, answer),))


def upload_of(address: str) -> str:
    """A form with a file that has an address."""
    head = 'content-disposition: form-data; name="file"; filename="people.jsonl"'
    return f"--b\r\n{head}\r\n\r\n{{}}\r\nwrite to {address}\r\n--b--\r\n"


PAIRS = {
    "a word": (request_to(f"{API}/v1/items?name=apple"), request_to(f"{API}/v1/items?name=pear")),
    "a format": (
        request_to(f"{API}/v1/speak?encoding=mp3"),
        request_to(f"{API}/v1/speak?encoding=wav"),
    ),
    "a switch": (request_to(f"{API}/v1/x?smart=true"), request_to(f"{API}/v1/x?smart=false")),
    "nothing": (request_to(f"{API}/v1/items?city=Oslo"), request_to(f"{API}/v1/items")),
    "an address": (
        request_to(f"{API}/v1/mail?to=ann.lee@corp.io"),
        request_to(f"{API}/v1/mail?to=bob.ray@corp.io"),
    ),
    "a key": (
        request_to(f"{API}/v1/x?key={KEY.format('aa1')}"),
        request_to(f"{API}/v1/x?key={KEY.format('bb2')}"),
    ),
    "a signature": (
        request_to(f"{API}/v1/x?sig=Zq8x0Vb2Nm4Kl6JhZq8x0Vb2"),
        request_to(f"{API}/v1/x?sig=Wd3Tp9Yc5Rf7Gt1HuWd3Tp9Y"),
    ),
    "an account": (
        request_to(f"{API}/organizations/acme/projects/apollo/models"),
        request_to(f"{API}/organizations/acme/projects/gemini/models"),
    ),
    "two accounts": (
        request_to(f"{API}/organizations/acme/projects/apollo/models"),
        request_to(f"{API}/organizations/umbrella/projects/hive/models"),
    ),
    "a host": (
        request_to("https://api.one.test/v1/models"),
        request_to("https://api.two.test/v1/models"),
    ),
    "a port": (
        request_to("http://127.0.0.1:8000/v1/models"),
        request_to("http://127.0.0.1:11434/v1/models"),
    ),
    "a field": (
        request_to(f"{API}/v1/tool", '{"to": "ann.lee@corp.io"}'),
        request_to(f"{API}/v1/tool", '{"to": "bob.ray@corp.io"}'),
    ),
    "a part of a field": (
        request_to(f"{API}/v1/embed", '{"input": ["write to ann.lee@corp.io, please"]}'),
        request_to(f"{API}/v1/embed", '{"input": ["write to bob.ray@corp.io, please"]}'),
    ),
    "a field that hides something, and one that does not": (
        request_to(f"{API}/v1/tool", '{"to": "ann.lee@corp.io"}'),
        request_to(f"{API}/v1/tool", '{"to": "everyone"}'),
    ),
    "a form": (
        request_to(f"{API}/v1/token", "client_secret=aaaa1111bbbb", FORM),
        request_to(f"{API}/v1/token", "client_secret=cccc2222dddd", FORM),
    ),
    "a file": (
        request_to(f"{API}/v1/files", upload_of("ann.lee@corp.io"), UPLOAD),
        request_to(f"{API}/v1/files", upload_of("bob.ray@corp.io"), UPLOAD),
    ),
    "a body of another kind": (
        request_to(f"{API}/v1/traces", "\x0a\x12 ann.lee@corp.io \x01a", BYTES),
        request_to(f"{API}/v1/traces", "\x0a\x12 bob.ray@corp.io \x01b", BYTES),
    ),
}


def player_of(tmp_path: Path, *exchanges: Captured) -> Player:
    """A player of the recordings of a cassette with these exchanges."""
    file = cassette(tmp_path / "cassettes" / "it.yaml", *exchanges)
    results = import_files([file], Folder(tmp_path / "scenarios"))
    lines = [one.line for one in results]
    assert not [line for line in lines if line.outcome == "skipped" or line.not_found]
    return Player(load(tmp_path / "scenarios"))


def sent(exchange: Captured, host: str | None = None) -> RouteRequest:
    """The request of an exchange, as a client sends it again that means its host."""
    path, _, query = exchange.url.partition("://")[2].partition("/")[2].partition("?")
    place = exchange.method, f"/{path}", query
    host = host_in(exchange.url) if host is None else host
    headers = dict(exchange.request_headers)
    return RouteRequest(*place, headers, exchange.request_body, host)


def answers(player: Player, *requests: RouteRequest) -> list[bytes | None]:
    """The bodies of the answers in one session; None for no answer."""
    session = Session("test")
    played = [player.routes.play(request, session) for request in requests]
    return [None if one is None else b"".join(one.answer.data) for one in played]


@pytest.mark.parametrize("kind", PAIRS)
def test_two_requests_stay_two(tmp_path: Path, kind: str) -> None:
    """Each gets its own answer, whichever comes first, and again when it comes again."""
    one, other = PAIRS[kind]
    player = player_of(tmp_path, one, other)
    for order in ((other, one), (one, other), (other, other, one, one)):
        assert answers(player, *map(sent, order)) == [each.body for each in order]


@pytest.mark.parametrize(
    ("kind", "url", "reason"),
    [
        ("a word", f"{API}/v1/items?name=plum", "the parameter 'name'"),
        ("a word", f"{API}/v1/items", "the parameter 'name'"),
        ("an address", f"{API}/v1/mail?to=eve.poe@corp.io", "the parameter 'to'"),
        ("a switch", f"{API}/v1/x?smart=maybe", "the parameter 'smart'"),
    ],
)
def test_an_unknown_value_is_refused(tmp_path: Path, kind: str, url: str, reason: str) -> None:
    """No answer to a request that differs; the reason names the parameter."""
    player = player_of(tmp_path, *PAIRS[kind])
    request = sent(request_to(url))
    assert answers(player, request) == [None]
    assert reason in player.routes.index.explain(request)


def test_the_parameter_with_another_value_is_named_first(tmp_path: Path) -> None:
    """However many recordings of the path have other parameters."""
    urls = [f"{API}/v1/items?{query}" for query in ("a=1", "b=1", "c=1", "d=1", "city=Oslo")]
    player = player_of(tmp_path, *map(request_to, urls))
    explained = player.routes.index.explain(sent(request_to(f"{API}/v1/items?city=Rome")))
    assert explained.startswith(
        "it-5: match.query: the parameter 'city' must be 'Oslo', got 'Rome'"
    )


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("a key", request_to(f"{API}/v1/x?key={KEY.format('cc3')}")),
        ("a signature", request_to(f"{API}/v1/x?sig=Kl6JhZq8x0Vb2Zq8x0Vb2Nm4")),
        ("two accounts", request_to(f"{API}/organizations/tyrell/projects/nexus/models")),
        ("a field", request_to(f"{API}/v1/tool", '{"to": "eve.poe@corp.io"}')),
    ],
)
def test_another_credential_gets_the_recordings_in_their_order(
    tmp_path: Path, kind: str, request_: Captured
) -> None:
    """Keys, accounts and addresses of bodies differ from machine to machine."""
    one, other = PAIRS[kind]
    player = player_of(tmp_path, one, other)
    request = sent(request_)
    assert answers(player, request, request, request) == [one.body, other.body, other.body]


def test_a_client_with_a_base_url_does_not_say_which_host_it_means(tmp_path: Path) -> None:
    """It gets the recordings in their order; a host that was not recorded gets none."""
    one, other = PAIRS["a host"]
    player = player_of(tmp_path, one, other)
    unknown = sent(one, host="")
    assert answers(player, unknown, unknown) == [one.body, other.body]
    assert answers(player, sent(one, host="api.three.test")) == [None]


def test_what_was_recorded_of_a_stand_in_is_found_elsewhere(tmp_path: Path) -> None:
    """A gateway or a fake on this machine stands for a service, at a port that changes. Where the
    host itself was recorded, its recording answers."""
    one, other = PAIRS["a port"]
    player = player_of(tmp_path, one, other)
    elsewhere = [sent(one, host=host) for host in ("api.one.test", "localhost:9999")]
    assert answers(player, *elsewhere) == [one.body, other.body]
    assert answers(player, sent(other), sent(one)) == [other.body, one.body]


def test_a_request_in_full_goes_before_one_with_hidden_values(tmp_path: Path) -> None:
    """A conversation that begins with a turn of the model: of the later turn only the digest says
    whose request it is, and one that leaves out what the user said is that of the other, too."""
    files = [
        cassette(tmp_path / name, answer([user(asked), model("Here is the JSON:")], said))
        for name, asked, said in (
            ("second.yaml", "Which colors?", "red"),
            ("first.yaml", "I am ann.lee@corp.io", "ann"),
        )
    ]
    lines = [one.line for one in import_files(files, Folder(tmp_path / "scenarios"))]
    assert [line.not_found for line in lines] == ["", ""]


@pytest.mark.parametrize("kind", PAIRS)
def test_a_tape_keeps_the_tags(kind: str) -> None:
    """Of what is hidden, and no more; redacting what is redacted changes nothing."""
    for exchange in PAIRS[kind]:
        clean = Redactor().exchange(exchange)
        tape = load_tape(dump_tape(Tape("", False, clean)), "x.jsonl").exchange
        assert tape.hidden == clean.hidden == Redactor().exchange(clean).hidden
        assert bool(clean.hidden) == (
            clean.url != exchange.url
            or clean.body != exchange.body
            or clean.request_body != exchange.request_body
        )


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_tag_says_little(before: str, after: str) -> None:
    """Two hexadecimal digits; of a text with an address only the address counts, so that many texts
    around it do not say more than one."""
    assert len(hidden_tag(before)) == 2
    address = "ann.lee@corp.io"
    if "@" not in before + after and not any(map(str.isdigit, before + after)):
        assert hidden_tag(f"{before} {address} {after}") == hidden_tag(address)
