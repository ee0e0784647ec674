"""Thrift's compact protocol, to read and forge the footers of Parquet files."""

from __future__ import annotations

BOOLEANS, INTEGERS, LISTS = (1, 2), (4, 5, 6), (9, 10)
DOUBLE, BINARY, STRUCT = 7, 8, 12


def read_varint(data, offset):
    value = shift = 0
    while True:
        byte, offset = data[offset], offset + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, offset
        shift += 7


def read_signed(data, offset):
    value, offset = read_varint(data, offset)
    return (value >> 1) ^ -(value & 1), offset


def read_value(data, offset, kind):
    """Return a value of type *kind*, and its end."""
    if kind in BOOLEANS:
        return data[offset] == 1, offset + 1
    if kind in INTEGERS:
        return read_signed(data, offset)
    if kind == DOUBLE:
        return data[offset : offset + 8], offset + 8
    if kind == BINARY:
        size, offset = read_varint(data, offset)
        return data[offset : offset + size], offset + size
    if kind in LISTS:
        size, inner, offset = data[offset] >> 4, data[offset] & 15, offset + 1
        if size == 15:
            size, offset = read_varint(data, offset)
        items = []
        for _ in range(size):
            item, offset = read_value(data, offset, inner)
            items.append(item)
        return (inner, items), offset
    assert kind == STRUCT
    return read_struct(data, offset)


def read_struct(data, offset=0):
    """Return a struct as a dict of field number to [kind, value], and its end."""
    found, last = {}, 0
    while head := data[offset]:
        offset += 1
        if head >> 4:
            last += head >> 4
        else:
            last, offset = read_signed(data, offset)
        kind = head & 15
        if kind in BOOLEANS:
            found[last] = [kind, kind == 1]
        else:
            value, offset = read_value(data, offset, kind)
            found[last] = [kind, value]
    return found, offset + 1


def write_varint(value):
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def write_signed(value):
    return write_varint((value << 1) ^ (value >> 63))


def write_value(kind, value):
    """Return the bytes of a value of type *kind*."""
    if kind in BOOLEANS:
        return bytes([1 if value else 2])
    if kind in INTEGERS:
        return write_signed(value)
    if kind == DOUBLE:
        return value
    if kind == BINARY:
        return write_varint(len(value)) + value
    if kind in LISTS:
        inner, items = value
        size = len(items)
        head = (
            bytes([size << 4 | inner]) if size < 15 else bytes([0xF0 | inner]) + write_varint(size)
        )
        return head + b"".join(write_value(inner, item) for item in items)
    return write_struct(value)


def write_struct(found):
    """Return the bytes of a struct."""
    data, last = b"", 0
    for offset, (kind, value) in found.items():
        code = kind if kind not in BOOLEANS else 1 if value else 2
        step = offset - last
        data += bytes([step << 4 | code]) if 0 < step < 16 else bytes([code]) + write_signed(offset)
        data += b"" if kind in BOOLEANS else write_value(kind, value)
        last = offset
    return data + b"\0"


def split_file(data):
    """Return the pages of a Parquet file, and its footer as a struct."""
    size = int.from_bytes(data[-8:-4], "little")
    return data[: -8 - size], read_struct(data[-8 - size : -8])[0]


def join_file(pages, footer):
    """Return a Parquet file."""
    data = write_struct(footer)
    return pages + data + len(data).to_bytes(4, "little") + b"PAR1"
