"""The sample dataset, and simulations that are stored for later processes."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from beaconframes.dataset import Dataset, ledger
from beaconframes.errors import StoreUnavailable, find_caller_level
from beaconframes.simulator.simulation import simulate
from beaconframes.v1 import ENDPOINTS

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from beaconframes.schema import Table

_PACKAGE: Final = Path(__file__).parent.parent
_SOURCES_OF_ROWS: Final = (
    "simulator/**/*.py",
    "derive/**/*.py",
    "consensus/**/*.py",
    "calendar.py",
    "v1/_*.py",
)
"""Sources that determine the rows of a simulation, beside the declarations of the tables."""
_SOURCES_OF_FILES: Final = ("dataset/**/*.py",)
"""Sources that determine how these rows are stored."""

SAMPLE: Final[dict[str, Any]] = {"validators": 1000, "epochs": 1575, "seed": 1, "history_days": 365}
"""The arguments of the simulation in ``data/sample``; ``data/make.py`` makes it again."""

SAMPLE_FOLDERS: Final = (_PACKAGE / "data" / "sample", _PACKAGE.parents[1] / "data" / "sample")
"""Where the sample is: in an installed package, and in the repository."""

SAMPLE_VARIABLE: Final = "BEACONFRAMES_SAMPLE"
"""The environment variable with the folder of another sample."""

LIVE_SAMPLE: Final[dict[str, Any]] = {
    "validators": 400,
    "epochs": 1125,
    "seed": 1,
    "history_days": 365,
}
_locks: dict[Path, int] = {}
"""File descriptors of the simulations in use, each locked until this process ends."""


@cache
def fingerprint() -> str:
    """Return a hash of what determines the rows of a simulation, and the files that hold them."""
    return _hash_sources(*_SOURCES_OF_ROWS, *_SOURCES_OF_FILES)


def fingerprint_rows() -> str:
    """Return a hash of what determines the rows of a simulation, which the sample states."""
    return _hash_sources(*_SOURCES_OF_ROWS)


def _hash_sources(*patterns: str) -> str:
    """Return a hash of sources of the package, and of all column declarations of V1."""
    content = blake2b(digest_size=8)
    for pattern in patterns:
        for file in sorted(_PACKAGE.glob(pattern)):
            content.update(file.relative_to(_PACKAGE).as_posix().encode())
            content.update(file.read_bytes())
    tables = {endpoint.table for endpoint in ENDPOINTS}
    for table in sorted(tables, key=lambda table: table.table_name):
        content.update(_format_declaration(table).encode())
    return content.hexdigest()


def _format_declaration(table: type[Table]) -> str:
    """Return the names, types and keys of a table's columns as text."""
    columns = (
        f"{column.name} {column.dtype} {column.key} {column.nullable} {column.default}"
        for column in table.columns
    )
    return "\n".join((table.table_name, *columns, ""))


def sample_arguments(*, live: bool = False) -> dict[str, Any]:
    """Return the arguments of the simulation of the sample dataset.

    The *live* sample has the epoch numbers of mainnet, and passes through the present time: from
    two days ago to two days ahead.
    """
    if not live:
        return SAMPLE
    # The chain ends at midnight, so that all processes of a day use the same one.
    ends = datetime.combine(datetime.now(UTC).date() + timedelta(days=3), time(), UTC)
    return {**LIVE_SAMPLE, "ends": ends}


def open_sample(
    *, live: bool = False, validators: int | None = None, epochs: int | None = None
) -> Dataset:
    """Return the sample dataset: the one of the package, or of ``BEACONFRAMES_SAMPLE``.

    The *live* one is simulated each day. With a number of *validators* or *epochs* a chain of this
    size is simulated on first use.
    """
    size = {"validators": validators, "epochs": epochs}
    chosen = {name: number for name, number in size.items() if number is not None}
    if not live and not chosen and (found := _find_sample()) is not None:
        sample = Dataset.open(found)
        if found not in SAMPLE_FOLDERS:
            sample.check_files()
        return sample
    folder, name = platformdirs.user_cache_path("beaconframes"), "live" if live else "sample"
    name = "-".join([name, *(f"{number}-{unit}" for unit, number in chosen.items())])
    return open_or_simulate(folder, name, **sample_arguments(live=live) | chosen)


def _find_sample() -> Path | None:
    """Return the folder of the sample, None if neither the environment nor the package has one."""
    if folder := os.environ.get(SAMPLE_VARIABLE):
        return Path(folder)
    return next((one for one in SAMPLE_FOLDERS if (one / ledger.NAME).is_file()), None)


def open_or_simulate(folder: Path, name: str, **arguments: Any) -> Dataset:
    """Return the simulation called *name* that is stored in *folder*, simulating it on first use.

    It is stored under a hash of the arguments and of the simulator's fingerprint. When it is
    simulated, simulations of the same name under other hashes are removed, unless a process uses
    them. If it cannot be stored, it is simulated in a temporary folder.
    """
    path = _build_path(folder, name, arguments)
    try:
        while not _lock_until_exit(path):
            folder.mkdir(parents=True, exist_ok=True)
            _simulate_into(path, arguments)
            _remove_unused(folder, f"{name}-*", path)
    except OSError as error:
        warning = StoreUnavailable(
            f"the simulated chain cannot be stored: {error.filename}: {error.strerror}",
            hint="Make its folder writable; until then, each process simulates the chain",
        )
        warnings.warn(warning, stacklevel=find_caller_level())
        temporary = tempfile.TemporaryDirectory(prefix="beaconframes-")
        atexit.register(temporary.cleanup)
        return simulate(Path(temporary.name, name), **arguments)
    return Dataset.open(path)


def _build_path(folder: Path, name: str, arguments: dict[str, Any]) -> Path:
    content = f"{fingerprint()} {sorted(arguments.items())}"
    return folder / f"{name}-{blake2b(content.encode(), digest_size=8).hexdigest()}"


def _simulate_into(path: Path, arguments: dict[str, Any]) -> None:
    """Simulate into a draft folder, then rename it to *path*."""
    draft = Path(tempfile.mkdtemp(prefix=f"{path.name}-", dir=path.parent))
    lock = _lock(draft)
    try:
        simulate(draft / "data", **arguments)
        try:
            (draft / "data").rename(path)
        except OSError:
            # Another process has stored the same simulation.
            if not path.exists():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _remove_unused(folder: Path, pattern: str, current: Path) -> None:
    """Remove the simulations that match *pattern*, except *current* and those in use."""
    for other in folder.glob(pattern):
        if other == current or other.is_symlink() or not other.is_dir():
            continue
        with suppress(OSError):
            lock = _lock(other, exclusive=True)
            if lock is None:
                continue
            try:
                # Renamed first, so that no process opens a folder that is partly removed.
                removed = Path(tempfile.mkdtemp(prefix=f"{other.name}-", dir=folder))
                other.rename(removed / "removed")
                shutil.rmtree(removed, ignore_errors=True)
            finally:
                os.close(lock)


def _lock_until_exit(path: Path) -> bool:
    """Protect the folder *path* from removal until this process ends; False if it is missing."""
    while path.exists():
        lock = _locks.pop(path, None) or _lock(path)
        if lock is None:
            break
        # Another process may have removed it before it was locked.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                _locks[path] = lock
                return True
        os.close(lock)
    return path.exists()


def _lock(folder: Path, *, exclusive: bool = False) -> int | None:
    """Lock a folder and return its file descriptor; None if it is missing, and on Windows.

    A shared lock waits for a running removal. An exclusive one raises OSError if the folder is in
    use, or if its file system has no locks.
    """
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    if not exclusive:
        with suppress(OSError):  # without locks on this file system nothing is removed
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
