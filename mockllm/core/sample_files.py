"""Small files that any program can open: an image of one colour, a tone, and silence.

They are written bit by bit and not compressed with zlib, whose versions give different bytes.
"""

from __future__ import annotations

import struct
from binascii import crc32

from mockllm.core.seeded import derive_int

RATE = 24_000
"""Samples in a second of audio, which has one channel of 16 bits."""

_LOUDNESS = 4_000
"""The height of a tone's wave; 32,767 is the most."""

# DEFLATE with the fixed codes of RFC 1951, section 3.2.6, which are sent from their highest bit on.
_LAST_BLOCK, _END = "110", "0000000"
_ZERO = "00110000"
_LONGEST = 258
_REPEATED = "11000101" + "00000"  # the byte before this, `_LONGEST` times


def png(width: int, height: int, seed: str) -> bytes:
    """A PNG image of one colour, which is derived from the seed; of a few kilobytes at most.

    Its pixels are the numbers, of one bit each, of the only colour of a palette: zeros.
    """
    rows = height * (1 + -(-width // 8))  # each begins with the number of its filter, 0 as well
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    checksum = struct.pack(">HH", rows % 65521, 1)  # Adler-32 of zeros
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", derive_int(seed, "colour", below=1 << 24).to_bytes(3, "big")),
            _chunk(b"IDAT", b"\x78\x01" + _deflated_zeros(rows) + checksum),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))


def _deflated_zeros(count: int) -> bytes:
    """At least one zero byte, by RFC 1951."""
    repeats, rest = divmod(count - 1, _LONGEST)
    bits = _LAST_BLOCK + _ZERO + _REPEATED * repeats + _ZERO * rest + _END
    return int(bits[::-1], 2).to_bytes(-(-len(bits) // 8), "little")


def tone(frequency: int, milliseconds: int) -> bytes:
    """The samples of a tone, 16 bits each, the lower byte first.

    Args:
        frequency: in hertz.
    """
    half = RATE // (2 * frequency)
    wave = struct.pack("<h", _LOUDNESS) * half + struct.pack("<h", -_LOUDNESS) * half
    size = 2 * (RATE * milliseconds // 1000)
    return (wave * (size // len(wave) + 1))[:size]


def wav(samples: bytes) -> bytes:
    """A WAV file of samples as `tone` gives them."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    data = b"WAVE" + form + struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI", b"RIFF", len(data)) + data


def silent_mp3(milliseconds: int) -> bytes:
    """Silence as frames of MPEG-2 layer III (ISO/IEC 13818-3) with 8 kbit/s. Zeros after the header
    say that a frame has no data."""
    return bytes.fromhex("fff314c0").ljust(24, b"\0") * _count(milliseconds, 576)


def silent_aac(milliseconds: int) -> bytes:
    """Silence as ADTS frames of AAC-LC (ISO/IEC 13818-7). The four bytes after the header are one
    channel without any band, and the end of the frame."""
    return bytes.fromhex("fff15840017ffc00000007") * _count(milliseconds, 1024)


def _count(milliseconds: int, samples: int) -> int:
    """The number of frames of so many samples that are at least as long."""
    return max(1, -(-milliseconds * RATE // (1000 * samples)))


def silent_flac(milliseconds: int) -> bytes:
    """Silence as a FLAC file (RFC 9639), of at most 20 seconds. Each frame says that its samples
    are all 0."""
    count = _count(milliseconds, 4096)
    about = RATE << 44 | (16 - 1) << 36 | count * 4096  # one channel has the number 0
    info = struct.pack(">HH6xQ16x", 4096, 4096, about)
    frames = []
    for number in range(count):
        head = bytes([0xFF, 0xF8, 0xC7, 0x08, number])
        head += _crc(head, 0x07, 1) + bytes(3)
        frames.append(head + _crc(head, 0x8005, 2))
    return b"fLaC\x80" + len(info).to_bytes(3, "big") + info + b"".join(frames)


def silent_opus(milliseconds: int) -> bytes:
    """Silence as an Ogg file of Opus (RFC 7845), of at most 5 seconds."""
    packets = [b"\xf8\xff\xfe"] * max(1, -(-milliseconds // 20))
    skipped = 312  # samples of 1/48,000 s that a decoder drops at the beginning
    head = struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, skipped, RATE, 0, 0)
    tags = struct.pack("<8sI7sI", b"OpusTags", 7, b"mockllm", 0)
    return (
        _ogg_page(0, 2, 0, [head])
        + _ogg_page(1, 0, 0, [tags])
        + _ogg_page(2, 4, len(packets) * 960, packets)
    )


def _ogg_page(number: int, flags: int, position: int, packets: list[bytes]) -> bytes:
    """A page of at most 255 packets, each shorter than 255 bytes (RFC 3533)."""
    head = struct.pack("<4sBBQII", b"OggS", 0, flags, position, 0, number)
    body = bytes([len(packets), *map(len, packets)]) + b"".join(packets)
    return head + _crc(head + bytes(4) + body, 0x04C11DB7, 4)[::-1] + body


def _crc(data: bytes, polynomial: int, size: int) -> bytes:
    """A checksum of `size` bytes that begins with 0 and takes the highest bit first."""
    value, top = 0, 1 << (8 * size)
    for byte in data:
        value ^= byte << (8 * size - 8)
        for _ in range(8):
            value = value << 1 ^ (polynomial | top if value << 1 & top else 0)
    return value.to_bytes(size, "big")
