"""A reply onto the wire: frames as they are, the waits between them, and the ways in which a connection ends early.

The only module that touches a socket, to reset it. Times are multiplied by `pace`, so that 0 waits for nothing.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterator

from aiohttp import web

from inspector.provider.frames import JSON
from inspector.provider.place import Sending
from inspector.provider.reply import Reply

ARRIVAL = 0.02
"""Seconds before a connection is reset: what was sent before arrives, since a reset overtakes it."""
_LINGER = struct.pack("ii", 1, 0)


async def send(http: web.Request, reply: Reply, pace: float = 1.0) -> web.StreamResponse:
    """Sends a reply; where the reply says so, the connection is broken instead of ended."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    if reply.headers["content-type"] == JSON:
        response.content_length = sum(map(len, reply.frames))
    await response.prepare(http)
    if reply.sending == _PLAINLY:
        for frame in reply.frames:
            await response.write(frame)
    elif await _misbehaving(http, response, reply, pace):
        return response
    await response.write_eof()
    return response


_PLAINLY = Sending()


async def _misbehaving(http: web.Request, response: web.StreamResponse, reply: Reply, pace: float) -> bool:
    """Sends the frames as the faults want it; True where the connection is gone."""
    how, last = reply.sending, len(reply.frames) - 1
    for number, frame in enumerate(reply.frames):
        if how.stall is not None and number == min(how.stall[0], last):
            await asyncio.sleep(how.stall[1] * pace)
            await _broken(http, hard=False)
            return True
        if how.slow:
            await asyncio.sleep(how.slow * pace)
        if how.drop == number:
            await _broken(http, hard=False)
            return True
        inside = how.reset is not None and number == min(how.reset, last)
        for piece in _pieces(frame[: len(frame) // 2] if inside else frame, how.torn):
            await response.write(piece)
            if how.torn is not None:
                await asyncio.sleep(0)
        if inside:
            await _broken(http, hard=True)
            return True
    if how.drop is not None:
        await _broken(http, hard=False)
    return how.drop is not None


def _pieces(data: bytes, size: int | None) -> Iterator[bytes]:
    if size is None:
        yield data
        return
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _broken(http: web.Request, *, hard: bool) -> None:
    """Ends the connection without the end that HTTP asks for; `hard` with a reset."""
    transport = http.transport
    if transport is None:
        return
    await asyncio.sleep(ARRIVAL)
    found = transport.get_extra_info("socket")
    if hard and found is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    transport.abort()
