"""Messages as a WebSocket server sends them (RFC 6455, section 5.2): each is one frame, without a
mask. What clients send is read by aiohttp."""

from __future__ import annotations

_FIN_TEXT = 0x81
_FIN_BINARY = 0x82


def encode_message(message: bytes, *, binary: bool = False) -> bytes:
    """A message in its frame; the length has 7, 7 + 16 or 7 + 64 bits."""
    opcode, size = _FIN_BINARY if binary else _FIN_TEXT, len(message)
    if size < 126:
        return bytes((opcode, size)) + message
    if size < 1 << 16:
        return bytes((opcode, 126)) + size.to_bytes(2) + message
    return bytes((opcode, 127)) + size.to_bytes(8) + message
