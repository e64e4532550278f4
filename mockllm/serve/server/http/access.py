"""Who may see what clients sent: clients on this machine, and pages of the origins that are named.

The control routes and look-ups of stored answers show it, and requests that are passed on to a
service make the server connect somewhere. So a page in a browser must do neither, whatever name it
gives to 127.0.0.1 (the `Host` is checked) and wherever it comes from: browsers say so in `Origin`,
and where a page sends none, as for an image, in `Sec-Fetch-Site`
(https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from mockllm.core.errors import RequestError, UsageError
from mockllm.serve.interception.headers import ORIGIN_HEADER

# An origin as browsers write it (RFC 6454, section 6.2), and a list of tokens (RFC 9110, 5.6.2).
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s@,*A-Z]+")
_TOKENS = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:\s*,\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")
_USUAL_PORTS = {"http": ":80", "https": ":443"}

_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"


def preflight_headers(headers: Mapping[str, str], origin: str = "*") -> dict[str, str]:
    """The headers of the answer to a preflight request: every method and header is allowed.

    The headers are named as they are requested, because `*` does not cover `authorization`
    (https://fetch.spec.whatwg.org/#cors-non-wildcard-request-header-name). No page may name the
    service that a request is for.

    Args:
        origin: whose pages may send the request; `*`: of every origin.
    """
    requested = headers.get("access-control-request-headers", "").strip()
    allowed = requested if _TOKENS.fullmatch(requested) else "*"
    if ORIGIN_HEADER in allowed.lower():
        names = (name.strip() for name in allowed.split(","))
        allowed = ", ".join(name for name in names if name.lower() != ORIGIN_HEADER)
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": allowed,
        "access-control-max-age": "86400",
    }


def check_origin(origin: str) -> None:
    """Checks that a text is an origin as browsers send it: `https://app.example:8443`.

    Raises:
        UsageError: it is not; the message has the right form where there is one.
    """
    if origin in ("*", "null"):
        raise UsageError(
            f"--allow-origin: {origin!r} is not allowed, because the control routes show what "
            "clients sent; name each origin, such as http://localhost:3000"
        )
    scheme = origin.partition("://")[0]
    port = _USUAL_PORTS.get(scheme)
    if _ORIGIN.fullmatch(origin) and not (port and origin.endswith(port)):
        return
    scheme, _, rest = origin.lower().partition("://")
    netloc = rest.partition("/")[0].rpartition("@")[2].removesuffix(_USUAL_PORTS.get(scheme, "-"))
    right = f"{scheme}://{netloc}"
    hint = f"did you mean {right}?" if _ORIGIN.fullmatch(right) else "write http://localhost:3000"
    raise UsageError(f"--allow-origin: {origin!r} is not an origin as browsers send it; {hint}")


class ControlAccess:
    """Decides which requests may use the control routes."""

    def __init__(self, host: str, allowed_hosts: tuple[str, ...], origins: Iterable[str]) -> None:
        self._hosts = (host, *allowed_hosts)
        self._allowed_hosts = allowed_hosts
        self._origins = frozenset(origins)
        for origin in self._origins:
            check_origin(origin)

    def check(
        self,
        headers: Mapping[str, str],
        what: str = "The control routes do",
        *,
        follows_link: bool = False,
    ) -> None:
        """Checks `Host` of a request, and which page sends it.

        Args:
            what: the subject and the verb of the message of a refusal.
            follows_link: whether a link on another page may lead here: what it shows is for the
                user of the browser, and that page sees nothing of it.

        Raises:
            RequestError: it comes from elsewhere.
        """
        host = headers.get("host", "")
        name = _host_name(f"//{host}")
        if name not in self._hosts and not _is_local(name):
            raise RequestError(
                f"{what} not answer to the host {host!r}. Use 127.0.0.1 or "
                f"localhost, or start the server with --allow-host {name or 'NAME'}.",
                status=403,
            )
        opens = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
        if not (follows_link and opens == ("navigate", "document")):
            self.check_page(headers, what)

    def check_page(self, headers: Mapping[str, str], what: str) -> None:
        """Checks where the page comes from that sends a request; programs send none of the headers
        that say it.

        Args:
            what: as of `check`.

        Raises:
            RequestError: it comes from elsewhere.
        """
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is None and site in ("none", "same-origin"):
            return
        if origin is not None and (
            origin in self._origins or self._is_same(origin, headers.get("host", ""))
        ):
            return
        advice = "A page without an origin of its own, such as a file, cannot be allowed."
        if origin is None:
            advice = (
                "It does not say from which. Open the address itself, or let the page send a "
                "request with an origin that is allowed (--allow-origin)."
            )
        elif origin != "null":
            advice = f"Start the server with --allow-origin {origin} to allow it."
        source = "other sites" if origin is None else repr(origin)
        raise RequestError(f"{what} not answer to pages from {source}. {advice}", status=403)

    def response_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of an answer by which a page that may use the routes can read it."""
        vary = {"vary": "origin"} if self._origins else {}
        origin = headers.get("origin", "")
        if origin not in self._origins:
            return vary
        return {"access-control-allow-origin": origin, **vary}

    def preflight(self, headers: Mapping[str, str]) -> dict[str, str] | None:
        """The headers of the answer to a preflight request of a page that may use the routes; None
        for any other request."""
        origin = headers.get("origin", "")
        if origin not in self._origins or "access-control-request-method" not in headers:
            return None
        return {**preflight_headers(headers, origin), "vary": "origin"}

    def _is_same(self, origin: str, host: str) -> bool:
        """Whether a page comes from this server, which may stand behind a proxy with a name of
        `--allow-host`, at the usual port: another port is another origin."""
        place = origin.partition("://")[2]
        return place == host or (place in self._allowed_hosts and not _is_local(place))


def _is_local(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _host_name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # brackets without an IPv6 address in them
        return ""
