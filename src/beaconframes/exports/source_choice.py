"""What is given to ``bf.export``, as sources of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from beaconframes.client import Store
from beaconframes.dataset import Dataset
from beaconframes.errors import UsageError
from beaconframes.exports import chunked_load, datasets
from beaconframes.exports.sources import Source, is_frame, of_frame, of_frames
from beaconframes.exports.tables import checked_name

if TYPE_CHECKING:
    from beaconframes.client import Explorer


def sources_of(
    what: Any, *, table: str | None, explorer: Explorer | None, arguments: dict[str, Any]
) -> list[Source]:
    """Return the rows of *what*, one source per table."""
    if table is not None:
        checked_name(table)
    if callable(what) and not is_frame(what):
        return [chunked_load.of_call(what, table, explorer, arguments)]
    if arguments:
        raise UsageError(
            f"export() takes no argument {min(arguments)!r}",
            hint="Only a loader has arguments of its own: bf.export(bf.load_..., target, ...)",
        )
    if isinstance(what, Store):
        if what.dataset is None:
            raise UsageError(f"nothing was kept in {what.path}", hint="Load something first")
        what = what.dataset
    if isinstance(what, Dataset):
        return datasets.of_dataset(what, table)
    if is_frame(what):
        return [of_frame(what, table)]
    if isinstance(what, Iterable) and not isinstance(what, str | bytes | dict):
        return [of_frames(what, table)]
    raise UsageError(
        f"{type(what).__name__} cannot be exported",
        hint="Give a frame, a loader and its arguments, a Dataset or bf.store()",
    )
