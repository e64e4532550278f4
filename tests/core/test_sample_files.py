"""Small files are valid: readers of the standard library and the checksums of formats agree."""

from __future__ import annotations

import io
import struct
import wave
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.sample_files import (
    _crc,
    png,
    silent_aac,
    silent_flac,
    silent_mp3,
    silent_opus,
    tone,
    wav,
)


def chunks(file: bytes) -> dict[bytes, bytes]:
    """The chunks of a PNG file, whose checksums are right."""
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    found, rest = {}, file[8:]
    while rest:
        size, kind = struct.unpack(">I4s", rest[:8])
        data = rest[8 : 8 + size]
        assert struct.unpack(">I", rest[8 + size : 12 + size]) == (zlib.crc32(kind + data),)
        found[kind], rest = data, rest[12 + size :]
    return found


@given(st.integers(1, 4096), st.integers(1, 600), st.text())
def test_an_image_has_its_size_and_one_colour(width: int, height: int, seed: str) -> None:
    """Its pixels are as many as its size says, and all of them the colour of the seed."""
    found = chunks(png(width, height, seed))
    assert list(found) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", found[b"IHDR"]) == (width, height, 1, 3, 0, 0, 0)
    assert len(found[b"PLTE"]) == 3
    assert zlib.decompress(found[b"IDAT"]) == bytes(height * (1 + -(-width // 8)))


def test_an_image_follows_from_its_seed() -> None:
    """Equal seeds have equal bytes, others another colour."""
    assert png(8, 8, "a") == png(8, 8, "a") != png(8, 8, "b")


@given(st.integers(220, 660), st.integers(1, 5000))
def test_a_tone_is_a_wav_file_of_its_length(frequency: int, milliseconds: int) -> None:
    """The file has 16 bits and one channel, and the samples that were given."""
    samples = tone(frequency, milliseconds)
    with wave.open(io.BytesIO(wav(samples))) as file:
        assert file.getparams()[:4] == (1, 2, 24_000, 24 * milliseconds)
        assert file.readframes(file.getnframes()) == samples


@pytest.mark.parametrize(
    ("polynomial", "size", "checksum"),
    [(0x07, 1, "f4"), (0x8005, 2, "fee8"), (0x04C11DB7, 4, "89a1897f")],
    ids=["CRC-8/SMBUS", "CRC-16/UMTS", "CRC-32/CKSUM, not inverted"],
)
def test_checksums_are_those_of_the_catalogue(polynomial: int, size: int, checksum: str) -> None:
    """The checksum of `123456789`, by which algorithms are compared."""
    assert _crc(b"123456789", polynomial, size).hex() == checksum


def test_frames_of_mp3_and_aac_follow_each_other() -> None:
    """A file is whole frames, as many as the time needs. FFmpeg decoded these to silence."""
    mp3, aac = silent_mp3(1000), silent_aac(1000)
    assert mp3 == (bytes.fromhex("fff314c0") + bytes(20)) * 42
    assert aac == bytes.fromhex("fff15840017ffc00000007") * 24


def test_flac_counts_its_frames() -> None:
    """The file says how many samples it has; the number of each frame is in its header. FFmpeg
    decoded it to silence."""
    file = silent_flac(1000)
    assert file[:4] == b"fLaC"
    about = int.from_bytes(file[18:26], "big")
    assert (about >> 44, about & (1 << 36) - 1) == (24_000, 6 * 4096)
    frames = [file[at : at + 11] for at in range(42, len(file), 11)]
    assert [frame[4] for frame in frames] == list(range(6))
    assert all(_crc(frame, 0x8005, 2) == bytes(2) for frame in frames)


def test_ogg_has_three_pages() -> None:
    """Head, tags and packets of 20 ms each. FFmpeg decoded them to silence."""
    pages = silent_opus(5000).split(b"OggS")[1:]
    assert [(page[1], page[14]) for page in pages] == [(2, 0), (0, 1), (4, 2)]
    assert [page[22] for page in pages] == [1, 1, 250]
    assert pages[2].endswith(b"\xf8\xff\xfe" * 250)
