"""Parquet files of others: what one says of itself is checked before a library believes it.

A reader allocates what a footer or a page claims, and takes its word for the number of rows. So a
small file can ask for all of the memory, or count rows that are not there. Here the claims are read
by themselves, with nothing allocated for them, and held against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

FOOTER = 2**24
"""Bytes of a footer; one of ours has some thousands."""
GROUP_ROWS = 2**20
"""Rows of a row group, which a reader holds in memory at once."""
PAGE = 2**26
"""Bytes of a page when it is unpacked; every writer cuts at about one million."""
UNPACKED = 2**28
"""Bytes of a row group when it is unpacked, and ..."""
SWELLS = 50
"""... how much larger than on the disk it may be beyond that."""
VALUES = 2**24
"""Values of a column in a row group, where a row holds a list; and ..."""
LISTS = 8
"""... how many for each byte on the disk beyond that."""
PAGES = 2**17
"""Pages of a file."""

_MAGIC = b"PAR1"
_SHORT, _LONG = 2**12, 2**24
_DEEP = 32


class Lie(Exception):
    """A claim that does not hold; its text says which."""


def lie(path: Path, rows: int) -> str | None:
    """Say what is wrong with the claims of a file that is to have so many *rows*, if anything."""
    try:
        with path.open("rb") as file:
            _check(file, path.stat().st_size, rows)
    except Lie as found:
        return str(found)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except (IndexError, KeyError, TypeError, AttributeError, ValueError):
        return "is no Parquet file that can be read"
    return None


def _check(file: BinaryIO, size: int, rows: int) -> None:
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > min(FOOTER, size - 12):
        raise Lie("is no Parquet file that can be read")
    data = size - 8 - length
    file.seek(data)
    footer, _ = _struct(file.read(length), 0, 0)
    groups = footer.get(4, [])
    told = [group[3] for group in groups]
    if footer[3] != rows or sum(told) != rows or min(told, default=0) < 0:
        raise Lie(f"claims {footer[3]:,} rows instead of {rows:,}")
    if max(told, default=0) > GROUP_ROWS:
        raise Lie(f"has {max(told):,} rows in one piece, more than {GROUP_ROWS:,}")
    pages = 0
    for group in groups:
        unpacked = packed = 0
        for column in group[1]:
            facts = column[3]
            if column.get(1):
                raise Lie("keeps its columns in another file")
            found, number = _pages(file, facts, data)
            unpacked, packed, pages = unpacked + found, packed + facts[7], pages + number
            if unpacked > max(UNPACKED, SWELLS * packed):
                raise Lie(f"would swell from {packed:,} bytes to more than {UNPACKED:,}")
            if pages > PAGES:
                raise Lie(f"has more than {PAGES:,} pages")
            if facts[5] != group[3] and not group[3] <= facts[5] <= max(VALUES, LISTS * facts[7]):
                raise Lie(f"claims {facts[5]:,} values in {group[3]:,} rows")


def _pages(file: BinaryIO, facts: dict[int, Any], data: int) -> tuple[int, int]:
    """Go from page to page of a column; return the bytes of all, unpacked, and their number."""
    place = facts.get(11, facts[9])  # the dictionary comes first
    end = place + facts[7]
    if not len(_MAGIC) <= place <= facts[9] <= end <= data:
        raise Lie("claims pages where none can be")
    unpacked = values = number = 0
    while place < end:
        page, header = _header(file, place)
        unpacked += page[2]
        number += 1
        if not 0 <= page[2] <= PAGE or page[3] < 0 or number > PAGES:
            raise Lie(f"claims a page of {page[2]:,} bytes")
        values += sum(page[kind][1] for kind in (5, 8) if kind in page)
        if any(page[kind][1] < 0 for kind in (5, 7, 8) if kind in page):
            raise Lie("claims fewer values than none")
        place += header + page[3]
    if place != end or values != facts[5]:
        raise Lie(f"claims {facts[5]:,} values, and its pages {values:,}")
    return unpacked, number


def _header(file: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at *place*, and its length; texts in it may be long."""
    file.seek(place)
    start = file.read(_SHORT)
    try:
        return _struct(start, 0, 0)
    except IndexError:
        return _struct(start + file.read(_LONG), 0, 0)


def _struct(data: bytes, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a structure in Thrift's compact protocol by number, and its end."""
    if depth > _DEEP:
        raise Lie("is nested too deeply")
    found: dict[int, Any] = {}
    last = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            last += head >> 4
        else:
            number, place = _number(data, place)
            last = (number >> 1) ^ -(number & 1)
        kind = head & 15
        if kind in (1, 2):
            found[last] = kind == 1
        else:
            found[last], place = _value(data, place, kind, depth)
    return found, place + 1


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a value of that *kind*, and its end."""
    if kind in (4, 5, 6):
        number, place = _number(data, place)
        return (number >> 1) ^ -(number & 1), place
    if kind == 8:
        length, place = _number(data, place)
        return _bytes(data, place, length)
    if kind in (9, 10):
        head = data[place]
        length, place = _number(data, place + 1) if head >> 4 == 15 else (head >> 4, place + 1)
        if length > len(data):
            raise IndexError
        items = []
        for _ in range(length):
            item, place = _value(data, place, head & 15, depth + 1)
            items.append(item)
        return items, place
    if kind == 12:
        return _struct(data, place, depth + 1)
    if kind == 7:
        return _bytes(data, place, 8)
    if kind in (1, 2, 3):
        return data[place], place + 1
    raise ValueError


def _bytes(data: bytes, place: int, length: int) -> tuple[bytes, int]:
    if place + length > len(data):
        raise IndexError
    return data[place : place + length], place + length


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number without sign, seven bits in each byte, and its end."""
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
        shift += 7
        if shift > 70:
            raise ValueError
