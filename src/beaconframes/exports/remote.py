"""Object stores: an export is made on this machine, and then put there, the manifest last.

An object is there whole or not at all, and the manifest is replaced only if nobody else has done so
meanwhile: so readers never see half a dataset, and two exports never mix. What is made waits in a
folder of this machine until all of it is there, so that an export that was killed goes on.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import platformdirs

from beaconframes.dataset import published
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.atomic_files import clear, judged
from beaconframes.exports.formats import by_ending
from beaconframes.exports.journal import NAME, IncompatibleExport, working
from beaconframes.exports.targets import checked
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beaconframes.exports.result import Export

_URL = re.compile(r"[a-z][a-z0-9+.\-]*://.*", re.IGNORECASE | re.DOTALL)
_OF_THE_CLIENT = re.compile(
    r"(aws_|azure_|google_)?(allow_http|allow_invalid_certificates|connect_timeout|timeout"
    r"|proxy_url|proxy_ca_certificate|proxy_excludes|http1_only|http2_only|user_agent"
    r"|default_content_type|pool_idle_timeout|pool_max_idle_per_host)",
    re.IGNORECASE,
)
"""What obstore takes apart from the other options, and other libraries beside them."""
_DOCUMENTS = ("README.md", "CITATION.cff", "datapackage.json", "croissant.json", "dictionary.csv")


@dataclass(frozen=True)
class RemoteTarget:
    """A place in an object store: where objects are put, and under which address."""

    store: Any
    address: str
    single: str = ""
    """The name of the object, where only one is made."""
    here: str = ""

    @property
    def goal(self) -> str:
        """Return the address of what is made."""
        return f"{self.address}/{self.single}".rstrip("/")

    @property
    def staging(self) -> Path:
        """Return the folder of this machine where what is put there waits."""
        mark = hashlib.sha256(f"{self.address} {self.single} {self.here}".encode()).hexdigest()[:16]
        return platformdirs.user_cache_path("beaconframes") / "exports" / mark


def remote_of(target: Any, options: Mapping[str, Any] | None) -> RemoteTarget | None:
    """Return the place that *target* is in an object store; None if it is on this machine.

    A target is an address, or a store that obstore made.
    """
    if isinstance(target, str) and _URL.fullmatch(target):
        return _by_address(target, options)
    if type(target).__module__.partition(".")[0] != "obstore":
        return None
    # A store in memory is another one each time, though all of them are called alike.
    said = repr(target)
    address = type(target).__name__ if said.startswith("<") else visible(said)
    return RemoteTarget(target, address, here=f"{os.getpid()}-{id(target)}")


def _by_address(address: str, options: Mapping[str, Any] | None) -> RemoteTarget:
    scheme, _, rest = address.partition("://")
    if not rest.strip("/"):
        raise UsageError(
            f"{visible(address, 60)} names no bucket", hint=f"Give {scheme}://bucket/folder"
        )
    if scheme.lower() == "memory":
        raise UsageError(
            f"what is put at {visible(address, 60)} is gone at once",
            hint="Give the store itself: obstore.store.MemoryStore()",
        )
    checked(rest)
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError:
        raise UsageError(
            f"{scheme}:// needs obstore", hint="pip install 'beaconframes[cloud]'"
        ) from None
    single = "" if address.endswith("/") or not by_ending(rest) else PurePosixPath(rest).name
    folder = address.removesuffix(single).rstrip("/")
    try:
        store = from_url(folder, **opening(options or {}))
    except (BaseError, ValueError, TypeError) as error:
        reason = visible((str(error).splitlines() or [""])[0], 200)
        raise UsageError(f"{scheme}://... is no place to export to: {reason}") from None
    except BaseException as error:
        # Obstore panics at options that it does not expect there.
        if type(error).__name__ != "PanicException":
            raise
        raise UsageError(
            f"{scheme}://... cannot be opened with these storage_options",
            hint="They are those of obstore: region, endpoint, keys, client_options",
        ) from None
    return RemoteTarget(store, folder, single)


def opening(options: object) -> dict[str, Any]:
    """Return *options* as obstore takes them: numbers as text, what is of the client apart."""
    of_client = (options.get("client_options") or {}) if isinstance(options, Mapping) else None
    if not isinstance(options, Mapping) or not isinstance(of_client, Mapping):
        raise UsageError(
            "storage_options, and client_options among them, are mappings",
            hint='Give {"region": "...", "endpoint": "...", ...}',
        )
    found: dict[str, Any] = {"client_options": {**of_client}}
    for name, value in options.items():
        given = str(value) if type(value) is int else value
        if known := _OF_THE_CLIENT.fullmatch(name):
            found["client_options"][known[2].lower()] = given
        elif name != "client_options":
            found[name] = given
    return found if found["client_options"] else {**found, "client_options": None}


def to_remote(remote: RemoteTarget, make: Callable[[Path], Export], *, goes_on: bool) -> Export:
    """Let *make* write into a folder, or a file, of this machine, and put the result there.

    Whoever *goes_on* need not make once more what an export before it has made and not sent.
    """
    staging = remote.staging
    with judged(staging, "cannot be made"):
        staging.mkdir(parents=True, exist_ok=True)
    with working(staging, staging / NAME, remote.goal):
        made = made_and_sent(remote, staging, make, goes_on=goes_on)
        # All of it is there by now, whatever stays here.
        with suppress(DatasetError):
            clear(staging, but=(NAME,))
    # Whoever waited may be at work there by now.
    with suppress(OSError):
        staging.rmdir()
    return made.at(remote.goal)


def made_and_sent(
    remote: RemoteTarget, staging: Path, make: Callable[[Path], Export], *, goes_on: bool
) -> Export:
    """Let *make* write into *staging*, and put the result there."""
    if remote.single:
        made = make(staging / remote.single)
        with _judged(remote):
            _put(remote, staging / remote.single, remote.single)
    else:
        folder = staging / "dataset"
        with _judged(remote):
            version = bring(remote, folder, goes_on=goes_on)
        made = made_for(remote, folder, make, fresh=version is None)
        with _judged(remote):
            send(remote, folder, version)
    return made


def made_for(
    remote: RemoteTarget, folder: Path, make: Callable[[Path], Export], *, fresh: bool
) -> Export:
    """Let *make* write into *folder*; what waits there for a *fresh* place need not fit."""
    unsent = fresh and (folder / published.NAME).is_file() and not (folder / NAME).exists()
    try:
        return make(folder)
    except IncompatibleExport as error:
        if not unsent:
            # To whom this is said, the folder means nothing.
            error.message = error.message.replace(str(folder), remote.goal)
            raise
    clear(folder, but=())
    return make(folder)


def bring(remote: RemoteTarget, folder: Path, *, goes_on: bool) -> dict[str, Any] | None:
    """Copy what is published there, and return the version of its manifest; None if there is none.

    What another export has made and not sent stays if this one *goes_on* with it.
    """
    import obstore

    folder.mkdir(parents=True, exist_ok=True)
    if not goes_on:
        clear(folder, but=())
    try:
        found = obstore.get(remote.store, published.NAME)
    except FileNotFoundError:
        return None
    if not (folder / NAME).exists():
        # It was made for another manifest than is there.
        clear(folder, but=())
    text = bytes(found.bytes())
    beside = folder / ".there"
    beside.mkdir(exist_ok=True)
    (beside / published.NAME).write_bytes(text)
    told = published.read_manifest(beside)
    shutil.rmtree(beside)
    for segment in published.list_segments(told, Path(published.NAME)):
        if published.find_damage(segment, folder, thorough=True):
            path = folder / segment.path
            path.parent.mkdir(parents=True, exist_ok=True)
            _get(remote, segment.path, path)
    for name in (*_DOCUMENTS, "history.jsonl"):
        with suppress(FileNotFoundError):
            _get(remote, name, folder / name)
    (folder / published.NAME).write_bytes(text)
    told_by = {name: found.meta.get(name) for name in ("e_tag", "version")}
    return {name: value for name, value in told_by.items() if value is not None}


def send(remote: RemoteTarget, folder: Path, version: dict[str, Any] | None) -> None:
    """Put every file there that is not there yet; the manifest last, over that *version*."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

    told = published.read_manifest(folder)
    named = [s.path for s in published.list_segments(told, folder / published.NAME)]
    for path in named:
        if not _there(remote, folder / path, path):
            _refuse_other(remote, path)
            _put(remote, folder / path, path)
    for name in (*_DOCUMENTS, "history.jsonl"):
        if version is None and not _there(remote, folder / name, name):
            _refuse_other(remote, name, ours="history.jsonl")
        _put(remote, folder / name, name)
    data = (folder / published.NAME).read_bytes()
    # A store that tells no version cannot say that it is another one.
    mode: Any = "create" if version is None else version or "overwrite"
    try:
        obstore.put(remote.store, published.NAME, data, mode=mode)
    except (NotSupportedError, NotImplementedError):
        # A folder as a store, and some others, cannot compare first.
        obstore.put(remote.store, published.NAME, data)
    except (AlreadyExistsError, PreconditionError) as error:
        if version is None:
            _refuse_folder(remote)
        raise DatasetError(
            f"{remote.address} was exported to by somebody else meanwhile",
            hint="Export once more: it adds to what they published",
        ) from error


def _there(remote: RemoteTarget, path: Path, name: str) -> bool:
    """Tell whether an object is what *path* is."""
    import obstore

    try:
        if obstore.head(remote.store, name)["size"] != path.stat().st_size:
            return False
        found = hashlib.sha256()
        for chunk in obstore.get(remote.store, name):
            found.update(chunk)
    except FileNotFoundError:
        return False
    with path.open("rb") as file:
        return found.digest() == hashlib.file_digest(file, "sha256").digest()


def _refuse_other(remote: RemoteTarget, name: str, ours: str = "") -> None:
    """Raise a DatasetError if an object that no manifest names has that name."""
    import obstore

    with suppress(FileNotFoundError):
        obstore.head(remote.store, name)
        if name != ours:
            raise DatasetError(
                f"{remote.address}/{name} is in the way: it is not a file of this export",
                hint="Move it away, or export to another place",
            )


def _refuse_folder(remote: RemoteTarget) -> None:
    """Raise a DatasetError if a folder has the name of the manifest."""
    import obstore

    try:
        obstore.head(remote.store, published.NAME)
    except FileNotFoundError:
        raise DatasetError(
            f"{remote.address}/{published.NAME} is in the way: it is a folder",
            hint="Move it away, or export to another place",
        ) from None


def _put(remote: RemoteTarget, path: Path, name: str) -> None:
    import obstore

    obstore.put(remote.store, name, path)


def _get(remote: RemoteTarget, name: str, path: Path) -> None:
    import obstore

    with path.open("wb") as file:
        for chunk in obstore.get(remote.store, name):
            file.write(chunk)


@contextmanager
def _judged(remote: RemoteTarget) -> Iterator[None]:
    """Turn what the store raises into a DatasetError; it may quote a key, so not in its words."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:
        kind = type(error).__name__
        raise DatasetError(
            f"{remote.address} cannot be used: {kind}",
            hint="Check the address and what storage_options say. The same call goes on",
        ) from None
