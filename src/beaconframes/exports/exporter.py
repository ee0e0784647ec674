"""``bf.export``: rows of any kind into a dataset that others can use, or into one file."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from beaconframes.client import Store
from beaconframes.dataset import Dataset
from beaconframes.errors import UsageError
from beaconframes.exports.chunked_load import of_call
from beaconframes.exports.dataset_sources import of_dataset
from beaconframes.exports.dataset_writer import USUAL, to_file, to_folder
from beaconframes.exports.formats import Cells
from beaconframes.exports.loader_calls import repeatable
from beaconframes.exports.lock import ExportLocked
from beaconframes.exports.manifest import DatasetInfo, authors, said
from beaconframes.exports.remote import remote_of, to_remote
from beaconframes.exports.sources import is_frame, of_frame, of_frames
from beaconframes.exports.table_descriptions import checked_name
from beaconframes.exports.targets import target_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from obstore.store import ObjectStore

    from beaconframes.client import Explorer
    from beaconframes.exports.result import Export
    from beaconframes.exports.sources import Source

POLL = 0.1
"""Seconds after which it is tried again whether another export has finished."""


def export(
    what: Any,
    target: str | os.PathLike[str] | ObjectStore,
    *,
    format: str | None = None,  # noqa: A002 - what every library calls it
    by: str | None = USUAL,
    table: str | None = None,
    name: str | None = None,
    title: str | None = None,
    creators: str | Sequence[str] = (),
    license: str | None = None,  # noqa: A002 - what it is called in every metadata format
    url: str | None = None,
    raw: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    wait: bool = False,
    explorer: Explorer | None = None,
    **arguments: Any,
) -> Export:
    """Export rows as a dataset that a paper can cite, or as one file.

    ::

        bf.export(income, "income/")                    # a frame, into a folder: a dataset
        bf.export(income, "income.csv")                 # ... or into one file
        bf.export(bf.load_income_history, "income/", validators=range(1000), since="2026-10-01")
        bf.export(bf.store(), "everything/")            # all that was ever loaded

    A loader takes its arguments by name, beside those of the export. It never has to fit into
    memory: what is loaded is written, day by day. When the call is cut short, the same call goes on
    where it was, and the dataset is the same to the byte. Later, the same call adds what has become
    final since, and touches nothing that was published. It ends at the epoch that was final when it
    began.

    A dataset is a folder: a folder of data files per table, ``manifest.json`` (every file with its
    SHA-256, where the rows are from, what is missing), ``datapackage.json``, ``croissant.json``,
    ``CITATION.cff`` and a README. Readers never see half of one, and two exports of the same rows
    are equal to the byte.

    Parameters
    ----------
    what
        A frame (polars, pandas with its index if that has names, lazy or not), an iterable of
        polars frames, a loader, a `Dataset` or a `Store`.
    target
        A folder; or a file, if its name ends like one: ``.parquet``, ``.csv``, ``.jsonl``,
        ``.arrow``, ``.duckdb``, ``.xlsx``. Or a place in an object store, such as
        ``"s3://bucket/income"``, or a store that obstore made (the extra ``cloud``).
    format
        ``"parquet"``, ``"csv"``, ``"jsonl"``, ``"arrow"``, ``"duckdb"`` or ``"xlsx"``; left out, as
        the file's name says, or Parquet.
    by
        How a folder is divided: by UTC ``"day"``, by sync ``"period"``, by ranges of 1,000
        ``"validators"``, or None. Left out: by day, if rows have a time. File after file, rows are
        in one order: of time and then validators, or of validators and then time. Folders are
        called ``date=...``, or ``partition_date=...`` where rows have a column of that name.
    table
        What the table is called; left out, what the loader of such rows calls it. Of a dataset: the
        only table to export.
    name, title, creators, license, url
        What the metadata says: the dataset's name, its title, who made it, under which license
        (such as ``"CC-BY-4.0"``), and where it is published.
    raw
        Whether CSV and Excel keep text that a spreadsheet would run as a formula. Otherwise such
        text, in columns of text and in names of columns, gets an apostrophe in front.
    storage_options
        What an object store is to be opened with: region, endpoint, keys. They are kept nowhere.
    wait
        Whether to wait when another process exports there just now, for as long as it takes.
        Otherwise that is an error, which names the process.
    explorer
        The explorer that a loader asks; left out, the one of ``bf.connect`` or ``bf.local``.

    Returns
    -------
    Export
        ``complete`` is False when rows did not come; ``gaps`` names them. The same call asks for
        them again. Before its activation and after its exit a validator lacks
        nothing. ``until`` is up to where it goes, which may be less than was asked for.

    Raises
    ------
    UsageError
        The target or an argument cannot work.
    DatasetError
        What is there is of another dataset, is damaged or is being written by somebody else; or
        the disk is full.
    """
    place = remote_of(target, storage_options)
    goal = target_of((place.single or "folder") if place else target, format)
    if callable(what):
        what, arguments = repeatable(what, arguments)
    sources = sources_of(what, table=table, explorer=explorer, arguments=arguments)
    about = DatasetInfo(
        checked_name(name or named_after(sources), "name"),
        said("title", title) or grain_of(sources),
        authors(creators),
        said("license", license),
        said("url", url),
    )

    def make(path: Path) -> Export:
        if goal.single:
            return to_file(sources, goal.at(path), Cells(raw))
        return to_folder(sources, goal.at(path), Cells(raw), about, by)

    done = patiently(
        partial(make, goal.path)
        if place is None
        else partial(to_remote, place, make, goes_on=any(s.resume for s in sources)),
        wait=wait,
    )
    return replace(done, unit=unit_of(sources))


def sources_of(
    what: Any, *, table: str | None, explorer: Explorer | None, arguments: dict[str, Any]
) -> list[Source]:
    """Return the rows of *what*, one source per table."""
    if table is not None:
        checked_name(table)
    if callable(what) and not is_frame(what):
        return [of_call(what, table, explorer, arguments)]
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
        return of_dataset(what, table)
    if is_frame(what):
        return [of_frame(what, table)]
    if isinstance(what, Iterable) and not isinstance(what, str | bytes | dict):
        return [of_frames(what, table)]
    raise UsageError(
        f"{type(what).__name__} cannot be exported",
        hint="Give a frame, a loader and its arguments, a Dataset or bf.store()",
    )


def patiently(make: Callable[[], Export], *, wait: bool) -> Export:
    """Call *make*, and again for as long as somebody else is at work there."""
    while True:
        try:
            return make()
        except ExportLocked:
            if not wait:
                raise
            time.sleep(POLL)


def unit_of(sources: list[Source]) -> str:
    """Return what is counted by what was asked for up to an end."""
    return next((s.request["unit"] for s in sources if "unit" in s.request), "")


def grain_of(sources: list[Source]) -> str:
    """Return a title for a dataset of which nobody says one."""
    return sources[0].table.grain if len(sources) == 1 else "Tables of a chain"


def named_after(sources: list[Source]) -> str:
    """Return a name for a dataset: it does not depend on the folder that it lies in."""
    return sources[0].table.name if len(sources) == 1 else "dataset"
