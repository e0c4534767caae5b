"""A network between a writer and a server, as slow as it is asked to be."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.servers.ports import HOST

LARGEST = 1 << 16  # bytes that are passed on at once


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[int]:
    """Give a port of this machine at which a server's answers come so many seconds later."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(OSError):
            while data := await reader.read(LARGEST):
                loop.call_later(seconds / 2, writer.write, data)
        loop.call_later(seconds / 2, writer.close)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(HOST, port)
        await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))

    async def opened() -> asyncio.Server:
        return await asyncio.start_server(connected, HOST, 0)

    async def ended() -> None:
        server.close()
        for writer in writers:
            writer.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        closed = (writer.wait_closed() for writer in writers)
        await asyncio.gather(*others, *closed, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(opened(), loop).result()
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(ended(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
