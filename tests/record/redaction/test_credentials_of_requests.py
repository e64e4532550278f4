"""Credentials in headers and URLs: what is secret, what stays, and what is hidden elsewhere too."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mockllm.play.tapes.captured import Captured
from mockllm.record.redaction.credentials import (
    HeaderAllowlist,
    account_names,
    clean_url,
    credentials_of,
    header_is_secret,
    header_is_secret_by_name,
    holds_credential,
    parameter_is_private,
    parameters,
    secret_words,
    with_parameters,
)
from tests.cases import for_all

KEY = "sk-proj-Abcdefghijklmnop1234"


@for_all(
    ("name", "value", "secret"),
    [
        ("Authorization", "x", True),
        ("X-API-Key", "x", True),
        ("cookie", "", True),
        ("idempotency-key", "abc", False),
        ("X-Idempotency-Key", "abc", False),
        ("x-mockllm-session", "abc", False),
        ("X-MockLLM-Token", "abc", False),
        ("x-note", "plain", False),
        ("x-note", KEY, True),
        ("idempotency-key", KEY, True),
    ],
)
def test_a_header(name: str, value: str, secret: bool) -> None:
    """Because of its name in any case, or of its value."""
    assert header_is_secret(name, value) == secret
    assert header_is_secret_by_name(name) == (secret and value != KEY)


@pytest.mark.parametrize(
    ("value", "secret"),
    [(KEY, True), (f"a {KEY} b", True), (KEY[:14], True), ("sk-short", False), ("plain", False)],
)
def test_a_value_that_holds_a_credential(value: str, secret: bool) -> None:
    """Whole, or cut at the end."""
    assert holds_credential(value) == secret


@for_all(
    ("name", "value", "secret"),
    [
        ("limit", "10", False),
        ("LIMIT", "10", False),
        ("api-version", "2024-10-21", False),
        ("include[]", "a.b,c:d/e*[f] +$-_", False),
        ("limit", "x" * 128, False),
        ("limit", "x" * 129, True),
        ("limit", "a;b=c", True),
        ("limit", KEY, True),
        ("code", "1", True),
        ("what", "", False),
        ("", "x", True),
    ],
)
def test_a_parameter(name: str, value: str, secret: bool) -> None:
    """Private unless its name is known to be harmless and its value is plain and short."""
    assert parameter_is_private(name, value) == secret


@for_all(
    "name",
    ["$.xgafv", "$alt", "after", "after_id", "alt", "api-version", "background", "before",
     "before_id", "beta", "deployment", "expand", "force", "include",
     "include[]", "include_obfuscation", "limit", "model", "order", "page", "page_size",
     "pagesize", "pretty", "prettyprint",
     "purpose", "starting_after", "stream", "upload_protocol", "uploadtype", "version",
     "webrtcfilter"],
)  # fmt: skip
def test_the_parameters_that_are_harmless(name: str) -> None:
    """Options of the APIs; the journal shows no other parameter."""
    assert not parameter_is_private(name, "value")
    assert parameter_is_private(f"{name}x", "value")


def test_the_parameters_of_a_query() -> None:
    """Without escapes; a parameter without a value has an empty one."""
    assert list(parameters("a=b&c%20d=e%3Df=g&h&=i")) == [
        ("a", "b"),
        ("c d", "e=f=g"),
        ("h", ""),
        ("", "i"),
    ]


def test_secret_parameters_are_replaced() -> None:
    """What is replaced comes without escapes; all else stays as it was written."""
    seen = []

    def hidden(value: str) -> str:
        seen.append(value)
        return f"<{len(seen)}>"

    query = f"limit=1%30&sig=a%20b4567890&alt=sse&x={KEY}&{KEY}=1&plain&{KEY}"
    assert (
        with_parameters(query, parameter_is_private, hidden)
        == "limit=1%30&sig=<1>&alt=sse&x=<2>&<3>&plain&<4>"
    )
    assert seen == ["a b4567890", KEY, f"{KEY}=1", KEY]
    assert with_parameters("", parameter_is_private, hidden) == ""


@for_all(
    ("value", "words"),
    [
        ("abcdefg1", ["abcdefg1"]),
        ("abcdef1", []),
        ("abcdefgh", []),
        ("12345678", []),
        ("a" * 20, ["a" * 20]),
        ("a" * 19, []),
        ("Bearer abcdefg1", ["abcdefg1"]),
        ('a=abcdefg1; b=abcdefg2,"abcdefg3":x', ["abcdefg1", "abcdefg2", "abcdefg3"]),
        ("abcdefg1 abcdefg1", ["abcdefg1"]),
        ("key=abcdefg1", ["key=abcdefg1", "abcdefg1"]),
        ("Credential=abcdefg1/20250101/us-east-1a/bedrock/aws4_request, b", ["abcdefg1"]),
        ("", []),
    ],
)
def test_the_words_of_a_secret(value: str, words: list[str]) -> None:
    """Those that could be no ordinary words, each once; the whole value too if it has no blank."""
    assert list(secret_words(value)) == words


def test_attributes_of_a_cookie_are_no_secrets() -> None:
    """What follows the first semicolon in `set-cookie`."""
    value = "id=abcdefg1; Path=/abcdefg2; Domain=x"
    assert list(secret_words(value, first=True)) == ["id=abcdefg1", "abcdefg1"]
    assert "/abcdefg2" in list(secret_words(value))
    assert list(secret_words("abcdefg1", first=True)) == ["abcdefg1"]


# What a recording keeps


def test_the_request_headers_that_are_kept() -> None:
    """The others are left out; what is kept is searched for secrets."""
    pairs = [("Accept", "x"), ("x-other", "y"), ("X-Mine", "z"), ("date", "d")]
    allowlist = HeaderAllowlist(["x-mine"])
    assert allowlist.of_request(pairs, str, str.upper) == (("Accept", "X"), ("X-Mine", "Z"))
    assert HeaderAllowlist().of_request(pairs, str, str.upper) == (("Accept", "X"),)


def _kept_of_response(
    pairs: Iterable[tuple[str, str]], more: Iterable[str] = ()
) -> tuple[tuple[str, str], ...]:
    return HeaderAllowlist(more).of_response(pairs, lambda value: f"<{value}>", str.upper)


@for_all(
    ("name", "value", "kept"),
    [
        ("Date", "x", "X"),
        ("x-own", "x", "X"),
        ("alt-svc", 'h3=":443"', 'H3=":443"'),
        ("x-ratelimit-key", "x", "X"),
        ("my-x-ratelimit-key", "x", "REDACTED"),
        ("access-control-allow-credentials", "true", "TRUE"),
        ("www-authenticate", "Bearer realm=x", "BEARER REALM=X"),
        ("x-amzn-bedrock-input-token-count", "7", "7"),
        ("x-ms-error-code", "x", "X"),
        ("location", "/v1/a/b", "/V1/A/B"),
        (
            "location",
            "https://h/projects/p1?alt=a&sig=b2345678",
            "HTTPS://H/PROJECTS/<P1>?ALT=A&SIG=<B2345678>",
        ),
        (
            "x-goog-upload-url",
            "https://u:p@h/a?upload_id=b2345678",
            "HTTPS://H/A?UPLOAD_ID=<B2345678>",
        ),
        ("Set-Cookie", "y", "REDACTED"),
        ("x-amz-security-token", "y", "REDACTED"),
        ("x-api-key", "y", "REDACTED"),
        ("openai-organization", "y", "REDACTED"),
        ("OpenAI-Project", "y", "REDACTED"),
        ("x-tenant-id", "y", "REDACTED"),
        ("x-forwarded-for", "y", "REDACTED"),
        ("x-client-ip", "y", "REDACTED"),
    ],
)
def test_a_response_header(name: str, value: str, kept: str) -> None:
    """It stays, without what is secret in it, unless its name says that it is a secret, an account
    or the address of the client; in a URL the values of the query are secret."""
    assert _kept_of_response([(name, value)]) == ((name, kept),)
    assert _kept_of_response([(name, "value")], [name.lower()]) == ((name, "VALUE"),)


REQUEST = {
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "content-encoding",
    "content-length",
    "content-type",
    "openai-beta",
    "transfer-encoding",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "user-agent",
    "x-mockllm-scenario",
    "x-mockllm-session",
}


def test_the_list_of_request_headers() -> None:
    """Each header of a request that a recording keeps was chosen; a new one is a decision."""
    pairs = [(name, "v") for name in sorted(REQUEST | {"date", "x-request-id", "x-stainless-os"})]
    assert {name for name, _ in HeaderAllowlist().of_request(pairs, str, str)} == REQUEST


def captured(
    url: str = "https://odd.test/v1",
    request: tuple[tuple[str, str], ...] = (),
    response: tuple[tuple[str, str], ...] = (),
) -> Captured:
    return Captured("POST", url, request, b"", 200, response, ())


def test_credentials_of_headers() -> None:
    """Those of headers that are secret; names of accounts are listed by themselves."""
    request = (
        ("Authorization", "Bearer abcdefg1"),
        ("openai-organization", "org-name-12"),
        ("x-note", "abcdefg2"),
        ("X-Note", f"see {KEY}"),
        ("user-agent", "abcdefg3"),
    )
    assert list(credentials_of(captured(request=request))) == ["abcdefg1", KEY]
    assert account_names(captured(request=request)) == {"org-name-12"}
    response = (
        ("Set-Cookie", "sid=abcdefg4; Path=/abcdefg5"),
        ("x-session", "a=abcdefg6; b=abcdefg7"),
        ("x-request-id", "abcdefg8"),
        ("x-other", "abcdefg9"),
        ("x-workspace", "name-of-it-10"),
    )
    assert list(credentials_of(captured(response=response))) == [
        "sid=abcdefg4",
        "abcdefg4",
        "abcdefg6",
        "abcdefg7",
    ]
    assert account_names(captured(response=response)) == {"name-of-it-10"}


@for_all(
    ("name", "value"),
    [
        ("x-ratelimit-key", "gpt-5.2-chat"),
        ("x-model-key", "gpt-5.2-chat"),
        ("x-session-model", "claude-sonnet-4-5-20250929"),
        ("www-authenticate", 'Bearer realm="https://auth.docker.test/token"'),
        ("x-auth-url", "https://auth.docker.test/token/of/a/realm"),
        ("x-trace", "abcdefgh12345678abcdefgh"),
    ],
)
def test_words_of_headers_are_no_credentials(name: str, value: str) -> None:
    """Names of models, addresses, and whatever stands in a header that is not secret."""
    headers = ((name, value),)
    assert list(credentials_of(captured(request=headers))) == []
    assert list(credentials_of(captured(response=headers))) == []


def test_credentials_of_a_url() -> None:
    """The password, or the name where there is none, and the parameters that are secret."""
    assert list(credentials_of(captured("https://name1234:a%20b1234567@x/"))) == ["b1234567"]
    url = "https://name12345:pass12345@odd.test/v1?sig=abcdefg1&limit=abcdefg2&t=abcdefg3&key=abc"
    assert list(credentials_of(captured(url))) == ["pass12345", "abcdefg1"]
    assert list(credentials_of(captured("https://token12345@odd.test/v1"))) == ["token12345"]
    assert list(credentials_of(captured("https://odd.test/v1"))) == []
    url = f"https://odd.test/v1?expand=inferenceProviderMapping&at={KEY}"
    assert set(credentials_of(captured(url))) == {KEY}
    drawn = "Zq8x0Vb2Nm4Kl6JhZq8x0Vb2"
    url = f"https://odd.test/v1?run_id={drawn}&t={drawn}&model_of=claude-sonnet-4-5-20250929"
    assert list(credentials_of(captured(url))) == [drawn]


@for_all(
    ("url", "clean"),
    [
        ("https://odd.test/v1/chat?alt=sse", "https://odd.test/v1/chat?alt=sse"),
        ("https://user:pw@odd.test/v1", "https://odd.test/v1"),
        ("https://odd.test", "https://odd.test"),
        ("https://odd.test/v1?sig=a%2Fb45678&limit=3", "https://odd.test/v1?sig=<a/b45678>&limit=3"),
        ("https://odd.test/v1#a%20b", "https://odd.test/v1#<a b>"),
        ("https://odd.test/v1#", "https://odd.test/v1#"),
        ("https://odd.test/v1?x=1#y", "https://odd.test/v1?x=1#<y>"),
        ("https://odd.test/projects/p1/x", "https://odd.test/projects/<p1>/x"),
        ("https://odd.test/accounts/a1?limit=1", "https://odd.test/accounts/<a1>?limit=1"),
        ("https://odd.test/organizations/o1/tenants/t1",
         "https://odd.test/organizations/<o1>/tenants/<t1>"),
        ("https://odd.test/workspaces/w1/subscriptions/s1",
         "https://odd.test/workspaces/<w1>/subscriptions/<s1>"),
        ("https://odd.test/accounts/acc/x", "https://odd.test/accounts/<acc>/x"),
        ("https://odd.test/projects/pro", "https://odd.test/projects/<pro>"),
        ("https://odd.test/organizations/workspaces/w1/members/u1",
         "https://odd.test/organizations/workspaces/<w1>/members/u1"),
        ("https://odd.test/organization/projects/p1/users/u1",
         "https://odd.test/organization/projects/<p1>/users/u1"),
        ("https://odd.test/organizations/users", "https://odd.test/organizations/users"),
        ("https://odd.test/myprojects/p1", "https://odd.test/myprojects/p1"),
        ("https://odd.test/a@b/c", "https://odd.test/a@b/c"),
    ],
)  # fmt: skip
def test_a_url_that_is_kept(url: str, clean: str) -> None:
    """Without user and password, ids of accounts, secret values and fragment."""
    assert clean_url(url, lambda value: f"<{value}>", lambda text: text) == clean
    assert clean_url(url, lambda value: f"<{value}>", str.upper) == clean.upper()
