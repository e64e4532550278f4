"""An API over a WebSocket: which requests a client's messages stand for, and which messages the
frames of their answers become. Only data and interfaces may live here.

A connection has one `SocketConversation`, which an API's package makes. It is pure: no clock, no
network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mockllm.core.http import Target
from mockllm.core.record import record
from mockllm.wire.protocols.records import Fields, Json


@record
class Opening:
    """The request that opened a connection.

    Args:
        headers: names in lower case.
    """

    target: Target
    headers: Mapping[str, str]


@record
class Ask:
    """A message that asks for an answer.

    Args:
        message: as the client sent it, or as it follows from several.
        lane: answers of one lane come one after another, those of several at the same time.
        previous: the id of the answer that it continues; "" for none.
    """

    message: Fields
    lane: str = ""
    previous: str = ""


@record
class Interrupt:
    """Ends the answer that is on its way in a lane: no further message of it is sent, and
    `SocketConversation.finish` says what follows."""

    lane: str = ""


@record
class Listen:
    """Asks what the user says next in the sound that the client sends; the answer comes to
    `SocketConversation.hear`.

    Args:
        body: of the request that follows, from the words.
    """

    body: Callable[[str], Json]


@record
class Heard:
    """What the user says, as a scenario has it: nothing recognises speech.

    Args:
        after: how much sound the client sends until then, in seconds.
        barge_in: whether the user says it while the answer before is on its way.
    """

    say: str
    after: float
    barge_in: bool = False


@record
class Close:
    """Ends the connection.

    Args:
        reason: at most 123 bytes of it are sent (RFC 6455, section 5.5).
    """

    code: int
    reason: str = ""


@record
class Breach:
    """Notes in the journal what is wrong with a message that the service takes.

    Args:
        mistake: as in `RequestError`.
        problem: what the client did.
    """

    mistake: str
    problem: str


Step = Ask | Interrupt | Listen | Breach | Close | str
"""An answer that has to be found, one that ends, a question, a mistake of the client, the end of
the connection, or a message that is sent at once."""


@record
class SocketExchange:
    """A request on a recorded connection and its answer, as they would be over HTTP.

    Args:
        asked: the number of the message that asks for the answer.
        body: of the request.
        answers: the numbers of the messages of the answer, each with the data of its frame; of an
            error one, with the body.
        status, headers: of the answer; of one that is no error 200, and none.
        is_over: whether it came to its end.
    """

    asked: int
    body: Json
    answers: tuple[tuple[int, str], ...]
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    is_over: bool = True


class SocketConversation(Protocol):
    """One connection of a client.

    Attributes:
        binary: whether the service sends its messages as binary ones.
        subprotocols: those that the service chooses where a client offers them: browsers, which
            cannot send headers, put their keys beside.
        lifetime: after how many seconds the service ends it.
        notice: how many seconds before it says so; 0: it does not.
    """

    binary: bool
    subprotocols: tuple[str, ...]
    lifetime: float
    notice: float

    def open(self, opening: Opening) -> list[Step]:
        """What follows from the opening of the connection.

        Raises:
            RequestError: the service refuses the session; `finish` ends the connection.
        """

    def warn(self) -> list[Step]:
        """What the service sends before the end of the lifetime, where it gives notice."""

    def expire(self) -> list[Step]:
        """What the service sends at the end of the lifetime; it ends with a `Close`."""

    def receive(self, message: Fields) -> list[Step]:
        """What follows from a client's message.

        Raises:
            RequestError: the API does not know such a message, or refuses it.
        """

    def request(self, ask: Ask, is_stored: Callable[[str], bool]) -> Json | tuple[str, ...]:
        """The body of the same request over HTTP, now that it is its turn; or the messages of the
        answer where no scenario has it.

        Args:
            is_stored: whether the service has kept the answer with an id.

        Raises:
            RequestError: the answer that it continues is not known.
        """

    def messages(
        self, ask: Ask, status: int, headers: Mapping[str, str], payloads: list[str]
    ) -> list[str]:
        """The messages of an answer, one for each payload; the payloads themselves where they are
        those.

        Args:
            payloads: the data of each frame of a stream, or one body: of an error.
        """

    def finish(self, ask: Ask, sent: int) -> list[Step]:
        """What follows from the end of an answer.

        Args:
            sent: how many of its messages were sent: all, but for an answer that was interrupted
                or has a fault.
        """

    def hear(self, heard: Heard | None) -> list[Step]:
        """What follows from the answer to a `Listen`; None: no scenario says that the user speaks.
        APIs that take no sound do not ask."""
