"""Exports to object stores: written into a temporary folder of this machine, then uploaded.

The manifest follows the data files, and replaces only the manifest that this export has extended.
So readers never see an unfinished dataset, and two exports never mix. After a failed upload, the
same call writes the same files again, and uploads those that the store does not have.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from beaconframes.dataset import published
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError, UsageError
from beaconframes.exports.atomic_files import translate_errors
from beaconframes.exports.metadata import DOCUMENTS, HISTORY
from beaconframes.exports.targets import check_path, find_file_format
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from beaconframes.exports.result import Export

_URL = re.compile(r"[a-z][a-z0-9+.\-]*://.*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class RemoteTarget:
    """A folder of an object store, or one object in it."""

    store: Any
    address: str
    file_name: str = ""
    """The name of the object, if the target is one object."""

    @property
    def url(self) -> str:
        """Return the address of the folder or the object."""
        return f"{self.address}/{self.file_name}".rstrip("/")


def parse_remote_target(target: Any, options: Mapping[str, Any] | None) -> RemoteTarget | None:
    """Return *target* as a target in an object store; None if it is a local path.

    A target is an address, which is opened with *options*, or a store object of obstore.
    """
    if isinstance(target, str) and _URL.fullmatch(target):
        return _open_address(target, options or {})
    if type(target).__module__.partition(".")[0] != "obstore":
        return None
    # All stores in memory have the same representation, without an address.
    text = repr(target)
    return RemoteTarget(target, type(target).__name__ if text.startswith("<") else visible(text))


def _open_address(address: str, options: Mapping[str, Any]) -> RemoteTarget:
    scheme, _, rest = address.partition("://")
    if not rest.strip("/"):
        raise UsageError(
            f"{visible(address, 60)} has no bucket", hint=f"Give {scheme}://bucket/folder"
        )
    if scheme.lower() == "memory":
        raise UsageError(
            f"{visible(address, 60)} cannot be opened again, so its rows would be lost",
            hint="Give the store itself: obstore.store.MemoryStore()",
        )
    check_path(rest)
    try:
        from obstore.store import from_url
    except ModuleNotFoundError:
        raise UsageError(
            f"{scheme}:// needs the package obstore", hint="pip install 'beaconframes[cloud]'"
        ) from None
    is_folder = address.endswith("/") or not find_file_format(rest)
    file_name = "" if is_folder else PurePosixPath(rest).name
    folder = address.removesuffix(file_name).rstrip("/")
    try:
        store = from_url(folder, **options)
    except BaseException as error:
        # Obstore panics at some unknown options, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        # The text may contain a key.
        raise UsageError(
            f"{scheme}://... cannot be opened with these storage_options: {type(error).__name__}",
            hint="Give the options of obstore: region, endpoint, keys, client_options",
        ) from None
    return RemoteTarget(store, folder, file_name)


def export_to_store(
    remote: RemoteTarget, write: Callable[[Path], Export], *, overwrite: bool
) -> Export:
    """Let *write* export to a temporary folder, and upload the result.

    An existing object is replaced only with *overwrite*.
    """
    with (
        translate_errors(Path("the temporary folder")),
        TemporaryDirectory(prefix="beaconframes-") as name,
    ):
        run = _export_file if remote.file_name else _export_dataset
        return run(remote, Path(name), write, overwrite=overwrite).with_path(remote.url)


def _export_file(
    remote: RemoteTarget, folder: Path, write: Callable[[Path], Export], *, overwrite: bool
) -> Export:
    import obstore

    if not overwrite:
        with _translate_store_errors(remote), suppress(FileNotFoundError):
            obstore.head(remote.store, remote.file_name)
            raise DatasetError(
                f"{remote.url} already exists", hint="Give overwrite=True to replace it"
            )
    export = write(folder / remote.file_name)
    with _translate_store_errors(remote):
        _upload_file(remote, folder, remote.file_name, "overwrite")
    return export


def _export_dataset(
    remote: RemoteTarget, folder: Path, write: Callable[[Path], Export], **_: bool
) -> Export:
    """Let *write* add to the dataset in the store, and upload what is new."""
    with _translate_store_errors(remote):
        version, old = download_dataset(remote, folder)
    try:
        export = write(folder)
    except DatasetError as error:
        # The message must state the address, because users do not know the temporary folder. An
        # error of the system, such as a full disk, is one of this folder.
        if error.__cause__ is None:
            error.message = error.message.replace(str(folder), remote.url)
        raise
    with _translate_store_errors(remote):
        upload_dataset(remote, folder, version, old)
    return export


def download_dataset(remote: RemoteTarget, folder: Path) -> tuple[dict[str, Any], set[str]]:
    """Download the dataset into *folder*; return the version of its manifest, and its files.

    Without a dataset, both are empty.
    """
    import obstore

    version, paths = _download_manifest(remote, folder)
    if paths is None:
        return {}, set()
    for name in (*paths, *DOCUMENTS, HISTORY):
        with suppress(FileNotFoundError):
            chunks = obstore.get(remote.store, name)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("wb") as file:
                file.writelines(chunks)
    return version, {published.NAME, *DOCUMENTS, *paths}


def _download_manifest(
    remote: RemoteTarget, folder: Path
) -> tuple[dict[str, Any], list[str] | None]:
    """Download the manifest; return its version, and the data files in it. Without one: None."""
    import obstore

    try:
        response = obstore.get(remote.store, published.NAME)
    except FileNotFoundError:
        return {}, None
    (folder / published.NAME).write_bytes(response.bytes())
    segments = published.list_segments(published.read_manifest(folder), Path(published.NAME))
    version = {name: response.meta.get(name) for name in ("e_tag", "version")}
    known = {name: value for name, value in version.items() if value is not None}
    return known, [segment.path for segment in segments]


def upload_dataset(
    remote: RemoteTarget, folder: Path, version: dict[str, Any], old: set[str]
) -> None:
    """Upload new data files, then the manifest, which must replace that of *version*.

    The documents come last: where they are without a manifest, they are not of an export. Objects
    other than the *old* ones of the dataset are not replaced.
    """
    from obstore.exceptions import AlreadyExistsError, PreconditionError

    manifest = published.read_manifest(folder)
    segments = published.list_segments(manifest, folder / published.NAME)
    for name in {*DOCUMENTS} - old:
        check_object(remote, folder, name)
    created: list[str] = []
    try:
        for segment in segments:
            if segment.path not in old and check_object(remote, folder, segment.path):
                _upload_file(remote, folder, segment.path, "create")
                created.append(segment.path)
    except BaseException:
        _remove_unpublished(remote, folder, created)
        raise
    # Without a version, the store cannot detect that the manifest has changed.
    mode: Any = (version or "overwrite") if old else "create"
    try:
        _upload_file(remote, folder, published.NAME, mode)
    except (AlreadyExistsError, PreconditionError) as error:
        _remove_unpublished(remote, folder, created)
        raise DatasetError(
            f"another export to {remote.address} has finished during this one",
            hint="Run the export again: it adds to the rows of the other one",
        ) from error
    for name in (*DOCUMENTS, HISTORY):
        # Without a change, there is no new entry, and no file if the remote one was deleted.
        if (folder / name).exists():
            _upload_file(remote, folder, name, "overwrite")


def check_object(remote: RemoteTarget, folder: Path, name: str) -> bool:
    """Return whether an object is missing; raise a DatasetError if it has another content."""
    import obstore

    sha256 = hashlib.sha256()
    try:
        for chunk in obstore.get(remote.store, name):
            sha256.update(chunk)
    except FileNotFoundError:
        return True
    if sha256.hexdigest() != digest(folder / name):
        raise DatasetError(
            f"{remote.address}/{name} exists and is not a file of this export",
            hint="Move it away, or export to another address",
        )
    return False


def _remove_unpublished(remote: RemoteTarget, folder: Path, created: list[str]) -> None:
    """Remove the *created* objects: the next export may have more rows in the same files.

    Another export may have found the same objects, and has published them.
    """
    import obstore

    with suppress(Exception):
        _, paths = _download_manifest(remote, folder)
        obstore.delete(remote.store, [name for name in created if name not in (paths or ())])


def _upload_file(remote: RemoteTarget, folder: Path, name: str, mode: Any) -> None:
    import obstore
    from obstore.exceptions import NotSupportedError

    try:
        obstore.put(remote.store, name, folder / name, mode=mode)
    except (NotSupportedError, NotImplementedError):
        # A local folder, and some other stores, do not support conditional writes.
        obstore.put(remote.store, name, folder / name)


@contextmanager
def _translate_store_errors(remote: RemoteTarget) -> Iterator[None]:
    """Turn errors of the store into a DatasetError without their text, which may contain a key."""
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:
        raise DatasetError(
            f"{remote.address} cannot be used: {type(error).__name__}",
            hint="Check the address and storage_options, and run the same call again to resume",
        ) from None
