"""Thrift's compact protocol, read and written by the book: to forge the claims of Parquet files."""

from __future__ import annotations

BOOLEANS, INTEGERS, LISTS = (1, 2), (4, 5, 6), (9, 10)
DOUBLE, BINARY, STRUCT = 7, 8, 12


def number(data, place):
    value = shift = 0
    while True:
        byte, place = data[place], place + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def signed(data, place):
    value, place = number(data, place)
    return (value >> 1) ^ -(value & 1), place


def read(data, place, kind):
    """Return the value of that kind, and where it ends."""
    if kind in BOOLEANS:
        return data[place] == 1, place + 1
    if kind in INTEGERS:
        return signed(data, place)
    if kind == DOUBLE:
        return data[place : place + 8], place + 8
    if kind == BINARY:
        size, place = number(data, place)
        return data[place : place + size], place + size
    if kind in LISTS:
        size, inner, place = data[place] >> 4, data[place] & 15, place + 1
        if size == 15:
            size, place = number(data, place)
        items = []
        for _ in range(size):
            item, place = read(data, place, inner)
            items.append(item)
        return (inner, items), place
    assert kind == STRUCT
    return fields(data, place)


def fields(data, place=0):
    """Return a structure as a dict of number to [kind, value], and where it ends."""
    found, last = {}, 0
    while head := data[place]:
        place += 1
        if head >> 4:
            last += head >> 4
        else:
            last, place = signed(data, place)
        kind = head & 15
        if kind in BOOLEANS:
            found[last] = [kind, kind == 1]
        else:
            value, place = read(data, place, kind)
            found[last] = [kind, value]
    return found, place + 1


def written(value):
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def zigzag(value):
    return written((value << 1) ^ (value >> 63))


def write(kind, value):
    """Return the bytes of a value of that kind."""
    if kind in BOOLEANS:
        return bytes([1 if value else 2])
    if kind in INTEGERS:
        return zigzag(value)
    if kind == DOUBLE:
        return value
    if kind == BINARY:
        return written(len(value)) + value
    if kind in LISTS:
        inner, items = value
        size = len(items)
        head = bytes([size << 4 | inner]) if size < 15 else bytes([0xF0 | inner]) + written(size)
        return head + b"".join(write(inner, item) for item in items)
    return struct(value)


def struct(found):
    """Return the bytes of a structure."""
    data, last = b"", 0
    for place, (kind, value) in found.items():
        code = kind if kind not in BOOLEANS else 1 if value else 2
        step = place - last
        data += bytes([step << 4 | code]) if 0 < step < 16 else bytes([code]) + zigzag(place)
        data += b"" if kind in BOOLEANS else write(kind, value)
        last = place
    return data + b"\0"


def taken_apart(data):
    """Return the pages of a Parquet file, and its footer as a structure."""
    size = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - size], fields(data[-8 - size : -8])[0]


def put_together(pages, footer):
    """Return a Parquet file."""
    data = struct(footer)
    return pages + data + len(data).to_bytes(4, "little") + b"PAR1"
