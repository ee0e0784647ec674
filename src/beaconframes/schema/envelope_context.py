"""Values outside a page's records: in the response's envelope, or in the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from beaconframes.errors import ProtocolError, SchemaError
from beaconframes.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.schema.columns import Column, TableSpec

DATASET_MEMBER = "dataset"
"""The member of the envelope in which a local explorer of a real chain states its dataset."""
UNDOCUMENTED = "The service sent a value that the API does not document"


@dataclass(frozen=True)
class EnvelopeContext:
    """The raw members of a page's envelope, and the fields of its request."""

    members: Mapping[str, bytes]
    fields: Mapping[str, Any]

    def find_value(self, path: str) -> Any:
        """Return the value at a dotted *path*, None if there is none."""
        head, *steps = path.split(".")
        part: Any = self.fields if head == "request" else parse(self.members.get(head, b"null"))
        for step in steps:
            if part is None:
                return None
            if not isinstance(part, Mapping):
                raise SchemaError(
                    f"{path} of the response is missing: {shorten(part)} is not an object",
                    hint=UNDOCUMENTED,
                )
            part = part.get(step)
        return part


@lru_cache
def parse(raw: bytes) -> Any:
    """Return raw JSON as plain objects; cached, because the pages of a call rarely differ."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"the envelope of the response is not JSON ({error})") from None


NO_CONTEXT = EnvelopeContext({}, {})


def build_context_cells(
    table: TableSpec, contexts: Iterable[EnvelopeContext], heights: Sequence[int]
) -> dict[str, list[Any]]:
    """Return the cells of the columns outside the records; a page has one of *heights* rows."""
    pages = list(contexts)
    cells: dict[str, list[Any]] = {}
    for column in table.context_columns:
        paths = column.context_paths
        values = (find_cell(table, column, paths, page) for page in pages)
        parts = (repeat(value, n) for value, n in zip(values, heights, strict=True))
        cells[column.name] = list(chain.from_iterable(parts))
    return cells


def find_cell(table: TableSpec, column: Column, paths: Sequence[str], page: EnvelopeContext) -> Any:
    """Return the value of *column* for all records of a *page*, the first at any of *paths*."""
    for path in paths:
        value = page.find_value(path)
        if value is None:
            continue
        try:
            return column.parse(value)
        except (ValueError, TypeError, OverflowError):
            raise SchemaError(
                f"{table.table_name}: {path} is {shorten(value)}, "
                f"which {column.name} ({column.dtype}) cannot hold",
                hint=UNDOCUMENTED,
            ) from None
    return None
