"""A certificate authority that lives as long as the process, for the hosts that are intercepted.

Its key is in memory only. Python reads the keys of hosts from files, so each lies for a moment in a
folder of its own, which only this user may read.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cachetools import LRUCache

from mockllm.core.errors import UsageError
from mockllm.core.text import shorten
from mockllm.serve.interception.hosts import is_host

if TYPE_CHECKING:
    import trustme

_MOST_HOSTS = 1024


class Authority:
    """Makes certificates of hosts, signed by a certificate of its own.

    Raises:
        UsageError: the library that makes them is missing.
    """

    def __init__(self) -> None:
        try:
            import trustme
        except ModuleNotFoundError:
            raise UsageError(
                "interception needs the library trustme: pip install 'mockllm-harness[intercept]'"
            ) from None
        self._authority: trustme.CA = trustme.CA(organization_name="mockllm, for this process")
        self._contexts: LRUCache[str, ssl.SSLContext] = LRUCache(_MOST_HOSTS)

    def context(self, host: str) -> ssl.SSLContext:
        """The TLS context of connections to a host, which speak HTTP/1.1.

        Raises:
            UsageError: it is the name of no host, which gets no certificate.
        """
        if not is_host(host):
            raise UsageError(f"{shorten(host, 80)!r} is the name of no host")
        context = self._contexts.get(host)
        if context is None:
            context = self._contexts[host] = self._server_context(host)
        return context

    def by_name(self) -> ssl.SSLContext:
        """The TLS context of connections to this machine, by any name that clients give (SNI)."""
        context = self._server_context("localhost", "127.0.0.1", "::1")

        def choose(
            connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: object
        ) -> int | None:
            if name is None or name == "localhost":
                return None
            try:
                connection.context = self.context(name)
            except UsageError:
                return ssl.AlertDescription.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
            return None

        context.sni_callback = choose
        return context

    def _server_context(self, *hosts: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        # Before Python 3.13 a client that reads in one thread and writes in another breaks its own
        # connection where a ticket arrives as it writes; the synchronous one of websockets does so.
        context.num_tickets = 0
        certificate = self._authority.issue_cert(*hosts)
        with tempfile.TemporaryDirectory(prefix="mockllm-") as folder:
            file = Path(folder, "host.pem")
            certificate.private_key_and_cert_chain_pem.write_to_path(file)
            context.load_cert_chain(file)
        return context

    @property
    def certificate(self) -> bytes:
        """The certificate of the authority, as PEM."""
        return self._authority.cert_pem.bytes()

    def trust_bundle(self, file: str = "") -> bytes:
        """The certificates that a client is to trust, as PEM: ours, and those of the system, so
        that hosts which are not intercepted go on working.

        Args:
            file: with the certificates that it trusts otherwise; "" for those of the system.
        """
        return b"\n".join([*_trusted_otherwise(file), self.certificate])


def _trusted_otherwise(file: str) -> list[bytes]:
    paths = ssl.get_default_verify_paths()
    for name in filter(None, (file, paths.cafile, paths.openssl_cafile)):
        if Path(name).is_file():
            return [Path(name).read_bytes()]
    loaded = ssl.create_default_context().get_ca_certs(binary_form=True)
    return [ssl.DER_cert_to_PEM_cert(certificate).encode() for certificate in loaded]
