"""Requests with an AWS signature, which covers the host, reach the real service with another."""

import asyncio
import hashlib
import hmac
import json
import re

import pytest
from botocore.exceptions import ClientError

from mockllm.serve.server.recording import signing
from tests.clients.bedrock_client import bedrock
from tests.serve.server.recording.odd_upstream import OddUpstream
from tests.serve.server.recording.recorded_server import Recording

KEY, SECRET, TOKEN = (
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "session/token",
)
MODEL = "eu.anthropic.claude-haiku-4-5-20251001-v1:0"
ANSWER = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
    "metrics": {"latencyMs": 7},
}
QUESTION = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "Hello?"}]}]}


def hashed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(request, region):
    """The signature of a request with the secret key, as AWS's documentation computes it."""
    (authorization,) = request.header("authorization")
    names = re.search(r"SignedHeaders=([^,]+)", authorization)[1].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names)
    (time,) = request.header("x-amz-date")
    path = request.target.replace("%", "%25")  # is encoded once more, but for S3
    headers = [f"{name}:{request.header(name)[0]}" for name in names]
    digest = hashlib.sha256(request.body).hexdigest()
    canonical = "\n".join([request.method, path, "", *headers, "", ";".join(names), digest])
    scope = f"{time[:8]}/{region}/bedrock/aws4_request"
    assert f"Credential={KEY}/{scope}," in authorization
    hashed_request = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{SECRET}".encode()
    for part in (time[:8], region, "bedrock", "aws4_request"):
        key = hashed(key, part)
    return hashed(key, f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashed_request}").hex()


@pytest.fixture
def service(tmp_path):
    """A recorder in front of a service that refuses what is not signed for it, as AWS does."""

    async def play(request, wire):
        sent = re.search(r"Signature=(\w+)", request.header("authorization")[0])[1]
        if sent != signature(request, "us-east-1"):
            await wire.body('{"message": "does not match"}', status="403 Forbidden")
        else:
            await wire.body(json.dumps(ANSWER), "Content-Type: application/json")

    with OddUpstream(play) as upstream:
        yield Recording(tmp_path / "recorded", upstream)


@pytest.fixture(autouse=True)
def credentials(monkeypatch, tmp_path):
    """The credentials of the user who records; those of the client are worth nothing."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": TOKEN,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)


def test_a_request_is_signed_again(service):
    """The service accepts the request, whose host is not the one that the client signed for, and
    no credential is on the tape."""
    with service.recording(), bedrock(service.url) as client:
        answer = client.converse(**QUESTION)
    assert answer["output"] == ANSWER["output"]
    (sent,) = service.upstream.requests
    assert sent.header("host") == [service.upstream.url.removeprefix("http://")]
    assert sent.header("x-amz-security-token") == [TOKEN]
    written = b"".join(file.read_bytes() for file in service.folder.rglob("*") if file.is_file())
    for secret in (KEY, SECRET, TOKEN):
        assert secret.encode() not in written
    with service.replaying() as http, bedrock(str(http.base_url)) as client:
        assert client.converse(**QUESTION)["output"] == ANSWER["output"]


def test_without_credentials_the_client_gets_the_reason(service, monkeypatch):
    """Where botocore finds no credentials, nothing is sent, and the error says what to do."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with (
        service.recording(),
        bedrock(service.url, attempts=1) as client,
        pytest.raises(ClientError) as caught,
    ):
        client.converse(**QUESTION)
    assert "finds no credentials" in str(caught.value)
    assert "mockllm record --intercept" in str(caught.value)
    assert service.upstream.requests == []


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.eu-central-1.amazonaws.com", "eu-central-1"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("vpce-1a2b.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com", "ap-southeast-2"),
        ("gateway.example", "us-east-1"),
    ],
)
def test_the_region_is_that_of_the_host(host, region):
    """A host that names its region is signed for that region, others for the client's."""
    url = f"https://{host}/model/m/converse"
    scope = signing.Scope("us-east-1", "bedrock")
    headers = asyncio.run(signing.signed_again(scope, "POST", url, (), b"{}"))
    (authorization,) = (value.decode() for name, value in headers if name == b"Authorization")
    assert f"/{region}/bedrock/aws4_request" in authorization


def test_what_has_no_signature_stays():
    """Bearer tokens of Bedrock and keys of other services are no AWS signature."""
    assert signing.signed_scope(((b"Authorization", b"Bearer bedrock-api-key-1"),)) is None
    assert signing.signed_scope(((b"X-Api-Key", b"AWS4-HMAC-SHA256"),)) is None


def test_what_a_host_is_signed_for():
    """Without a signature to learn it from, the name of the host says service and region."""
    for host, expected in (
        ("bedrock-runtime.eu-west-1.amazonaws.com", signing.Scope("eu-west-1", "bedrock")),
        ("bedrock-runtime-fips.us-gov-west-1.api.aws", signing.Scope("us-gov-west-1", "bedrock")),
        ("sts.us-east-1.amazonaws.com", signing.Scope("us-east-1", "sts")),
        ("bedrock-runtime.eu-west-1.example.com", None),
        ("api.openai.com", None),
    ):
        assert signing.scope_of(f"https://{host}/model/m/converse?a=b") == expected
