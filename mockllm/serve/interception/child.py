"""The environment that leads a program in a process of its own to the forward proxy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from mockllm.serve.interception.authority import Authority
from mockllm.serve.interception.headers import DEFAULT
from mockllm.serve.interception.hosts import Hosts

_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "WSS_PROXY", "WS_PROXY")
"""Programs read either spelling; curl takes HTTP_PROXY in small letters only. aiohttp looks for the
last two where it opens a WebSocket."""

_BUNDLES = (
    "SSL_CERT_FILE",  # OpenSSL, Python, httpx, Go, Rust
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)
"""The variables that name a file with all trusted certificates."""

_ADDED = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
"""Those that name a file with further ones."""

_DIALLING = ("SSL_CERT_FILE", *_ADDED)
"""Those that clients read which dial TLS whatever their base URL is: of WebSockets, in Python and
Node. The other variables may name a company's authority, which plain HTTP need not replace."""

_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's own; the certificates in it are public
_THIS_MACHINE = "localhost,127.0.0.1,::1"


def with_session(proxy_url: str, session: str, password: str = "") -> str:
    """The URL of a proxy for the clients of a session, which is the user name in it.

    Args:
        session: "" for that of requests which name none.
        password: of the proxy; "" for none.
    """
    if not session and not password:
        return proxy_url
    parts = urlsplit(proxy_url)
    user, secret = quote(session or DEFAULT, safe=""), quote(password or "x", safe="")
    return parts._replace(netloc=f"{user}:{secret}@{parts.netloc}").geturl()


def write_trust(authority: Authority, folder: Path, environment: Mapping[str, str]) -> None:
    """Writes what clients are to trust into a folder: for Java in a form of its own.

    Args:
        environment: of the client; what `SSL_CERT_FILE`, `NODE_EXTRA_CA_CERTS` and `DENO_CERT` name
            in it stays trusted.
    """
    trusted = authority.trust_bundle(environment.get("SSL_CERT_FILE", ""))
    files = {environment.get(name, "") for name in _ADDED}
    before = [Path(file).read_bytes() for file in sorted(files) if file and Path(file).is_file()]
    Path(folder, "trusted.pem").write_bytes(trusted)
    Path(folder, "mockllm.pem").write_bytes(b"\n".join([*before, authority.certificate]))
    Path(folder, "trusted.p12").write_bytes(_java_store(trusted))


def trusting(folder: Path) -> dict[str, str]:
    """The variables by which a program trusts the authority, from what `write_trust` wrote."""
    return {
        **dict.fromkeys(_BUNDLES, str(folder / "trusted.pem")),
        **dict.fromkeys(_ADDED, str(folder / "mockllm.pem")),
    }


def trusting_sockets(folder: Path) -> dict[str, str]:
    """Those of `trusting` for programs that have base URLs without TLS."""
    return {name: value for name, value in trusting(folder).items() if name in _DIALLING}


def child_environment(
    proxy_url: str, folder: Path, hosts: Hosts, environment: Mapping[str, str]
) -> dict[str, str]:
    """The variables by which a program sends its requests to a proxy and trusts it.

    Args:
        proxy_url: with the session as its user name.
        folder: with what `write_trust` wrote.
        environment: that the program would have otherwise.
    """
    exempt = "" if any(map(hosts.names_this_machine, hosts.named)) else _THIS_MACHINE
    proxy = urlsplit(proxy_url)
    java = [
        *(f"-D{scheme}.proxyHost={proxy.hostname}" for scheme in ("http", "https")),
        *(f"-D{scheme}.proxyPort={proxy.port}" for scheme in ("http", "https")),
        f"-Dhttp.nonProxyHosts={exempt.replace(',', '|')}",
        f"-Djavax.net.ssl.trustStore={folder / 'trusted.p12'}",
        f"-Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD}",
    ]
    options = filter(None, [environment.get("JAVA_TOOL_OPTIONS"), *java])
    return {
        **dict.fromkeys(_PROXIES, proxy_url),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), exempt),
        **trusting(folder),
        "NODE_USE_ENV_PROXY": "1",
        "JAVA_TOOL_OPTIONS": " ".join(options),
    }


def _java_store(pem: bytes) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import (
        PKCS12Certificate,
        serialize_java_truststore,
    )
    from cryptography.utils import CryptographyDeprecationWarning

    with warnings.catch_warnings():
        # Some roots that systems trust have no serial number as RFC 5280 wants it.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        certificates = x509.load_pem_x509_certificates(pem)
    named = [PKCS12Certificate(root, b"%d" % number) for number, root in enumerate(certificates)]
    return serialize_java_truststore(named, BestAvailableEncryption(_STORE_PASSWORD.encode()))
