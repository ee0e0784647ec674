"""The folder of a store: where it is, and how it is created, opened and set aside.

A store that cannot be used stops no load: there is one warning, and the rows are requested.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
import warnings
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

import platformdirs

from beaconframes.calendar import MAINNET
from beaconframes.dataset import Dataset, ledger
from beaconframes.endpoint.chain_metadata import describe_chain, parse_chain
from beaconframes.errors import DatasetBusy, DatasetError, StoreUnavailable, find_caller_level

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from beaconframes.calendar import Chain

log = logging.getLogger("beaconframes.store")

CHOOSE_FOLDER = "Choose another folder: store=..."

P = ParamSpec("P")
T = TypeVar("T")


def store_folder(root: Path | None, url: str, chain: Chain) -> Path:
    """Return the folder for rows of *chain* from the service at *url*.

    A *root* that is a dataset is returned as it is.
    """
    if root is not None and ledger.exists(root):
        return root
    folder = platformdirs.user_data_path("beaconframes") / "store" if root is None else root
    address = urlsplit(url)
    readable = re.sub(r"[^a-z0-9.]+", "-", f"{address.netloc}{address.path}-{chain.name}".lower())
    identity = f"{url.lower()} {sorted((n, str(v)) for n, v in vars(chain).items())}"
    return folder / f"{readable[:60]}-{blake2b(identity.encode(), digest_size=4).hexdigest()}"


def find_stored_chain(store: Path | bool | None, url: str) -> Chain | None:
    """Return the chain of the rows from *url* in the folder *store*, or of *store* as a dataset."""
    root = None if isinstance(store, bool) else store
    any_chain = store_folder(root, url, MAINNET)
    name = any_chain.name.rpartition(MAINNET.name)[0]
    folders = [any_chain] if any_chain == root else sorted(any_chain.parent.glob(f"{name}*"))
    for folder in folders:
        with suppress(DatasetError, KeyError, TypeError, ValueError):
            meta = Dataset.open(folder).meta
            if folder == root or str(meta["service"]).lower() == url.lower():
                return parse_chain(meta["chain"])
    return None


class StoreFolder:
    """A dataset that is created when it is first needed; safe for threads and processes."""

    def __init__(
        self,
        path: Path,
        *,
        url: str,
        chain: Chain,
        simulated: bool = False,
        limit: int | None = None,
    ) -> None:
        """Name the folder *path* for rows of *chain* from *url*; nothing is opened yet.

        A size above *limit* bytes is one warning.
        """
        self.path = path
        self.limit = limit
        self._chain = chain
        self._meta = {"service": url, "simulated": simulated, "chain": describe_chain(chain)}
        self._dataset: Dataset | None = None
        self._finalized = -1
        self._has_warned = self._has_warned_of_size = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def dataset(self) -> Dataset | None:
        """Return the dataset, if it exists."""
        with self._lock:
            if not ledger.exists(self.path):
                # The folder may have been deleted since it was opened.
                self._dataset = None
            elif self._dataset is None:
                self._open()
            return self._dataset

    def _open(self) -> None:
        try:
            dataset = Dataset.open(self.path)
            if not dataset.has_intact_ledger:
                raise DatasetError(f"the ledger of {self.path} is damaged")
            meta = dataset.meta
        except DatasetBusy as error:
            self.warn_unusable(error)
            return
        except DatasetError as error:
            self._rename_unreadable(error)
            return
        if meta.get("chain", self._meta["chain"]) != self._meta["chain"]:
            reason = f"{self.path} has rows of another chain"
            self.warn_unusable(DatasetError(reason, hint=CHOOSE_FOLDER))
            return
        self._dataset = dataset
        self._finalized = max(self._finalized, int(meta.get("finalized_epoch", -1)))

    def _rename_unreadable(self, error: DatasetError) -> None:
        """Rename an unreadable dataset, so that a new one can be created."""
        renamed = self.path.with_name(f"{self.path.name}.unreadable-{secrets.token_hex(4)}")
        try:
            self.path.rename(renamed)
        except OSError:
            self.warn_unusable(error)
        else:
            reason = f"{error.message}; it was renamed to {renamed}, and a new store is created"
            renaming = DatasetError(reason, hint="Delete the renamed folder")
            self.warn_unusable(renaming, state="the store was replaced")

    def _create(self) -> None:
        """Create the dataset unless it exists; other processes never see an unfinished one."""
        with self._lock:
            if self._dataset is not None:
                return
            # Files before the ledger: another process may rename a complete folder in between.
            has_files = self.has_files()
            if not ledger.exists(self.path):
                if has_files:
                    # The segments are useless without their ledger.
                    self._rename_unreadable(DatasetError(f"{self.path} has no ledger"))
                draft = self.path.with_name(f".{self.path.name}-{secrets.token_hex(4)}")
                try:
                    draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    Dataset.create(draft, meta=self._meta, private=True)
                    draft.rename(self.path)
                except (OSError, DatasetError) as error:
                    shutil.rmtree(draft, ignore_errors=True)
                    # Another process may have created it at the same time.
                    if not ledger.exists(self.path):
                        self.warn_unusable(DatasetError(str(error), hint=CHOOSE_FOLDER))
                        return
            self._open()

    def has_files(self) -> bool:
        """Return whether the folder exists and is not empty."""
        with suppress(OSError):
            return any(self.path.iterdir())
        return False

    def _try(
        self, method: Callable[Concatenate[Dataset, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Call a *method* of the dataset; return None, with one warning, if it cannot be used."""
        dataset = self.dataset
        if dataset is None:
            return None
        try:
            return method(dataset, *args, **kwargs)
        except DatasetError as error:
            if dataset.has_intact_ledger:
                self.warn_unusable(error)
            else:
                with self._lock:
                    self._dataset = None
                    self._rename_unreadable(error)
        except OSError as error:
            self.warn_unusable(DatasetError(f"{self.path}: {error.strerror or error}"))
        return None

    def _check_size(self) -> None:
        """Warn once if the store is larger than its limit."""
        if self.limit is None or self._has_warned_of_size:
            return
        size = sum(table.bytes for table in (self._try(Dataset.tables) or {}).values())
        if size > self.limit:
            self._has_warned_of_size = True
            warning = StoreUnavailable(
                f"the store has {size:,} bytes, more than its limit of {self.limit:,}",
                hint=f"Remove what was stored first: bf.store().prune(to={self.limit})",
            )
            warnings.warn(warning, stacklevel=find_caller_level())

    def warn_unusable(self, error: DatasetError, *, state: str = "the store is not used") -> None:
        """Warn once about the *state* of the store because of *error*; log every later error."""
        if self._has_warned:
            log.debug("%s: %s", state, error.message)
            return
        self._has_warned = True
        warning = StoreUnavailable(f"{state}: {error.message}", hint=error.hint)
        warnings.warn(warning, stacklevel=find_caller_level())
