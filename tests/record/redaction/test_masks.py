"""Masking of targets and headers for the journal: laws that hold for every request."""

from urllib.parse import quote, unquote

from hypothesis import example, given
from hypothesis import strategies as st

from mockllm.record.redaction.credentials import MASK, masked_headers, masked_messages, masked_url

# The parameters that the documentation calls harmless.
HARMLESS = frozenset(
    (
        "$.xgafv",
        "$alt",
        "after",
        "after_id",
        "alt",
        "api-version",
        "background",
        "before",
        "before_id",
        "beta",
        "deployment",
        "expand",
        "force",
        "include",
        "include[]",
        "include_obfuscation",
        "limit",
        "model",
        "order",
        "page",
        "page_size",
        "pagesize",
        "pretty",
        "prettyprint",
        "purpose",
        "starting_after",
        "stream",
        "upload_protocol",
        "uploadtype",
        "version",
        "webrtcfilter",
    )
)


def escaped(text):
    """Every character as an escape, as clients may write them."""
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


harmless = st.sampled_from(sorted(HARMLESS))
any_name = st.one_of(
    harmless,
    harmless.map(str.upper),
    harmless.map(escaped),
    st.sampled_from(["key", "sig", "code", "subscription-key", "", "k;e"]),
    st.text(max_size=8).map(lambda name: quote(name, safe="")),
)
any_value = st.one_of(
    st.sampled_from(["", "sse", "2024-10-21", "***", "a=b", "a;key=b", "a?b=c", "%26key%3Db"]),
    st.text(max_size=12).map(lambda value: quote(value, safe=";=?/")),
)
any_pair = st.tuples(any_name, st.sampled_from(["=", "=", "=", ""]), any_value)
raw_queries = st.text(max_size=60)
built_queries = st.lists(
    any_pair.map(lambda pair: "".join(pair[:2]) + (pair[2] if pair[1] else "")), max_size=6
).map("&".join)
queries = st.one_of(built_queries, raw_queries)


def pairs(query):
    """Name, sign and value of each parameter as they are written."""
    return [pair.partition("=") for pair in query.split("&")]


@given(queries)
@example("alt=sse;key=abcdef&key=1&key=2&=x&key=&b&%6b%65y=1&%61lt=sse")
@example("alt=sse#key=abcdef&x")
@example("alt=sse?key=abcdef")
def test_only_harmless_values_stay(query):
    """The value of every parameter that is not known to be harmless is `***` or empty. Names, their
    order and number, and the values of harmless parameters stay."""
    before, sign, _ = query.partition("#")
    path, question, masked = masked_url(f"/v1/x?{query}").partition("?")
    after, sign_after, fragment = masked.partition("#")
    assert (path, question) == ("/v1/x", "?")
    assert (sign_after, fragment) == (sign, sign and MASK)
    assert len(pairs(before)) == len(pairs(after))
    for (name, equals, value), (name_after, equals_after, value_after) in zip(
        pairs(before), pairs(after), strict=True
    ):
        assert (name_after, equals_after) == (name, equals)
        if value_after != MASK:
            assert value_after == value
            assert not value or unquote(name).lower() in HARMLESS


@given(queries)
@example("***&***=***&alt=***")
def test_masked_is_idempotent(query):
    """Masking a masked target or header changes nothing."""
    once = masked_url(f"/v1/x?{query}")
    assert masked_url(once) == once


secret_values = st.text("QXZ0123456789%;", min_size=6, max_size=20)


@given(st.lists(st.tuples(st.text("abc[]-_", min_size=1, max_size=6), secret_values), min_size=1))
def test_no_secret_value_stays(parameters):
    """No value of an unknown parameter is in the masked form, even where its name is repeated."""
    query = "&".join(f"{name}={value}" for name, value in parameters)
    masked = masked_url(f"/v1beta/models/gpt@mock:generateContent?alt=sse&{query}&alt=json")
    assert not [value for _, value in parameters if value in masked]
    assert masked.startswith("/v1beta/models/gpt@mock:generateContent?alt=sse&")
    assert masked.endswith("&alt=json")


@given(
    st.sampled_from(["http://", "//", "HTTPS://", "ws+tls://", ""]),
    st.text("abcXYZ:%@._~-", min_size=1, max_size=12),
)
def test_users_are_masked(before, user):
    """User and password before a host are `***`, also where there is no path after it."""
    masked = masked_url(f"{before}{user}@host.test:8080")
    assert masked == f"{before}***@host.test:8080"
    assert masked_url(masked) == masked


@given(st.dictionaries(st.sampled_from(["x-api-key", "cookie", "x-auth"]), st.text(max_size=20)))
def test_headers_secret_by_name(headers):
    """A header with a secret name is `***` whatever its value is, and is not removed."""
    assert masked_headers(headers) == dict.fromkeys(headers, MASK)


ordinary = st.text("abc XYZ.,;=+()-/", max_size=30)


@given(st.dictionaries(st.sampled_from(["accept", "x-title", "x-test", "user-agent"]), ordinary))
def test_ordinary_headers_stay(headers):
    """Ordinary values of other headers are unchanged."""
    assert masked_headers(headers) == headers


@given(secret_values, st.text("mn o", max_size=10), st.text("mn o", max_size=10))
def test_messages(value, before, after):
    """A message that quotes a secret header has a mask in its place, and is unchanged otherwise."""
    (masked,) = masked_messages([f"{before}{value!r}{after}"], {"x-api-key": value}, "/v1/x")
    assert masked == f"{before}'***'{after}"


def test_messages_that_cut_a_value():
    """No run of 12 characters of a header or parameter stays either."""
    value = "Zq8x0Vb2Nm4Kl6Jh"
    for headers, target in (
        ({"x-auth": value}, "/x"),
        ({"referer": f"https://app.test/?t={value}"}, "/x"),
        ({}, f"/x?t={value}&alt=sse"),
    ):
        (masked,) = masked_messages([f"got {value[:13]}... (16 characters)"], headers, target)
        assert masked == "got ***... (16 characters)"
