"""Forwards connections from a TCP port to a Unix socket: forward.py PORT SOCKET. kubectl has no proxies on Unix sockets."""

import asyncio
import contextlib
import sys


async def copy(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


async def forward(reader, writer):
    to_reader, to_writer = await asyncio.open_unix_connection(sys.argv[2])
    await asyncio.gather(copy(reader, to_writer), copy(to_reader, writer))
    for one in (writer, to_writer):
        one.close()


async def main():
    async with await asyncio.start_server(forward, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
