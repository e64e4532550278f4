"""The wire protocols; `PROTOCOLS` is the table of them all.

A server listens with the addresses of all of them, and plays few. So the code of a protocol is
imported when it is first looked up, and only its address with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

from mockllm.wire.protocols import (
    ag_ui,
    anthropic_messages,
    bedrock_converse,
    cohere,
    gemini,
    gemini_interactions,
    gemini_live,
    ollama,
    openai_chat,
    openai_completions,
    openai_realtime,
    openai_responses,
)
from mockllm.wire.protocols.base import Address, WireProtocol

__all__ = ["PROTOCOLS", "Protocols"]


class Protocols(MutableMapping[str, WireProtocol]):
    """Protocols by their names, in the order of lists for users.

    Args:
        addresses: of the protocols that are imported from their packages at the first use.

    Attributes:
        addresses: those of all protocols, by their names; reading them imports nothing.
    """

    def __init__(self, *addresses: Address) -> None:
        self.addresses = {address.name: address for address in addresses}
        self._imported: dict[str, WireProtocol] = {}

    def __getitem__(self, name: str) -> WireProtocol:
        protocol = self._imported.get(name)
        if protocol is None:
            module = import_module(f"{self.addresses[name].package}.protocol")
            protocol = self._imported[name] = module.PROTOCOL
        return protocol

    def __setitem__(self, name: str, protocol: WireProtocol) -> None:
        self.addresses[name] = protocol.address
        self._imported[name] = protocol

    def __delitem__(self, name: str) -> None:
        del self.addresses[name]
        self._imported.pop(name, None)

    @property
    def over_http(self) -> tuple[str, ...]:
        """The names of those that answer over HTTP; the others have only WebSockets."""
        return tuple(name for name, one in self.addresses.items() if not one.is_socket)

    def __contains__(self, name: object) -> bool:
        return name in self.addresses

    def __iter__(self) -> Iterator[str]:
        return iter(self.addresses)

    def __len__(self) -> int:
        return len(self.addresses)


PROTOCOLS = Protocols(
    openai_chat.ADDRESS,
    openai_responses.ADDRESS,
    anthropic_messages.ADDRESS,
    gemini.ADDRESS,
    gemini_interactions.ADDRESS,
    ag_ui.ADDRESS,
    ollama.ADDRESS,
    openai_completions.ADDRESS,
    cohere.ADDRESS,
    bedrock_converse.ADDRESS,
    openai_realtime.ADDRESS,
    gemini_live.ADDRESS,
)
"""Every protocol by its name."""
