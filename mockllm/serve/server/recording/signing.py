"""AWS signatures of requests that a recorder sends on to another host.

A signature (version 4, https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html) covers
the host, so that of the client is worth nothing to the real service. botocore makes another, with
the credentials that it finds for this process; where a client is intercepted, the host stays and so
does its signature.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from mockllm.core.errors import UpstreamError
from mockllm.serve.server.recording.upstream import RawHeaders

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
_SIGNED = re.compile(
    rb"AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request"
)
_OF_SIGNATURE = (b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256")
_REGION = re.compile(r"\.(?P<region>[a-z]{2,}(?:-[a-z]+)+-\d)\.(?:vpce\.)?(?:amazonaws|api\.aws)")


@dataclass(frozen=True, slots=True)
class Scope:
    """The region and service that a signature is for, such as `us-east-1` and `bedrock`."""

    region: str
    service: str


_HOST = re.compile(
    r"(?P<service>[a-z0-9]+)(?:-runtime)?(?:-fips)?\.(?P<region>[a-z]{2,}(?:-[a-z]+)+-\d)\."
    r"(?:amazonaws|api\.aws)"
)


def scope_of(url: str) -> Scope | None:
    """The scope for which requests to a URL are signed; None for a host that is none of AWS."""
    found = _HOST.match(urlsplit(url).hostname or "")
    return Scope(found["region"], found["service"]) if found is not None else None


def signed_scope(headers: RawHeaders) -> Scope | None:
    """The scope of a request's signature; None for a request that has none."""
    for name, value in headers:
        found = _SIGNED.match(value) if name.lower() == b"authorization" else None
        if found is not None:
            return Scope(found["region"].decode("latin-1"), found["service"].decode("latin-1"))
    return None


async def signed_again(
    scope: Scope, method: str, url: str, headers: RawHeaders, body: object
) -> RawHeaders:
    """The headers with a signature for the host of `url`. The region is that of the host, where it
    names one.

    Raises:
        UpstreamError: botocore is not installed or finds no credentials, or the body is sent on as
            it arrives, so that its digest is not known.
    """
    if not isinstance(body, bytes | None):
        raise UpstreamError(_message(url, "its body is too large to be recorded"))
    # Credentials may come from a program or from a service of the network.
    return await asyncio.to_thread(_sign, scope, method, url, headers, body or b"")


def _sign(scope: Scope, method: str, url: str, headers: RawHeaders, body: bytes) -> RawHeaders:
    try:
        from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
        from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError:
        raise UpstreamError(_message(url, "botocore, which can, is not installed")) from None
    try:
        credentials = Session().get_credentials()
    except BotoCoreError as error:
        raise UpstreamError(_message(url, f"botocore finds no credentials: {error}")) from error
    if credentials is None:
        why = "botocore finds no credentials; set AWS_PROFILE or AWS_ACCESS_KEY_ID for mockllm"
        raise UpstreamError(_message(url, why))
    kept = [pair for pair in headers if pair[0].lower() not in _OF_SIGNATURE]
    covered = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in kept
        if name.lower() == b"content-type" or name.lower().startswith(b"x-amz-")
    }
    named = _REGION.search(urlsplit(url).hostname or "")
    request = AWSRequest(method, url, headers=covered, data=body)
    region = named["region"] if named is not None else scope.region
    SigV4Auth(credentials.get_frozen_credentials(), scope.service, region).add_auth(request)
    made = [(n, v) for n, v in request.headers.items() if n not in covered]
    return (*kept, *((name.encode("latin-1"), value.encode("latin-1")) for name, value in made))


def _message(url: str, why: str) -> str:
    host = urlsplit(url).netloc
    return (
        f"The request is signed for this server and has to be signed again for {host}: {why}. Or "
        "record without a base URL: `mockllm record --intercept`, which leaves signatures as they "
        "are."
    )
