"""The journal, the logs and the recorder agree on what is secret.

One recording server gets a request for each row of the tables. Then the tests search everything
that it shows and writes.
"""

import json
import signal
import socket
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.cli.serving.server_log import LineOutput, LogOptions, ServerLog
from mockllm.serve.server.options import RecordOptions
from tests.cases import for_all
from tests.cli.conftest import Program
from tests.timeouts import GIVE_UP

SERVICE = "scenario: service\nmatch: any\nturns: [{reply: {text: Hello}}]\n"
PATH = "/v1/chat/completions"

# Ordinary values: only the names make them secret.
SECRET_HEADERS = {
    name: f"header{number}-value"
    for number, name in enumerate(
        [
            "Authorization",
            "Proxy-Authorization",
            "X-Api-Key",
            "X-Goog-Api-Key",
            "api-key",
            "apikey",
            "Ocp-Apim-Subscription-Key",
            "x-functions-key",
            "x-auth",
            "X-Auth-Request-User",
            "X-Amz-Security-Token",
            "X-Access-Token",
            "X-Vault-Token",
            "X-CSRF-Token",
            "X-Hub-Signature-256",
            "x-sig",
            "x-ms-code",
            "X-Client-Secret",
            "x-credential",
            "X-Password",
            "x-pwd",
            "x-passphrase",
            "x-accesskeyid",
            "Cookie",
            "X-Session-Id",
            "mcp-session-id",
            "x-jwt-assertion",
            "x-otp",
            "Sec-WebSocket-Protocol",
        ]
    )
}
# Harmless names: the values are secret.
SECRET_VALUES = {
    "x-title": "sk-proj-" + "Ab3dEf6hIj" * 3,
    "x-forwarded": "Bearer Zq8x0Vb2Nm4Kl6Jh",
    "x-note": "the api_key='Zq8x0Vb2Nm4Kl6Jh'",
    "x-upstream": "https://joe:hidden-pw7@db.internal/x",
    "x-jwt-less": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "x-cut": "the key is sk-Ab3dEf6hI",
}
# URLs in headers: only a part of the value is secret.
SECRET_IN_URLS = {
    "referer": ("https://app.test/callback?code=referer-value", "referer-value"),
    "x-original-url": ("/v1/models?t=original-value", "original-value"),
    "http-referer": ("https://referer-user@app.test/", "referer-user"),
}
SECRET_PARAMETERS = {
    name: f"Qx7Zr{number:02}Vb2Nm4Kl9Wd3Tp"  # words of a query stay in a recording
    for number, name in enumerate(
        [
            "key",
            "api_key",
            "apikey",
            "api-key",
            "subscription-key",
            "sig",
            "code",
            "token",
            "access_token",
            "auth",
            "client_secret",
            "X-Amz-Signature",
            "X-Goog-Credential",
            "session",
            "t",
            "user",
            "whatever",
            "%6b%65%79",
            "k;e;y",
            "",
        ]
    )
}
# Other ways in which a target carries a secret.
SECRET_TARGETS = {
    f"{PATH}?alt=first-value;key=second-value2": ("second-value2",),
    f"{PATH}?model=sk-proj-{'Zx9yWv8u' * 3}": (f"sk-proj-{'Zx9yWv8u' * 3}",),
    f"{PATH}?key=again1-value&alt=sse&key=again2-value": ("again1-value", "again2-value"),
    f"{PATH}?sk-proj-{'Bc4dEf5g' * 3}": (f"sk-proj-{'Bc4dEf5g' * 3}",),
    f"{PATH}?key=%65scaped-%76alue": ("%65scaped-%76alue", "escaped-value"),
    f"{PATH}?alt=sse#fragment-value": ("fragment-value",),
    "http://target-user:target-pw@app.test/v1/nothing": ("target-user", "target-pw"),
    f"/v1/nothing/sk-proj-{'Rs7tUv8w' * 3}": (f"sk-proj-{'Rs7tUv8w' * 3}",),
}

HARMLESS_HEADERS = {
    "content-type": "application/json",
    "idempotency-key": "stainless-python-retry-0f9a7b",
    "user-agent": "OpenAI/Python 1.99.1",
    "openai-beta": "assistants=v2",
    "openai-organization": "acme",
    "anthropic-version": "2023-06-01",
    "x-title": "Keys and tokens",
    "http-referer": "https://app.test/start",
    "x-stainless-retry-count": "1",
    "x-stainless-runtime-version": "3.12.1",
    "x-mockllm-quirk": "",
    "x-ratelimit-limit-tokens": "4096",
    "x-max-tokens": "64",
    "x-author": "Ada",
    "x-design": "signal",
    "x-tokenizer": "o200k",
    "x-test-case": "test_one[a=b;c]",
    "x-request-id": "0f9a7b34-55aa-4d7e-9f3e-0123456789ab",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
HARMLESS_PARAMETERS = {
    "alt": "sse",
    "$alt": "json;enum-encoding=int".partition(";")[0],
    "api-version": "2024-10-21",
    "beta": "true",
    "stream": "false",
    "model": "gpt-4o-mini",
    "limit": "20",
    "after": "resp_68a1b2c3",
    "include[]": "message.output_text.logprobs",
    "%61lt": "sse",
}


@dataclass(frozen=True)
class Output:
    """Everything that a recording server shows and writes about some requests."""

    journal: list[dict]
    log: str
    json_log: str
    files: str

    def everywhere(self):
        """Each of the four as text, by name."""
        return {
            "journal": json.dumps(self.journal, ensure_ascii=False),
            "text log": self.log,
            "JSON log": self.json_log,
            "recording": self.files,
        }


def targets():
    """Every target with its secrets."""
    for name, value in SECRET_PARAMETERS.items():
        yield f"{PATH}?{name}={value}", (value,)
    yield from SECRET_TARGETS.items()


def headers():
    """Every header with its secrets."""
    for name, value in (*SECRET_HEADERS.items(), *SECRET_VALUES.items()):
        yield {name: value}, (value,)
    for name, (value, secret) in SECRET_IN_URLS.items():
        yield {name: value}, (secret,)


SECRETS = [*targets(), *headers()]


def send(port, target, extra, number):
    """Sends a chat request; each has its own text, so that each is recorded."""
    messages = [{"role": "user", "content": f"request {number}"}]
    body = json.dumps({"model": "gpt-4o", "messages": messages})
    connection = HTTPConnection("127.0.0.1", port, timeout=GIVE_UP)
    connection.putrequest("POST", target, skip_accept_encoding=True)
    for name, value in {"Content-Length": str(len(body)), **extra}.items():
        connection.putheader(name, value)
    connection.endheaders(body.encode())
    connection.getresponse().read()
    connection.close()


def send_all(port):
    """A request for each row of the tables of secrets."""
    for number, (case, _) in enumerate(SECRETS):
        target, extra = (case, {}) if isinstance(case, str) else (PATH, case)
        send(port, target, extra, number)


def get_journal(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=GIVE_UP)
    connection.request("GET", "/_mockllm/journal")
    exchanges = json.loads(connection.getresponse().read())["exchanges"]
    connection.close()
    return exchanges


def port_of(url):
    return int(url.rsplit(":", 1)[1])


@pytest.fixture(scope="module")
def recorded_output(tmp_path_factory):
    """The output of a recording server that got a request for each secret."""
    folder = tmp_path_factory.mktemp("secrets")
    logs = [(folder / name).open("w+b") for name in ("log", "json")]
    text, lines = (
        ServerLog(LogOptions("text"), LineOutput(logs[0].fileno())),
        ServerLog(LogOptions("json"), LineOutput(logs[1].fileno())),
    )
    with ServerThread(loads(SERVICE)) as service:

        def both(method):
            return lambda one: (getattr(text, method)(one), getattr(lines, method)(one))

        recorded = folder / "recorded"
        record = RecordOptions(recorded, {"chat": service.url}, report=both("recorded"))
        options = ServerOptions(log=both("exchange"), record=record)
        with ServerThread((), options) as server:
            private = replace(record, upstreams={"chat": "https://up-user:up-pw@service.test"})
            text.recording(private)
            lines.recording(private)
            send_all(port_of(server.url))
            journal = get_journal(port_of(server.url))
    files = "".join(file.read_text() for file in sorted(recorded.rglob("*")) if file.is_file())
    for log in logs:
        log.close()
    return Output(journal, *[Path(log.name).read_text() for log in logs], files)


@for_all(("case", "secrets"), SECRETS, ids=[str(case)[:60] for case, _ in SECRETS])
def test_secrets_are_nowhere(recorded_output, case, secrets):
    """No secret of a header or a target is in the journal, in a log or in a recording."""
    left = [
        (where, secret)
        for where, text in recorded_output.everywhere().items()
        for secret in secrets
        if secret in text
    ]
    assert not left


def test_the_tables_reach_the_journal_and_the_recording(recorded_output):
    """The test above searches real output: each request is in the journal with the name of its
    parameter, and each one that the service answered is recorded."""
    assert len(recorded_output.journal) == len(SECRETS)
    for (case, _), entry in zip(SECRETS, recorded_output.journal, strict=True):
        if isinstance(case, dict):
            (name,) = case
            if name.lower() == "proxy-authorization":  # which ends at the proxy
                assert name.lower() not in entry["headers"]
                continue
            assert "***" in entry["headers"][name.lower()]
        else:
            assert entry["path"].count("&") == case.count("&")
            # Of a target with an origin, only the path is kept.
            assert "***" in entry["path"] or case.startswith("http://")
    answered = [entry for entry in recorded_output.journal if entry["status"] == 200]
    assert len(answered) >= len(SECRETS) - 2
    forwarded = [one for one in recorded_output.journal if one["outcome"] == "forwarded"]
    assert recorded_output.files.count('"mockllm-tape"') == len(forwarded)
    assert f"{PATH}?subscription-key=REDACTED-1" in recorded_output.files
    assert f"POST {PATH}?subscription-key=***" in recorded_output.log
    assert f'"path":"{PATH}?subscription-key=***"' in recorded_output.json_log


def test_the_services_in_the_logs(recorded_output):
    """User and password of an upstream's URL are in no log."""
    assert "Recording chat from https://***@service.test\n" in recorded_output.log
    assert '"upstreams":{"chat":"https://***@service.test"}' in recorded_output.json_log


def test_harmless_values_stay_readable(serve):
    """Harmless values, which help with debugging, stay in the journal unchanged."""
    served = serve(SERVICE)
    port = port_of(served.url)
    send(port, PATH, HARMLESS_HEADERS, 0)
    send(port, PATH, {"x-mockllm-session": "own"}, 1)
    query = "&".join(f"{name}={value}" for name, value in HARMLESS_PARAMETERS.items())
    send(port, f"{PATH}?{query}", {}, 2)
    entry, with_query = served.journal()
    assert {name: entry["headers"][name] for name in HARMLESS_HEADERS} == HARMLESS_HEADERS
    assert with_query["path"] == f"{PATH}?{query}"
    assert served.journal("own")[0]["headers"]["x-mockllm-session"] == "own"


def test_messages_about_requests(serve):
    """The problems of a request in the journal quote the values that `match` compares, without
    their secrets: short and long values, cut ones, and paths."""
    served = serve(
        "scenario: keyed\n"
        "match: {headers: {x-api-key: {equals: right}}}\n"
        "turns: [{reply: {text: Hello}}]\n"
    )
    port = port_of(served.url)
    values = ["short", "Zq8x0Vb2Nm4Kl6Jh", "Zq8x0Vb2" * 40]
    for number, value in enumerate(values):
        send(port, PATH, {"x-api-key": value}, number)
    send(port, "//name:pw7@app.test/v1/nothing", {}, 9)
    problems = [" ".join(entry["problems"]) for entry in served.journal()]
    assert all("the header 'x-api-key'" in problem for problem in problems[:3])
    assert "must be 'right', got '***'" in problems[0]
    assert not [value for value in (*values, "Zq8x0Vb2Zq8x") if value in " ".join(problems)]
    assert "//***@app.test/v1/nothing" in problems[3]
    assert "pw7" not in problems[3]


def test_an_upstream_that_does_not_speak_http(tmp_path):
    """The message about it has neither the query nor the user of its URL, nor the bytes that it
    sent."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    upstream = f"http://up-user:up-pw@127.0.0.1:{port}"
    lines = []
    record = RecordOptions(tmp_path, {"chat": upstream})
    options = ServerOptions(record=record, log=lambda exchange: lines.append(exchange.as_json()))
    with listening, ServerThread((), options) as server:
        connection = HTTPConnection("127.0.0.1", port_of(server.url), timeout=GIVE_UP)
        connection.request("POST", f"{PATH}?key=query-value", "{}")
        service, _ = listening.accept()
        with service:
            service.recv(65536)
            service.sendall(b"HTTP/1.1 200 OK\r\nset-cookie: sent-value\x00\r\n\r\n")
            answer = connection.getresponse().read().decode()
        connection.close()
        journal = json.dumps(get_journal(port_of(server.url)))
    assert f"does not answer at http://***@127.0.0.1:{port}{PATH}" in answer
    for text in (answer, journal, json.dumps(lines)):
        assert not [
            secret for secret in ("up-user", "up-pw", "query-value", "sent-value") if secret in text
        ]


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_output_of_the_program(tmp_path, log_format):
    """`mockllm serve` prints no secret to standard output or standard error, not even of a request
    that is not HTTP."""
    (tmp_path / "service.yaml").write_text(SERVICE)
    program = Program(["serve", tmp_path, "--port", "0", "--log-format", log_format], {})
    try:
        port = port_of(program.listening().url)
        send_all(port)
        for broken in (
            b"POST /v1/messages?key=broken1-value HTTX/1.1\r\nHost: a\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nX-Api-Key: broken2-value\x00\r\n\r\n",
            b"POST /v1/messages HTTP/1.1\r\nX-Api-Key : broken3-value\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", port), GIVE_UP) as connection:
                connection.sendall(broken)
                assert b" 400 " in connection.recv(65536)
        program.signal(signal.SIGTERM)
        code, output, errors = program.end()
    finally:
        program.watchdog.cancel()
        program.process.kill()
    assert code == 0
    assert output.count("played") >= len(SECRETS) - 2
    assert errors == ""
    assert output.count("This is no HTTP request") == 3
    secrets = [secret for _, secrets in SECRETS for secret in secrets]
    secrets += ["broken1-value", "broken2-value", "broken3-value"]
    assert not [secret for secret in secrets if secret in output + errors]
