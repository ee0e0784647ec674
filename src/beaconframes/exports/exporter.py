"""``bf.export``: export rows as a dataset or as one file."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from beaconframes.exports.dataset_writer import DEFAULT, write_dataset, write_file
from beaconframes.exports.formats import CellOptions
from beaconframes.exports.lock import ExportLocked
from beaconframes.exports.manifest import check_creators, check_license, check_text
from beaconframes.exports.object_store import export_to_store, parse_remote_target
from beaconframes.exports.source_factory import create_sources
from beaconframes.exports.table_descriptions import check_name
from beaconframes.exports.targets import check_overwrite, parse_target
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from obstore.store import ObjectStore

    from beaconframes.client import Explorer
    from beaconframes.exports.result import Export

POLL_INTERVAL = 0.1
"""Seconds between two attempts to lock the target."""


@show_elapsed
def export(
    what: Any,
    target: str | os.PathLike[str] | ObjectStore,
    *,
    format: str | None = None,  # noqa: A002 - the name that every library uses
    by: str | None = DEFAULT,
    table: str | None = None,
    name: str | None = None,
    title: str | None = None,
    creators: str | Sequence[str] = (),
    license: str | None = None,  # noqa: A002 - the name that every metadata format uses
    url: str | None = None,
    raw: bool = False,
    unfinalized: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    wait: bool = False,
    explorer: Explorer | None = None,
    **arguments: Any,
) -> Export:
    """Export rows as a dataset that a paper can cite, or as one file.

    ::

        bf.export(income, "income/")                    # a frame, into a folder: a dataset
        bf.export(income, "income.csv")                 # ... or into one file
        bf.export(bf.load_income_history, "income/", validators=range(1000), since="2026-10-01")
        bf.export(bf.store(), "everything/")            # all rows of the local store

    Give the arguments of a loader by name, beside those of the export. Rows are written day by day
    as they are loaded, so they need not fit into memory. After an interruption, run the same call
    again: rows in the store are not requested again. Later, it adds newly finalized epochs;
    published files never change. An export ends at the epoch that is final when it starts.

    A dataset is a folder: a folder of data files per table, ``manifest.json`` (every file with its
    SHA-256, the source of the rows, missing rows), ``datapackage.json``, ``croissant.json``,
    ``CITATION.cff`` and a README. Readers never see an unfinished dataset, and two exports of
    the same rows have the same bytes.

    Amounts stay exact, in gwei and wei, as the names of columns end. For ether, export the frame
    that `to_eth` returns.

    Parameters
    ----------
    what
        A frame (polars, pandas including a named index; lazy or not), a loader, a `Dataset` or a
        `Store`.
    target
        A folder, or a file if the name ends in ``.parquet``, ``.csv``, ``.jsonl``, ``.arrow``
        or ``.xlsx``. Other endings, such as ``.csv.gz``, are refused. Or an address in an object
        store, such as ``"s3://bucket/income"``, or a store object of obstore (the extra ``cloud``).
    format
        ``"parquet"``, ``"csv"``, ``"jsonl"`` or ``"arrow"``, and for one file ``"xlsx"``. Default:
        by the extension of the file, otherwise Parquet.
    by
        How a folder is divided: by UTC ``"day"``, by sync committee ``"period"``, by ranges of
        1,000 ``"validators"``, or None. Default: by day, if the rows have a time. Consecutive files
        are in one order: by time and then validator, or by validator and then time. Folders are
        called ``date=...``, or ``partition_date=...`` if the rows have a column ``date``.
    table
        The name of the table. Default: that of the loader with the same columns. For a dataset: the
        only table to export.
    name
        Name of the dataset.
    title
        Title of the dataset.
    creators
        Creators of the dataset: one, or several.
    license
        SPDX license, such as ``CC-BY-4.0``.
    url
        Address where the dataset is published.
    raw
        Whether CSV and Excel files keep text that a spreadsheet would run as a formula. By default,
        such text gets an apostrophe in front, in text columns and in column names.
    unfinalized
        Whether a loader's rows that are not final yet are exported as well. The column
        ``finalized`` marks them, and such a dataset cannot be extended. By default, requested rows
        that are not final are gaps.
    storage_options
        Options of ``obstore.store.from_url``: region, endpoint, keys, ``client_options``. They are
        not stored.
    overwrite
        Whether to replace an existing file. By default, that is an error. A dataset is not
        replaced: an export adds to it.
    wait
        Whether to wait until another process has finished its export to the same target. By
        default, that is an error that names the process. Of two exports to an object store, the
        later one fails.
    explorer
        The explorer that a loader requests from. Default: that of ``bf.connect`` or ``bf.local``.

    Returns
    -------
    Export
        ``complete`` is False if rows are missing; ``gaps`` lists them, and the same call requests
        them again. Epochs before the activation or after the exit of a validator are not gaps.
        ``until`` is the last exported epoch, which may be earlier than requested.

    Raises
    ------
    UsageError
        The target or an argument is invalid.
    DatasetError
        The file exists already. The target contains other files, or a dataset that is damaged or
        does not match. Another process exports to it. The disk is full.
    """
    remote = parse_remote_target(target, storage_options)
    local = parse_target((remote.file_name or "folder") if remote else target, format)
    if remote is None or not local.is_file:
        check_overwrite(local, overwrite=overwrite)
    sources = create_sources(
        what, table=table, explorer=explorer, arguments=arguments, unfinalized=unfinalized
    )
    # The default name of a dataset does not depend on its folder.
    default, default_title = "dataset", "Tables of a chain"
    if len(sources) == 1:
        default, default_title = sources[0].table.name, sources[0].table.title
    info = {
        "name": check_name(name or default, "name"),
        "title": check_text("title", title) or default_title,
        "creators": check_creators(creators),
        "license": check_license(license),
        "url": check_text("url", url),
    }

    def write(path: Path) -> Export:
        if local.is_file:
            if remote is None:
                # While this export waited, another one may have written the file.
                check_overwrite(local, overwrite=overwrite)
            return write_file(sources, local.at(path), CellOptions(raw))
        return write_dataset(sources, local.at(path), CellOptions(raw), info, by)

    if remote is None:
        run = partial(write, local.path)
    else:
        run = partial(export_to_store, remote, write, overwrite=overwrite)
    made = run_when_unlocked(run, wait=wait)
    requests = [source.request for source in sources]
    until = next((r["until"] for r in requests if r.get("until") is not None), None)
    unit = next((r["unit"] for r in requests if "unit" in r), "")
    return replace(made, until=until, unit=unit)


def run_when_unlocked(run: Callable[[], Export], *, wait: bool) -> Export:
    """Call *run*; with *wait*, call it again until no other export holds the lock."""
    while True:
        try:
            return run()
        except ExportLocked:
            if not wait:
                raise
            time.sleep(POLL_INTERVAL)
