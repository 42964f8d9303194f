"""The driver of a tab: packets of two threads stay apart in the pipe, whatever their length."""

import os
import threading

from inspector.web.tab_driver import whole_packets


def test_packets_that_are_longer_than_a_pipe_do_not_mix() -> None:
    reading, writing = os.pipe()
    write = whole_packets(lambda data: os.write(writing, data))
    packets = [bytes([letter]) * 300_000 for letter in b"abcd"]
    threads = [threading.Thread(target=write, args=(packet,)) for packet in packets]
    for each in threads:
        each.start()
    seen = b""
    while len(seen) < 1_200_000:
        seen += os.read(reading, 1 << 16)
    for each in threads:
        each.join()
    os.close(reading)
    os.close(writing)
    assert sorted(seen[at : at + 300_000] for at in range(0, 1_200_000, 300_000)) == packets


def test_a_packet_that_is_taken_in_parts_is_written_whole() -> None:
    taken = bytearray()

    def some(data: bytes) -> int:
        part = bytes(data[:3])
        taken.extend(part)
        return len(part)

    assert whole_packets(some)(b"abcdefgh") == 8
    assert taken == b"abcdefgh"
