"""Messages as a WebSocket server sends them (RFC 6455, section 5.2): each is one frame, without a
mask. What clients send is read by aiohttp."""

from __future__ import annotations

_FIN_TEXT = 0x81


def encode_text(message: bytes) -> bytes:
    """A text message in its frame; the length has 7, 7 + 16 or 7 + 64 bits."""
    size = len(message)
    if size < 126:
        return bytes((_FIN_TEXT, size)) + message
    if size < 1 << 16:
        return bytes((_FIN_TEXT, 126)) + size.to_bytes(2) + message
    return bytes((_FIN_TEXT, 127)) + size.to_bytes(8) + message
