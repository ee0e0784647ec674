"""The shelf: the dataset in which loaders keep what is final. Trouble with it stops no load."""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
import warnings
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import platformdirs
import polars as pl

from beaconframes.dataset import Dataset, Selection
from beaconframes.errors import DatasetBusy, DatasetError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from beaconframes.calendar import Chain
    from beaconframes.dataset import Covered, Grid
    from beaconframes.endpoint.cover import Runs

log = logging.getLogger("beaconframes.store")

MANY_SMALL = 16
"""Small segments of a table after which they are made into large ones."""

T = TypeVar("T")


def home_of(root: Path | None, url: str, chain: Chain) -> Path:
    """Return the folder for what comes from the service at *url* about *chain*.

    *root* may be a dataset itself: then it is that one.
    """
    if root is not None and (root / "ledger.sqlite").exists():
        return root
    folder = platformdirs.user_data_path("beaconframes") / "store" if root is None else root
    place = urlsplit(url)
    words = re.sub(r"[^a-z0-9.]+", "-", f"{place.netloc}{place.path}-{chain.name}".lower())
    facts = f"{url.lower()} {sorted((n, str(v)) for n, v in vars(chain).items())}"
    return folder / f"{words[:60]}-{blake2b(facts.encode(), digest_size=4).hexdigest()}"


class LocalStore:
    """One dataset, made when the first row is kept; usable from threads and processes at once."""

    def __init__(self, path: Path, *, url: str, chain: Chain, simulated: bool = False) -> None:
        """Keep what *url* tells of *chain* in the folder *path*; nothing is opened yet."""
        self.path = path
        self._facts = {"service": url, "simulated": simulated, "chain": chain_facts(chain)}
        self._chain = chain
        self._dataset: Dataset | None = None
        self._finalized = -1
        self._warned = False
        self._asides = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LocalStore({str(self.path)!r})"

    @property
    def dataset(self) -> Dataset | None:
        """Return the dataset, if it is there."""
        with self._lock:
            if not (self.path / "ledger.sqlite").exists():
                # It may have been deleted meanwhile.
                self._dataset = None
            elif self._dataset is None:
                self._open()
            return self._dataset

    def _open(self) -> None:
        try:
            found = Dataset.open(self.path)
            if not found.has_intact_ledger:
                raise DatasetError(f"the ledger of {self.path} is damaged")
            meta = found.meta
        except DatasetBusy as error:
            self._warn(error.message, error.hint)
            return
        except DatasetError as error:
            self._set_aside(error)
            return
        if meta.get("chain", self._facts["chain"]) != self._facts["chain"]:
            self._warn(f"{self.path} is of another chain", "Choose another folder: store=...")
            return
        self._dataset = found
        self._finalized = max(self._finalized, int(meta.get("finalized_epoch", -1)))

    def _set_aside(self, error: DatasetError) -> None:
        """Put a dataset that cannot be read out of the way, so that a new one can begin."""
        aside = self.path.with_name(f"{self.path.name}.unreadable-{secrets.token_hex(4)}")
        try:
            self.path.rename(aside)
        except OSError:
            self._warn(error.message, error.hint)
        else:
            self._asides += 1
            self._warn(f"{error.message}; it was put aside as {aside}", "Delete it, or mend it")

    @property
    def finalized(self) -> int:
        """Return the last epoch that is known to be final; -1 if none is."""
        return self._finalized if self.dataset else -1

    def coverage(self, table: str, subjects: Collection[str], parts: Runs) -> Covered:
        """Return what is complete of *subjects* in *parts*."""
        dataset = self.dataset
        if dataset is None or not parts:
            return {}
        try:
            return dataset.coverage(table, subjects, first=parts[0][0], last=parts[-1][1])
        except DatasetBusy as error:
            self._warn(error.message, error.hint)
            return {}
        except DatasetError as error:
            with self._lock:
                self._dataset = None
                self._set_aside(error)
            return {}

    def select(
        self, table: str, subjects: Collection[str] | None, parts: Runs, schema: pl.Schema
    ) -> Selection:
        """Return the rows of *subjects* in *parts*, sorted as they were written.

        Raises DatasetError when what is there was damaged; by then it is forgotten, so that asking
        once more finds it missing.
        """
        dataset = self.dataset
        if dataset is None:
            return Selection(pl.LazyFrame(schema=schema), 0, ordered=True)
        try:
            return dataset.selection(table, subjects, parts, schema=schema)
        except DatasetError as error:
            log.warning("%s; what was damaged is forgotten and asked for again", error.message)
            self._try(lambda d: d.mend())
            raise

    def keep(
        self, table: str, rows: pl.DataFrame, grid: Grid, complete: Covered, finalized: int
    ) -> bool:
        """Keep *rows* and that they are *complete*; return whether that worked."""

        def commit(dataset: Dataset) -> bool:
            with dataset.writing() as writer:
                writer.add_covered(table, rows, grid, complete)
                if finalized > self._finalized:
                    writer.set_meta(ends(self._chain, finalized))
            self._finalized = max(self._finalized, finalized)
            return True

        self._create()
        return self._try(commit) is True

    @property
    def forgotten(self) -> tuple[int, str]:
        """Return a mark that is another one after something was forgotten, by whomever."""
        mark = ""
        with suppress(DatasetError, OSError):
            mark = "" if (dataset := self.dataset) is None else dataset.prune_mark
        return self._asides, mark

    def newest(self, table: str, unit: str) -> int:
        """Return the last unit of which a table has rows; -1 if it has none."""
        dataset = self.dataset
        named = [] if dataset is None else dataset.segments(table)
        return max((int(s.ranges[unit][1]) for s in named if unit in s.ranges), default=-1)

    def fit(self, table: str, schema: pl.Schema) -> None:
        """Forget a table that an older or newer version kept with other columns."""
        dataset = self.dataset
        if dataset is None:
            return
        known = dataset.schema(table)
        if known is not None and known != schema:
            log.warning("table %s was kept with other columns; it is asked for anew", table)
            self._try(lambda d: d.prune(table))

    def tidy(self, table: str) -> None:
        """Make many small segments into few large ones."""
        dataset = self.dataset
        if dataset is not None and len(dataset.segments(table)) > MANY_SMALL:
            self._try(lambda d: d.compact(table))

    def distrust(self, error: DatasetError) -> None:
        """Say once that nothing can be kept, since *error* does not go away."""
        self._warn(error.message, error.hint)

    def _create(self) -> None:
        """Make the dataset, unless it is there: whole or not at all, whoever else tries."""
        with self._lock:
            if self._dataset is not None:
                return
            # Whoever makes the folder gives it its name when its ledger is there: first the folder.
            something = self.has_files()
            if not (self.path / "ledger.sqlite").exists():
                if something:
                    # Without its ledger nobody can tell what the rest is.
                    self._set_aside(DatasetError(f"{self.path} has lost its ledger"))
                draft = self.path.with_name(f".{self.path.name}-{secrets.token_hex(4)}")
                try:
                    draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    Dataset.create(draft, meta=self._facts, private=True)
                    draft.rename(self.path)
                except (OSError, DatasetError) as error:
                    shutil.rmtree(draft, ignore_errors=True)
                    # Another process may have been faster.
                    if not (self.path / "ledger.sqlite").exists():
                        self._warn(str(error), None)
                        return
            self._open()

    def has_files(self) -> bool:
        """Tell whether there is a folder with anything in it."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return any(self.path.iterdir())
        return False

    def _try(self, use: Callable[[Dataset], T]) -> T | None:
        """Return what *use* makes of the dataset; None, with one warning, if it cannot be used."""
        dataset = self.dataset
        if dataset is None:
            return None
        try:
            return use(dataset)
        except DatasetError as error:
            if dataset.has_intact_ledger:
                self._warn(error.message, error.hint)
            else:
                with self._lock:
                    self._dataset = None
                    self._set_aside(error)
        except OSError as error:
            self._warn(f"{self.path}: {error.strerror or error}", None)
        return None

    def _warn(self, message: str, hint: str | None) -> None:
        """Warn once that the store cannot be used; log what follows."""
        if self._warned:
            log.debug("the store is not used: %s", message)
            return
        self._warned = True
        warnings.warn(
            StoreUnavailable(f"the store is not used: {message}", hint=hint), stacklevel=2
        )


def chain_facts(chain: Chain) -> dict[str, Any]:
    """Return *chain* as a dataset has it."""
    return {**asdict(chain), "genesis": chain.genesis.isoformat()}


def ends(chain: Chain, finalized: int) -> dict[str, int]:
    """Return what a dataset says of its end when *finalized* is its last epoch."""
    slot = (finalized + 1) * chain.slots_per_epoch - 1
    return {"finalized_epoch": finalized, "latest_epoch": finalized, "latest_slot": slot}
