"""Further paths of an API (`--path API=TEMPLATE`), checked against all other paths.

`{name}` in a template is one segment of the path. An API may have parameters whose values its
service makes (`Address.creates`), such as the ids of a thread and a run. Where a template ends
in them, a POST to the path before them answers with new ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mockllm.core.record import record
from mockllm.core.text import did_you_mean
from mockllm.errors import UsageError
from mockllm.protocols.base import Address, Route

_NAMED = re.compile(r"\{([A-Za-z_]\w*)\}(:[A-Za-z]+)?")
_LITERAL = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%-]+")
_OWN = re.compile(r"/_mockllm(/|$)|/s/")
_ID = re.compile(r"_?id$", re.IGNORECASE)


@record
class _Placed:
    """A route, with the words for messages about it."""

    route: Route
    address: Address
    source: str


def path_routes(
    addresses: Mapping[str, Address], paths: Iterable[tuple[str, str]]
) -> dict[str, tuple[Route, ...]]:
    """The routes of templates, by the name of their API.

    Raises:
        UsageError: a template is malformed, or a request could be for two routes.
    """
    known = [
        _Placed(route, address, f"{route.path} of {address.name}")
        for address in addresses.values()
        for route in address.routes
        if route.method == "POST"
    ]
    routes: dict[str, tuple[Route, ...]] = {}
    for api, template in paths:
        if api not in addresses:
            hint = did_you_mean(api, addresses, f"there are: {', '.join(addresses)}")
            raise UsageError(f"--path {api}={template}: there is no API {api!r}; {hint}")
        address = addresses[api]
        _check(template)
        own = _routes(address, template)
        for route in own:
            _check_clash(template, route, address, known)
            known.append(_Placed(route, address, f"{route.path} of --path {api}={template}"))
        routes[api] = (*routes.get(api, ()), *own)
    return routes


def _check(template: str) -> None:
    """Checks the form of a template."""
    path = f"the path {template!r}"
    if not template.startswith("/") or template == "/":
        raise UsageError(f"{path} must begin with '/', such as /api/v1/agents/{{agent}}")
    if _OWN.match(template):
        raise UsageError(f"{path} is one of mockllm itself; choose another beginning")
    names = []
    for segment in template.split("/")[1:]:
        named = _NAMED.fullmatch(segment)
        if named is not None:
            names.append(named[1])
        elif not _LITERAL.fullmatch(segment):
            what = f"has the segment {segment!r}" if segment else "has an empty segment"
            raise UsageError(f"{path} {what}; write text, or a parameter as {{name}}")
    if len(set(names)) < len(names):
        raise UsageError(f"{path} has two parameters of one name; give each its own")


def _routes(address: Address, template: str) -> tuple[Route, ...]:
    routes = [Route("POST", template, "generate")]
    before, _, last = template.rpartition("/")
    while before and _is_created(address, last):
        routes.append(Route("POST", before, "create"))
        before, _, last = before.rpartition("/")
    return tuple(routes)


def _is_created(address: Address, segment: str) -> bool:
    named = _NAMED.fullmatch(segment)
    return named is not None and _ID.sub("", named[1]).lower() in address.creates


def _check_clash(template: str, route: Route, address: Address, known: Iterable[_Placed]) -> None:
    for other in known:
        if _overlap(route.path, other.route.path):
            what = "" if route.operation == "generate" else f" (POST {route.path} makes ids)"
            raise UsageError(
                f"--path {address.name}={template}{what} clashes with {other.source}: one request "
                "could be for both. Put a segment before it that the other does not have"
            )


def _overlap(left: str, right: str) -> bool:
    """Whether one path fits both."""
    lefts, rights = left.split("/"), right.split("/")
    return len(lefts) == len(rights) and all(map(_segments_overlap, lefts, rights))


def _segments_overlap(left: str, right: str) -> bool:
    one, other = _NAMED.fullmatch(left), _NAMED.fullmatch(right)
    if one is None and other is None:
        return left == right
    if one is None:
        return _segments_overlap(right, left)
    end = one[2] or ""
    rest = right if other is None else other[2] or ""
    return rest.endswith(end) or (other is not None and end.endswith(rest))
