"""The undocumented parts of aiohttp that mockllm uses. One module uses them, the names are listed
here, and each function does what it promises with the installed aiohttp."""

import ast
import asyncio
import socket
import struct
import tomllib
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import metadata
from pathlib import Path

import aiohttp
import aiohttp.abc
import pytest
from aiohttp import web
from aiohttp.client_proto import ResponseHandler
from packaging.requirements import Requirement
from packaging.version import Version

import mockllm
from mockllm.serve.server.http.aiohttp_internals import (
    BodyError,
    ServiceConnection,
    WrittenResponse,
    close_after_last,
    connection_of,
    drain,
    give_what_arrived,
    has_arrived,
    leaves_at_end,
    low_level_server,
    observe_connections,
    take_no_more_requests,
)
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).resolve().parents[3]
SOURCES = Path(mockllm.__file__).parent
INTERNALS = SOURCES / "serve" / "server" / "http" / "aiohttp_internals.py"

PRIVATE = {
    "_buffer",
    "_eof",
    "_exception",
    "_factory",
    "_message_tail",
    "_messages",
    "_payload",
    "_protocol",
    "_tail",
    "_waiter",
}
"""The private attributes of aiohttp's objects that are used."""

OWN = {
    "_admitted",
    "_arrived",
    "_awaits_head",
    "_begin",
    "_end_unreadable_body",
    "_expect_rest",
    "_give_up",
    "_give_up_at_end",
    "_has_begun",
    "_last",
    "_parse",
    "_rules",
    "_stays",
    "_wait_for_head",
}
"""The private attributes of our classes; aiohttp has no such names."""

INHERITED = {"_kwargs", "_loop", "_messages"}
"""The private attributes of aiohttp's classes that ours read."""

HOOKS = {"request_factory", "pre_shutdown", "writer"}
"""The names without an underscore that are not documented either."""

OVERRIDDEN = {
    "__call__",
    "connection_lost",
    "connection_made",
    "data_received",
    "eof_received",
    "handle_error",
    "keep_alive",
    "prepare",
    "write_eof",
}
"""The methods of aiohttp's classes that ours replace."""

UNDOCUMENTED_MODULES = {"aiohttp.client_proto", "aiohttp.http"}
"""The modules that are imported, and whose names are not all in aiohttp's reference."""

DOCUMENTED_MODULES = {"aiohttp": aiohttp, "aiohttp.web": web, "aiohttp.abc": aiohttp.abc}


# The names


def trees(*, internals):
    """The syntax trees of the modules that may hold an aiohttp object, by path."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        server = SOURCES / "serve" / "server" in path.parents
        if (path == INTERNALS) == internals and (server or any(imported(tree))):
            yield path, tree


def imported(tree):
    """The imported modules of aiohttp, each with the names that are imported from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aiohttp":
            yield node.module, [name.name for name in node.names]
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "aiohttp":
                    yield name.name, []


def private(tree):
    """The private attributes that are read or written, by name or by a string. `os._exit`
    and the `_replace` of named tuples are documented in spite of their names."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Attribute):
            is_documented = ast.unparse(node) == "os._exit" or node.attr == "_replace"
            name = "" if is_documented else node.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "setattr", "delattr", "hasattr")
            and isinstance(node.args[1], ast.Constant)
        ):
            name = node.args[1].value
        if name.startswith("_") and not name.startswith("__"):
            on_self = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
            yield name, on_self


def derived(tree):
    """The classes with a base of aiohttp."""
    names = {name for _, names in imported(tree) for name in names} | {"aiohttp"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).split(".")[0] for base in node.bases}
            if bases & names:
                yield node


def hooks(tree):
    """The undocumented names that are used, as attributes or as arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in HOOKS:
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg in HOOKS:
            yield node.arg


@pytest.mark.slow
def test_only_one_module_uses_undocumented_names():
    """No other module touches a private attribute of an aiohttp object, derives from an aiohttp
    class, uses an undocumented hook or imports a name that is not in the public modules."""
    looked_at = 0
    for path, tree in trees(internals=False):
        looked_at += 1
        assert [name for name, on_self in private(tree) if not on_self] == [], path
        assert [node.name for node in derived(tree)] == [], path
        assert list(hooks(tree)) == [], path
        for module, names in imported(tree):
            public = DOCUMENTED_MODULES[module]
            submodules = {name.rpartition(".")[2] for name in DOCUMENTED_MODULES}
            for name in names:
                assert name in getattr(public, "__all__", ()) or name in submodules, (path, name)
    assert looked_at > 10


def test_the_undocumented_names_are_listed_here():
    """The module uses the names in this file's tables, and no other."""
    ((_, tree),) = trees(internals=True)
    used = list(private(tree))
    assert {name for name, on_self in used if not on_self} == PRIVATE
    assert {name for name, on_self in used if on_self} == OWN | INHERITED
    assert set(hooks(tree)) == HOOKS
    defined = {
        function.name
        for node in derived(tree)
        for function in node.body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert defined - {"__init__"} - OWN == OVERRIDDEN
    modules = {module for module, _ in imported(tree)}
    assert modules - DOCUMENTED_MODULES.keys() == UNDOCUMENTED_MODULES


def test_our_attributes_do_not_override_those_of_aiohttp():
    """The attributes that our classes add do not exist in the aiohttp classes."""
    assert not any(hasattr(web.StreamResponse(), name) for name in OWN)
    assert not any(hasattr(web.RequestHandler, name) for name in OWN)

    async def connection():
        return ResponseHandler(asyncio.get_running_loop())

    found = run(connection())
    added = {name for name in vars(ServiceConnection) if not name.startswith("__")} - OVERRIDDEN
    assert "malformed" in added
    assert not any(hasattr(found, name) for name in (*OWN, *added))


# The bounds of the dependency


def requirement():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = map(Requirement, project["dependencies"])
    return next(one for one in found if one.name == "aiohttp")


def pinned(file):
    """The version of aiohttp that a file of requirements names."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return Version(next(line for line in lines if line.startswith("aiohttp=="))[9:])


def test_the_bounds_are_the_tested_versions():
    """The lower bound is the version of the environment with the oldest aiohttp. The upper bound
    excludes minor releases newer than the one that continuous integration installs."""
    bounds = {bound.operator: Version(bound.version) for bound in requirement().specifier}
    assert bounds.keys() == {">=", "<"}
    assert bounds[">="] == pinned("tests/serve/server/aiohttp_env/requirements.txt")
    newest = pinned("constraints.txt")
    assert bounds["<"] == Version(f"{newest.major}.{newest.minor + 1}")


def test_the_installed_version_is_allowed():
    """The other tests run with a version that the dependency allows."""
    assert requirement().specifier.contains(metadata.version("aiohttp"))


# Serving


def run(coroutine):
    """The result of a coroutine; fails if it hangs."""

    async def bounded():
        async with asyncio.timeout(GIVE_UP):
            return await coroutine

    return asyncio.run(bounded())


@asynccontextmanager
async def serving(handler):
    """A low-level server; gives it and its port."""
    server = low_level_server(handler, patience=GIVE_UP)
    runner = web.ServerRunner(server, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield server, runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(port):
    """A client's side of a connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def reset(writer):
    """Ends a connection with a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


def test_a_client_that_leaves_cancels_its_handler():
    """A handler that waits is cancelled when its client is gone."""

    async def scenario():
        started, cancelled = asyncio.Event(), asyncio.Event()

        async def handler(request):
            leaves_at_end(request, True)
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        async with serving(handler) as (_, port):
            async with connected(port) as (_, writer):
                writer.write(GET)
                await started.wait()
            await cancelled.wait()

    run(scenario())


def test_a_client_that_ends_its_side_is_answered():
    """All its requests that arrived whole are, and then the connection ends; one that did not
    arrive whole ends it at once."""

    async def handler(request):
        assert type(request) is web.BaseRequest
        await request.read()
        await asyncio.sleep(0)
        request.transport.write(ANSWER)
        close_after_last(request)
        return WrittenResponse(keep_alive=True)

    async def answers(*parts):
        async with serving(handler) as (_, port), connected(port) as (reader, writer):
            writer.write(b"".join(parts))
            writer.write_eof()
            return await reader.read()

    async def scenario():
        assert await answers(GET) == ANSWER
        assert await answers(GET, GET, GET) == ANSWER * 3
        assert await answers(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf") == b""
        assert await answers(GET[:-2]) == b""

    run(scenario())


def test_a_written_response_adds_nothing():
    """Exactly the bytes that the handler writes are sent, for each request of a connection. The
    connection is kept or closed as the response requires."""
    stays, ends = WrittenResponse(keep_alive=True), WrittenResponse(keep_alive=False)
    responses = iter([stays, stays, ends])

    async def handler(request):
        request.transport.write(ANSWER)
        return next(responses)

    async def scenario():
        async with serving(handler) as (_, port), connected(port) as (reader, writer):
            for _ in range(2):
                writer.write(GET)
                assert await reader.readexactly(len(ANSWER)) == ANSWER
            writer.write(GET)
            return await reader.read()

    assert run(scenario()) == ANSWER


def test_no_new_requests_after_the_stop():
    """A request in progress is answered, and its connection is closed then. A request on another
    connection is not read, and that connection is closed with the server."""

    async def scenario():
        busy, go_on = asyncio.Event(), asyncio.Event()
        seen = []

        async def handler(request):
            seen.append(request.path)
            if request.path == "/busy":
                busy.set()
                await go_on.wait()
            return web.Response(text="hi")

        async with AsyncExitStack() as stack:
            async with serving(handler) as (server, port):
                idle, to_idle = await stack.enter_async_context(connected(port))
                other, to_other = await stack.enter_async_context(connected(port))
                to_idle.write(GET)
                await idle.readuntil(b"hi")
                to_other.write(GET.replace(b"/ ", b"/busy "))
                await busy.wait()
                await take_no_more_requests(server)
                to_idle.write(GET.replace(b"/ ", b"/late "))
                go_on.set()
                assert (await other.read()).endswith(b"hi")
            with suppress(ConnectionError):
                assert await idle.read() == b""
        return seen

    assert run(scenario()) == ["/", "/busy"]


def test_a_connection_that_is_accepted_while_the_server_stops():
    """Its client is told at once, and does not wait until all streams are over."""

    async def scenario():
        async def handler(request):
            return web.Response(text="hi")

        ours, theirs = socket.socketpair()
        async with serving(handler) as (server, _):
            loop = asyncio.get_running_loop()
            accepted = loop.create_task(loop.connect_accepted_socket(server, ours))
            while not server.connections:  # the task that waits for its requests has not run yet
                await asyncio.sleep(0)
            await take_no_more_requests(server)
            reader, writer = await asyncio.open_connection(sock=theirs)
            read = await reader.read()
            await accepted
            writer.close()
        return read

    assert run(scenario()) == b""


LARGE = bytes(24 * 1024 * 1024)
"""More bytes than the buffers of a connection hold."""


async def draining(client):
    """Writes more than a client reads and calls `drain`; gives the result of `client`."""
    waiting = asyncio.get_running_loop().create_future()

    async def handler(request):
        request.transport.write(LARGE)
        task = asyncio.create_task(drain(request))
        await asyncio.wait({task}, timeout=0)
        waiting.set_result((task, task.done()))
        await asyncio.wait({task})
        return WrittenResponse(keep_alive=False)

    async with serving(handler) as (_, port), connected(port) as (reader, writer):
        writer.write(GET)
        task, done = await waiting
        assert not done
        await client(reader, writer)
        return await asyncio.gather(task, return_exceptions=True)


def test_draining_waits_for_the_client():
    """`drain` waits while the client does not read, and returns when it has."""

    async def read(reader, _):
        await reader.readexactly(len(LARGE))

    assert run(draining(read)) == [None]


def test_draining_ends_with_the_client():
    """`drain` does not wait for a client that is gone."""

    async def leave(_, writer):
        reset(writer)

    (error,) = run(draining(leave))
    assert isinstance(error, ConnectionError)


# Requests to upstreams


@asynccontextmanager
async def response_of(service, *, observed=True):
    """The response of an upstream, which is a coroutine function of a writer."""

    async def serve(reader, writer):
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            await service(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    connector = aiohttp.TCPConnector(limit=0)
    if observed:
        observe_connections(connector)
    async with server, aiohttp.ClientSession(connector=connector) as session:
        port = server.sockets[0].getsockname()[1]
        async with session.get(f"http://127.0.0.1:{port}/") as response:
            yield response


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


async def ended(response):
    """Waits until the body of a response has arrived or has broken off; reads nothing of it."""
    with suppress(aiohttp.ClientError):
        await response.content.wait_eof()


def test_the_trailers_of_a_body_are_kept():
    """aiohttp drops trailers; the connection's tail has them, even after the response has released
    it."""
    end = b"0\r\nx-end: yes\r\n\r\n"

    async def service(writer):
        writer.write(CHUNKED + b"2\r\nhi\r\n" + end)

    async def scenario():
        async with response_of(service) as response:
            assert await response.read() == b"hi"
            assert response.connection is None
            return connection_of(response).tail

    assert run(scenario()).endswith(b"hi\r\n" + end)


def test_the_tail_is_bounded():
    """Of a long body the last 16 KiB are kept, however it was split."""
    body = b"".join(b"%06d\n" % n for n in range(20_000))

    async def service(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 5_000):
            writer.write(body[at : at + 5_000])
            await writer.drain()

    async def scenario():
        async with response_of(service) as response:
            assert await response.read() == body
            return connection_of(response).tail

    assert run(scenario()) == body[-16 * 1024 :]


MALFORMED = {
    "no size": b"zz\r\nhello\r\n",
    "a negative size": b"-5\r\nhello\r\n",
    "no line end": b"5\r\nhelloXX0\r\n\r\n",
    "a trailer without a colon": b"0\r\nno trailer\r\n\r\n",
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("rest", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_ends(rest, together):
    """A body that cannot be read on raises at once, also where it came together with its head, and
    the connection has the error. What arrived before can be read. It was waited for without an
    end."""

    async def scenario():
        over = asyncio.Event()

        async def service(writer):
            begin = CHUNKED + b"3\r\none\r\n"
            writer.write(begin + rest if together else begin)
            await writer.drain()
            if not together:
                await asyncio.sleep(0)
                writer.write(rest)
            await over.wait()  # it does not close

        async with response_of(service) as response:
            got = await until_it_fails(response.content)
            give_what_arrived(response.content)
            assert connection_of(response).malformed is not None
            over.set()
            return got + await response.content.read()

    assert run(scenario()).startswith(b"one")


async def until_it_fails(content):
    """What can be read of a body before that raises."""
    got = b""
    try:
        while True:
            got += (await content.readchunk())[0]
    except BodyError:
        return got


def test_heads_that_are_cut_and_follow_each_other():
    """A head in many segments, an interim answer before it and a body in the same segment are read
    as they are, and no error is noted."""
    answer = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + ANSWER

    async def read(parts):
        async def service(writer):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)

        async with response_of(service) as response:
            body = await response.read()
            assert connection_of(response).malformed is None
            return response.status, body

    for size in (1, 7, len(answer)):
        parts = [answer[at : at + size] for at in range(0, len(answer), size)]
        assert run(read(parts)) == (200, b"hi")


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_how_a_connection_was_lost(how):
    """A reset is distinguished from a close."""

    async def scenario():
        received = asyncio.Event()

        async def service(writer):
            writer.write(CHUNKED + b"2\r\nhi\r\n")
            await received.wait()
            if how == "reset":
                reset(writer)

        async with response_of(service) as response:
            received.set()
            await ended(response)
            return connection_of(response).lost

    assert isinstance(run(scenario()), ConnectionResetError) == (how == "reset")


def test_a_connection_that_is_not_observed():
    """A response from another connector has no observed connection."""

    async def service(writer):
        writer.write(ANSWER)

    async def scenario():
        async with response_of(service, observed=False) as response:
            return connection_of(response)

    assert run(scenario()) is None


def test_the_arrived_bytes_of_a_broken_body_can_be_read():
    """Reading a body that broke off raises at first. After `give_what_arrived` the reader gives all
    that had arrived, then an end."""

    async def service(writer):
        writer.write(CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n")

    async def scenario():
        async with response_of(service) as response:
            await ended(response)
            with pytest.raises(aiohttp.ClientError):
                await response.content.readchunk()
            give_what_arrived(response.content)
            parts = []
            while (part := await response.content.readchunk()) != (b"", False):
                parts.append(part[0])
            return b"".join(parts)

    assert run(scenario()) == b"onetwo"


def test_whether_more_has_arrived():
    """There is more as long as a chunk waits in the reader; its end alone is none."""

    async def service(writer):
        writer.write(CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")

    async def scenario():
        async with response_of(service) as response:
            await ended(response)
            seen = []
            while (part := await response.content.readchunk()) != (b"", False):
                seen.append((part[0], has_arrived(response.content)))
            return [one for one in seen if one[0]]

    assert run(scenario()) == [(b"one", True), (b"two", False)]
