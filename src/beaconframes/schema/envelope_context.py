"""What stands around the records of a page: the envelope they came in, and what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.errors import SchemaError
from beaconframes.schema.decode_checked import Cells, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.schema.column import Column
    from beaconframes.schema.table import Table


@dataclass(frozen=True)
class EnvelopeContext:
    """The raw members of a page's envelope, and the fields of the request that brought it."""

    members: Mapping[str, bytes]
    fields: Mapping[str, Any]

    def value(self, path: str) -> Any:
        """Return what stands at a dotted *path*, None if nothing does."""
        head, *steps = path.split(".")
        part: Any = self.fields if head == "asked" else plain(self.members.get(head, b"null"))
        for step in steps:
            part = part.get(step) if isinstance(part, Mapping) else None
        return part


@lru_cache
def plain(raw: bytes) -> Any:
    """Return raw JSON as plain objects; the pages of a call mostly say the same."""
    return msgspec.json.decode(raw)


NOTHING = EnvelopeContext({}, {})


def around_records(
    table: type[Table], around: Iterable[EnvelopeContext], heights: Sequence[int]
) -> Cells:
    """Return the cells of the columns that stand around the records, *heights* for each page."""
    pages = list(around)
    cells: Cells = {}
    for column in table.columns:
        if column.beside:
            values = (found(table, column, page) for page in pages)
            parts = (repeat(value, n) for value, n in zip(values, heights, strict=True))
            cells[column.name] = list(chain.from_iterable(parts))
    return cells


def found(table: type[Table], column: Column, page: EnvelopeContext) -> Any:
    """Return the value of *column* for all records of a *page*."""
    paths = (column.beside,) if isinstance(column.beside, str) else column.beside
    for path in paths:
        value = page.value(path)
        if value is None:
            continue
        try:
            return column.parse(value)
        except (ValueError, TypeError, OverflowError):
            raise SchemaError(
                f"{table.table_name}: {path} is {short(value)}, "
                f"which {column.name} ({column.dtype}) cannot hold",
                hint="The service sent something that the API does not promise",
            ) from None
    return None
