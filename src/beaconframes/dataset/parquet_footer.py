"""Checks of the footer and the page headers of untrusted Parquet files.

A Parquet library allocates as much memory as a footer or a page header states, and trusts the
number of rows. So a small file can exhaust the memory, or state more rows than it has. This reader
parses the stated sizes without allocating memory for them, and compares them with each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

MAX_FOOTER_BYTES = 2**24
"""A segment's footer has a few thousand bytes."""
MAX_GROUP_ROWS = 2**20
"""A reader holds one row group in memory."""
MAX_PAGE_BYTES = 2**26
"""Decompressed; writers start a new page at about one million bytes."""
FREE_GROUP_BYTES = 2**28
"""Bytes of a decompressed row group that are accepted at any compression ratio."""
MAX_COMPRESSION_RATIO = 50
"""Limit for row groups above `FREE_GROUP_BYTES`."""
FREE_VALUES = 2**24
"""Values of a list column in a row group that are accepted in any file."""
MAX_VALUES_PER_BYTE = 8
"""Limit for list columns above `FREE_VALUES`, per compressed byte."""
MAX_PAGES = 2**17
"""Per file."""

_MAGIC = b"PAR1"
_SHORT_HEADER, _LONG_HEADER = 2**8, 2**24
_MAX_DEPTH = 32
_INTEGER = 6


class InvalidClaim(Exception):
    """A footer or a page header has an impossible value."""


def find_invalid_claim(path: Path, rows: int) -> str | None:
    """Return the defect in the metadata of a file with *rows* rows, None if there is none.

    Files of other formats have none.
    """
    if path.suffix != ".parquet":
        return None
    try:
        with path.open("rb") as file:
            _check_file(file, path.stat().st_size, rows)
    except InvalidClaim as error:
        return str(error)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        return "is not a readable Parquet file"
    return None


def _check_file(file: BinaryIO, size: int, rows: int) -> None:
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > min(MAX_FOOTER_BYTES, size - 12):
        raise InvalidClaim("is not a readable Parquet file")
    data = size - 8 - length
    file.seek(data)
    footer, _ = _read_struct(file.read(length))
    groups = footer.get(4, [])
    counts = [group[3] for group in groups]
    if footer[3] != rows or sum(counts) != rows or min(counts, default=0) < 0:
        raise InvalidClaim(f"claims {footer[3]:,} rows instead of {rows:,}")
    if max(counts, default=0) > MAX_GROUP_ROWS:
        raise InvalidClaim(
            f"has {max(counts):,} rows in one row group, more than {MAX_GROUP_ROWS:,}"
        )
    pages = 0
    for group in groups:
        decompressed = compressed = 0
        for column in group[1]:
            column_meta = column[3]
            if column.get(1):
                raise InvalidClaim("stores its columns in another file")
            column_bytes, number = _check_pages(file, column_meta, data)
            decompressed += column_bytes
            compressed += column_meta[7]
            pages += number
            if decompressed > max(FREE_GROUP_BYTES, MAX_COMPRESSION_RATIO * compressed):
                raise InvalidClaim(
                    f"would decompress from {compressed:,} bytes to more than {FREE_GROUP_BYTES:,}"
                )
            if pages > MAX_PAGES:
                raise InvalidClaim(f"has more than {MAX_PAGES:,} pages")
            if column_meta[5] != group[3] and not group[3] <= column_meta[5] <= max(
                FREE_VALUES, MAX_VALUES_PER_BYTE * column_meta[7]
            ):
                raise InvalidClaim(f"claims {column_meta[5]:,} values in {group[3]:,} rows")


def _check_pages(file: BinaryIO, column_meta: dict[int, Any], data: int) -> tuple[int, int]:
    """Return the decompressed bytes and the number of the pages of a column."""
    offset = column_meta.get(11, column_meta[9])  # the dictionary page comes first
    end = offset + column_meta[7]
    if not len(_MAGIC) <= offset <= column_meta[9] <= end <= data:
        raise InvalidClaim("claims pages outside of its data")
    decompressed = values = number = 0
    while offset < end:
        page, header = _read_header(file, offset)
        decompressed += page[2]
        number += 1
        if not 0 <= page[2] <= MAX_PAGE_BYTES or page[3] < 0 or number > MAX_PAGES:
            raise InvalidClaim(f"claims a page of {page[2]:,} bytes")
        values += sum(page[kind][1] for kind in (5, 8) if kind in page)
        if any(page[kind][1] < 0 for kind in (5, 7, 8) if kind in page):
            raise InvalidClaim("claims a negative number of values")
        offset += header + page[3]
    if offset != end or values != column_meta[5]:
        raise InvalidClaim(f"claims {column_meta[5]:,} values, but its pages claim {values:,}")
    return decompressed, number


def _read_header(file: BinaryIO, offset: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at *offset*, and its length; its statistics may be long."""
    file.seek(offset)
    start = file.read(_SHORT_HEADER)
    try:
        return _read_struct(start)
    except IndexError:
        return _read_struct(start + file.read(_LONG_HEADER))


def _read_struct(data: bytes, offset: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a Thrift struct (compact protocol) by number, and its end."""
    if depth > _MAX_DEPTH:
        raise InvalidClaim("is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while head := data[offset]:
        offset += 1
        kind = head & 15
        if head > 15:
            number += head >> 4
        else:
            number, offset = _read_value(data, offset, _INTEGER)
        if 4 <= kind <= 6:
            # Most values are small integers, for which a call takes longer than the rest.
            value, offset = data[offset], offset + 1
            if value > 127:
                value, offset = _read_varint(data, offset - 1)
            fields[number] = (value >> 1) ^ -(value & 1)
        elif kind in (1, 2):
            fields[number] = kind == 1
        else:
            fields[number], offset = _read_value(data, offset, kind, depth + 1)
    return fields, offset + 1


def _read_value(data: bytes, offset: int, kind: int, depth: int = 0) -> tuple[Any, int]:
    """Return a Thrift value of type *kind*, and its end."""
    if 4 <= kind <= 6:
        value, offset = _read_varint(data, offset)
        return (value >> 1) ^ -(value & 1), offset
    if kind == 12:
        return _read_struct(data, offset, depth)
    if kind in (7, 8):
        length, offset = (8, offset) if kind == 7 else _read_varint(data, offset)
        if offset + length > len(data):
            raise IndexError
        return data[offset : offset + length], offset + length
    if kind in (9, 10):
        length, kind, offset = data[offset] >> 4, data[offset] & 15, offset + 1
        if length == 15:
            length, offset = _read_varint(data, offset)
        if length > len(data):
            raise IndexError
        items = []
        for _ in range(length):
            item, offset = _read_value(data, offset, kind, depth + 1)
            items.append(item)
        return items, offset
    if kind in (1, 2, 3):
        return data[offset], offset + 1
    raise ValueError


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a varint (unsigned, seven bits in each byte), and its end."""
    number = shift = 0
    while (byte := data[offset]) > 127:
        number |= (byte & 127) << shift
        offset += 1
        shift += 7
        if shift > 70:
            raise ValueError
    return number | byte << shift, offset + 1
