"""A network between a writer and a server, as slow as it is asked to be."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.servers.ports import HOST

LARGEST = 1 << 16  # bytes that are passed on at once


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[int]:
    """Give a port of this machine whose every answer comes by so many seconds later."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def passed_on(reader, writer, later):
        with suppress(OSError):
            while data := await reader.read(LARGEST):
                loop.call_later(later, writer.write, data)
        loop.call_later(later, writer.close)

    async def connected(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(HOST, port)
        ways = ((reader, far_writer), (far_reader, writer))
        await asyncio.gather(*(passed_on(*way, seconds / 2) for way in ways))

    async def opened():
        return await asyncio.start_server(connected, HOST, 0)

    server = asyncio.run_coroutine_threadsafe(opened(), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _ended(server: asyncio.Server) -> None:
    server.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
