"""Checks of the footer and the page headers of untrusted Parquet files.

A Parquet library allocates what a footer or a page header claims, and trusts the number of rows. So
a small file can request all of the memory, or claim rows that it does not have. This reader parses
the claims without allocating for them, and compares them with each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

FOOTER = 2**24
"""Most bytes of a footer; a segment has some thousands."""
GROUP_ROWS = 2**20
"""Most rows of a row group, which a reader holds in memory at once."""
PAGE = 2**26
"""Most bytes of a decompressed page; writers start a new page at about one million."""
DECOMPRESSED = 2**28
"""Bytes of a decompressed row group that are always accepted."""
RATIO = 50
"""Highest compression ratio of a larger row group."""
VALUES = 2**24
"""Values of a list column in a row group that are always accepted."""
VALUES_PER_BYTE = 8
"""Most values for each byte on the disk in a larger column."""
PAGES = 2**17
"""Most pages of a file."""

_MAGIC = b"PAR1"
_SHORT_HEADER, _LONG_HEADER = 2**12, 2**24
_MAX_DEPTH = 32


class InvalidClaim(Exception):
    """A footer or a page header has an impossible value."""


def find_invalid_claim(path: Path, rows: int) -> str | None:
    """Return what is wrong with the metadata in a file of *rows* rows, None if nothing is."""
    try:
        with path.open("rb") as file:
            _check_file(file, path.stat().st_size, rows)
    except InvalidClaim as found:
        return str(found)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        return "is not a readable Parquet file"
    return None


def _check_file(file: BinaryIO, size: int, rows: int) -> None:
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > min(FOOTER, size - 12):
        raise InvalidClaim("is not a readable Parquet file")
    data = size - 8 - length
    file.seek(data)
    footer, _ = _read_struct(file.read(length), 0, 0)
    groups = footer.get(4, [])
    counts = [group[3] for group in groups]
    if footer[3] != rows or sum(counts) != rows or min(counts, default=0) < 0:
        raise InvalidClaim(f"claims {footer[3]:,} rows instead of {rows:,}")
    if max(counts, default=0) > GROUP_ROWS:
        raise InvalidClaim(f"has {max(counts):,} rows in one row group, more than {GROUP_ROWS:,}")
    pages = 0
    for group in groups:
        decompressed = compressed = 0
        for column in group[1]:
            facts = column[3]
            if column.get(1):
                raise InvalidClaim("stores its columns in another file")
            found, number = _check_pages(file, facts, data)
            decompressed += found
            compressed += facts[7]
            pages += number
            if decompressed > max(DECOMPRESSED, RATIO * compressed):
                raise InvalidClaim(
                    f"would decompress from {compressed:,} bytes to more than {DECOMPRESSED:,}"
                )
            if pages > PAGES:
                raise InvalidClaim(f"has more than {PAGES:,} pages")
            if facts[5] != group[3] and not group[3] <= facts[5] <= max(
                VALUES, VALUES_PER_BYTE * facts[7]
            ):
                raise InvalidClaim(f"claims {facts[5]:,} values in {group[3]:,} rows")


def _check_pages(file: BinaryIO, facts: dict[int, Any], data: int) -> tuple[int, int]:
    """Return the decompressed bytes and the number of the pages of a column."""
    offset = facts.get(11, facts[9])  # the dictionary page comes first
    end = offset + facts[7]
    if not len(_MAGIC) <= offset <= facts[9] <= end <= data:
        raise InvalidClaim("claims pages outside of its data")
    decompressed = values = number = 0
    while offset < end:
        page, header = _read_header(file, offset)
        decompressed += page[2]
        number += 1
        if not 0 <= page[2] <= PAGE or page[3] < 0 or number > PAGES:
            raise InvalidClaim(f"claims a page of {page[2]:,} bytes")
        values += sum(page[kind][1] for kind in (5, 8) if kind in page)
        if any(page[kind][1] < 0 for kind in (5, 7, 8) if kind in page):
            raise InvalidClaim("claims a negative number of values")
        offset += header + page[3]
    if offset != end or values != facts[5]:
        raise InvalidClaim(f"claims {facts[5]:,} values, but its pages claim {values:,}")
    return decompressed, number


def _read_header(file: BinaryIO, offset: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at *offset*, and its length; its statistics may be long."""
    file.seek(offset)
    start = file.read(_SHORT_HEADER)
    try:
        return _read_struct(start, 0, 0)
    except IndexError:
        return _read_struct(start + file.read(_LONG_HEADER), 0, 0)


def _read_struct(data: bytes, offset: int, depth: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a Thrift struct (compact protocol) by number, and its end."""
    if depth > _MAX_DEPTH:
        raise InvalidClaim("is nested too deeply")
    found: dict[int, Any] = {}
    last = 0
    while head := data[offset]:
        offset += 1
        if head >> 4:
            last += head >> 4
        else:
            number, offset = _read_varint(data, offset)
            last = (number >> 1) ^ -(number & 1)
        kind = head & 15
        if kind in (1, 2):
            found[last] = kind == 1
        else:
            found[last], offset = _read_value(data, offset, kind, depth)
    return found, offset + 1


def _read_value(data: bytes, offset: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a Thrift value of type *kind*, and its end."""
    if kind in (4, 5, 6):
        number, offset = _read_varint(data, offset)
        return (number >> 1) ^ -(number & 1), offset
    if kind == 8:
        length, offset = _read_varint(data, offset)
        return _read_bytes(data, offset, length)
    if kind in (9, 10):
        head = data[offset]
        length, offset = (
            _read_varint(data, offset + 1) if head >> 4 == 15 else (head >> 4, offset + 1)
        )
        if length > len(data):
            raise IndexError
        items = []
        for _ in range(length):
            item, offset = _read_value(data, offset, head & 15, depth + 1)
            items.append(item)
        return items, offset
    if kind == 12:
        return _read_struct(data, offset, depth + 1)
    if kind == 7:
        return _read_bytes(data, offset, 8)
    if kind in (1, 2, 3):
        return data[offset], offset + 1
    raise ValueError


def _read_bytes(data: bytes, offset: int, length: int) -> tuple[bytes, int]:
    if offset + length > len(data):
        raise IndexError
    return data[offset : offset + length], offset + length


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a varint (unsigned, seven bits in each byte), and its end."""
    number = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, offset
        shift += 7
        if shift > 70:
            raise ValueError
