"""The sound of a text, of the right length in a format. Nothing is synthesised: a tone, or silence.

https://platform.openai.com/docs/guides/realtime-conversations#audio-formats
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mockllm.core.record import record
from mockllm.core.seeded import derive_int

_MILLISECONDS = 40
"""The length of a character, as in quick speech."""

CHUNK = 100
"""The milliseconds of an event: it has that much sound, or the rest."""


@record
class Format:
    """A format of sound with one channel.

    Args:
        rate: samples in a second.
        high, low, silent: the bytes of a sample of a tone's two heights, and of silence.
    """

    rate: int
    high: bytes
    low: bytes
    silent: bytes

    def size(self, milliseconds: int) -> int:
        """The bytes of so much sound."""
        return len(self.silent) * (self.rate * milliseconds // 1000)

    def length(self, size: int) -> int:
        """The milliseconds of so many bytes."""
        return size * 1000 // (len(self.silent) * self.rate)


_PCM = Format(
    24_000, (4000).to_bytes(2, "little"), (-4000).to_bytes(2, "little", signed=True), b"\0\0"
)
FORMATS: Mapping[str, Format] = {
    "audio/pcm": _PCM,
    # G.711: 4,000 and -4,000 in both laws.
    "audio/pcmu": Format(8_000, b"\xaf", b"\x2f", b"\xff"),
    "audio/pcma": Format(8_000, b"\x9a", b"\x1a", b"\xd5"),
}
"""By the `type` of a format."""


def format_of(kind: str) -> Format:
    """A format by its type; an unknown one counts as PCM."""
    return FORMATS.get(kind, _PCM)


def spoken(text: str, kind: str, speech: str, seed: str) -> Iterator[bytes]:
    """The sound of a fragment of text, in pieces; none with the speech `none`.

    Args:
        kind: the type of the format.
        seed: the pitch of a tone is derived from it, so that fragments can be told apart.
    """
    if speech == "none":
        return
    format = format_of(kind)
    size = format.size(_MILLISECONDS * len(text))
    wave = format.silent
    if speech == "tone":
        half = format.rate // (2 * (200 + 20 * derive_int(seed, "pitch", below=20)))
        wave = format.high * half + format.low * half
    yield from pieces((wave * (size // len(wave) + 1))[:size], format)


def pieces(sound: bytes, format: Format) -> Iterator[bytes]:
    """Sound in pieces of `CHUNK` milliseconds."""
    step = format.size(CHUNK)
    return (sound[at : at + step] for at in range(0, len(sound), step))


_RIFF_DATA = b"data"


def samples(sound: bytes) -> bytes:
    """The samples of a WAV file; other bytes are samples already."""
    if not sound.startswith(b"RIFF"):
        return sound
    at = sound.find(_RIFF_DATA)
    return sound[at + 8 :] if at > 0 else sound
