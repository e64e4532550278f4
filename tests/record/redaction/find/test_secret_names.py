"""Secrets by the names of fields and headers: which names, and from which length on."""

import pytest

from mockllm.record.redaction.credentials import header_is_secret, parameter_is_secret
from mockllm.record.redaction.find.secret_names import is_password_name
from mockllm.record.redaction.redact import Redactor
from tests.cases import for_all


def is_redacted(name, value):
    """Whether the value of a JSON field is replaced."""
    return Redactor().json({name: value}) != {name: value}


@pytest.mark.parametrize("name", ["token", "key", "secret", "auth", "session_cookie", "credential"])
def test_weak_names(name):
    """A field with a weak name is a secret from 16 characters on, with three digits and three
    letters. Shorter values, words, numbers and UUIDs are none."""
    assert is_redacted(name, "a1b2c3d4e5f6g7h8")
    assert not is_redacted(name, "a1b2c3d4e5f6g7h")
    assert is_redacted(name, "abcdefghijklm123")
    assert not is_redacted(name, "abcdefghijklmn12")
    assert is_redacted(name, "1234567890123abc")
    assert not is_redacted(name, "12345678901234ab")
    assert not is_redacted(name, "a1b2c3d4 e5f6g7h8")
    assert not is_redacted(name, "550e8400-e29b-41d4-a716-446655440000")


@pytest.mark.parametrize(
    "name", ["password", "api_key", "apiKey", "client-secret", "accessToken", "x_api_code", "PWD"]
)
def test_strong_names(name):
    """A field with a strong name is a secret from 6 characters on, except types, variables and,
    where it is no password, short words."""
    assert is_redacted(name, "a1b2c3")
    assert not is_redacted(name, "a1b2c")
    assert is_redacted(name, "abcdefghij")
    assert is_redacted(name, "abcdefghi") == is_password_name(name)
    for value in ("$PASSWORD_1", "<password>", "{password1}", "two words 12"):
        assert not is_redacted(name, value)


@pytest.mark.parametrize("name", ["text", "tokens", "monkeys", "keyboard", "path", "signature"])
def test_other_names(name):
    """The value of a field with any other name is no secret."""
    assert not is_redacted(name, "a1b2c3d4e5f6g7h8")


@for_all(
    "name",
    [
        "next_page_token",
        "nextPageToken",
        "pageToken",
        "Key",
        "sort_key",
        "idempotency_key",
        "public_key",
        "max_tokens",
        "cache_key",
        "prompt_cache_key",
        "partitionKey",
        "object-key",
        "eos_token",
    ],
)
def test_names_that_only_end_like_a_secret(name):
    """A place in a list, a row or an object is no secret, as a field, in a text, in a header."""
    assert not is_redacted(name, "a1b2c3d4e5f6g7h8")
    text = f"{name}: a1b2c3d4e5f6g7h8"
    assert Redactor().text(text) == text
    assert not header_is_secret(f"x-{name}", "value") or name == "Key"


@for_all(
    ("name", "secret"),
    [
        ("x-key", True),
        ("x-keys", True),
        ("x-key-2", True),
        ("x-key2", True),
        ("X_API_KEY", True),
        ("x-keyboard", False),
        ("x-keyword", False),
        ("x-token", True),
        ("x-tokens", False),
        ("x-tokens-used", False),
        ("x-tokensecret", True),
        ("x-tokenizer", False),
        ("x-auth", True),
        ("x-authorization", True),
        ("x-authorisation", True),
        ("x-authenticated", True),
        ("x-author", False),
        (":authority", False),
        ("x-sig", True),
        ("x-sign", False),
        ("x-design", False),
        ("x-signature", True),
        ("x-code", True),
        ("x-encoded", False),
        ("accept-encoding", False),
        ("x-pass", True),
        ("x-compass", False),
        ("x-pin", True),
        ("x-spin", False),
        ("access-control-request-headers", False),
        ("x-mockllm-session", False),
        ("idempotency-key", False),
        ("x-idempotency-key", False),
        ("openai-organization", False),
    ],
)
def test_names_of_headers(name, secret):
    """Whole words of a name decide, not letters inside of other words."""
    assert header_is_secret(name, "value") is secret


@for_all(
    ("name", "value", "secret"),
    [
        ("alt", "sse", False),
        ("ALT", "sse", False),
        ("alt", "", False),
        ("key", "", False),
        ("key", "1", False),
        ("key", "pear", False),
        ("key", "4f9a1c7e", True),
        ("token", "bearer", False),
        ("password", "radiance", True),
        ("password", "required", False),
        ("pin", "4711", True),
        ("pin", "left", False),
        ("unknown", "1", False),
        ("unknown", "Qx7ZrVb2Nm4Kl9Wd3Tp0", True),
        ("thread_id", "Qx7ZrVb2Nm4Kl9Wd3Tp0", False),
        ("upload_id", "Qx7ZrVb2Nm4Kl9Wd3Tp0", True),
        ("q", "qwen2.5-coder-32b", False),
        ("q", "facebook/wav2vec2-large-960h-lv60-self", False),
        ("t", "dAkjyLfi5ofVGI-WdI_-F-HeZch", True),
        ("q", "meta-llama/Llama-3.3-70B-Instruct-Turbo-Free", False),
        ("smart_format", "true", False),
        ("name", "550e8400-e29b-41d4-a716-446655440000", False),
        ("alt", "sse;key=4f9a1c7e", True),
        ("alt", "sse&key=4f9a1c7e", True),
        ("alt", "Qx7ZrVb2Nm4Kl9Wd3Tp0" * 9, False),
        ("model", "sk-proj-" + "Ab3dEf6hIj" * 3, True),
    ],
)
def test_parameters(name, value, secret):
    """A name alone is no proof, and neither is a length."""
    assert parameter_is_secret(name, value) is secret
