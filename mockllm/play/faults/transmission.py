"""The bytes on their way to a client, before and after a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from mockllm.core.http import Ending, TimedBytes
from mockllm.core.record import record
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.protocols.base import Reply, WireProtocol


@record
class SocketFault:
    """What breaks on a WebSocket besides the messages themselves.

    Args:
        code: of the close frame that ends the connection; 0 for none.
        reason: of that frame.
        expires: whether the service ends the connection as one that has reached its age.
        answers_pings: whether pings are answered from the fault on.
        fragment: the bytes of a frame, where messages come in several.
        fragmented, opcode: the numbers of the messages, from 1, that come in several frames, and
            that have the wrong opcode; 0 for all of them, None for none.
    """

    code: int = 0
    reason: str = ""
    expires: bool = False
    answers_pings: bool = True
    fragment: int = 0
    fragmented: int | None = None
    opcode: int | None = None


@record
class Transmission:
    """An answer on its way.

    Args:
        headers: names in lower case, without those of the framing.
        parts: of the body, none of them empty.
        streamed: whether the body is sent in HTTP chunks, without its length.
        ending: how it ends.
        length: the `content-length` where it is not the size of what is sent.
        head_at: when status and headers are sent, in microseconds after the request.
        head_alone: whether they are sent then also where the body is not streamed and comes later.
        has_head: whether anything is sent at all.
        end_at: when the ending comes, if it is later than the last part; in microseconds.
        retry_at: the time that `retry-after` names as an HTTP date, in microseconds after the
            answer; None without one.
        idle_closed: whether the connection is closed when the next request comes on it.
        struck: the bytes of the body that are sent before the fault strikes; None: it has not.
        missed: why a fault does not strike; "" where each does.
        faults: as they are written, for the journal.
        socket: what breaks besides on a WebSocket.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    parts: tuple[TimedBytes, ...]
    streamed: bool
    ending: Ending = "complete"
    length: int | None = None
    head_at: int = 0
    head_alone: bool = False
    has_head: bool = True
    end_at: int = 0
    retry_at: int | None = None
    idle_closed: bool = False
    struck: int | None = None
    missed: str = ""
    faults: str = ""
    socket: SocketFault = SocketFault()

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(part.data for part in self.parts)

    @property
    def size(self) -> int:
        """Of the body, in bytes."""
        return sum(len(part.data) for part in self.parts)


@record
class Circumstances:
    """The circumstances that a fault depends on besides the answer.

    Args:
        reply: for the service's errors.
        path: of the request, with its query.
        call_names: the names of the calls in the answer by their ids: some services send no ids.
        redirected: whether the request follows a redirect of this fault.
        on_socket: whether the answer goes over a WebSocket, as messages.
    """

    protocol: WireProtocol
    reply: Reply
    path: str = ""
    redirected: bool = False
    call_names: Mapping[str, str] = field(default_factory=dict)
    on_socket: bool = False

    @property
    def carrier(self) -> Carrier:
        """The carrier of the answer's frames."""
        return self.protocol.carrier(self.reply.options)


def split_at(
    parts: Sequence[TimedBytes], at: int
) -> tuple[tuple[TimedBytes, ...], tuple[TimedBytes, ...]]:
    """The parts before a byte of the body, and those from it on."""
    before: list[TimedBytes] = []
    for index, part in enumerate(parts):
        if at >= len(part.data):
            before.append(part)
            at -= len(part.data)
            continue
        rest = TimedBytes(part.at, part.data[at:])
        if at:
            before.append(TimedBytes(part.at, part.data[:at]))
        return tuple(before), (rest, *parts[index + 1 :])
    return tuple(before), ()
