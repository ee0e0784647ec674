"""Exports to object stores: written on this machine, then uploaded, the manifest last.

The manifest is replaced only if no other export has replaced it. So readers never see an unfinished
dataset, and two exports never mix. After a failed upload, the same call writes the same files
again, and uploads those that the store does not have.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaconframes.dataset import published
from beaconframes.dataset.segments import digest
from beaconframes.errors import DatasetError
from beaconframes.exports.atomic_files import clear_folder, translate_errors
from beaconframes.exports.metadata import DOCUMENTS, HISTORY
from beaconframes.exports.work_folder import WORK_FOLDER, IncompatibleExport, open_work_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beaconframes.exports.remote_target import RemoteTarget
    from beaconframes.exports.result import Export

UPLOADED = "uploaded.txt"
"""The SHA-256 of the files of uploads that failed: a later one replaces them."""


def export_to_store(
    remote: RemoteTarget, write: Callable[[Path], Export], *, overwrite: bool
) -> Export:
    """Let *write* export to the staging folder, and upload the result.

    An existing object is replaced only with *overwrite*.
    """
    staging = remote.staging_folder
    with translate_errors(staging, "cannot be created"):
        staging.mkdir(parents=True, exist_ok=True)
    with open_work_folder(staging, staging / WORK_FOLDER, remote.url):
        # Files of an upload that failed were written for another manifest.
        clear_folder(staging, keep=(WORK_FOLDER, UPLOADED))
        if remote.file_name:
            export = _export_file(remote, staging / remote.file_name, write, overwrite=overwrite)
        else:
            export = _export_dataset(remote, staging, write)
        # The upload is complete, so staged files may stay if they cannot be removed.
        with suppress(DatasetError):
            clear_folder(staging, keep=(WORK_FOLDER,))
    # Another export that waited for the lock may use the folder already.
    with suppress(OSError):
        staging.rmdir()
    return export.with_path(remote.url)


def _export_file(
    remote: RemoteTarget, path: Path, write: Callable[[Path], Export], *, overwrite: bool
) -> Export:
    import obstore

    if not overwrite:
        with _translate_store_errors(remote), suppress(FileNotFoundError):
            obstore.head(remote.store, path.name)
            raise DatasetError(
                f"{remote.url} already exists", hint="Give overwrite=True to replace it"
            )
    export = write(path)
    with _translate_store_errors(remote):
        _upload_file(remote, path, path.name)
    return export


def _export_dataset(remote: RemoteTarget, staging: Path, write: Callable[[Path], Export]) -> Export:
    """Let *write* add to the dataset in the store, and upload what is new."""
    folder = staging / "dataset"
    folder.mkdir()
    with _translate_store_errors(remote):
        version, old = download_dataset(remote, folder)
    try:
        export = write(folder)
    except IncompatibleExport as error:
        # The message must state the address, because users do not know the staging folder.
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

    try:
        response = obstore.get(remote.store, published.NAME)
    except FileNotFoundError:
        return {}, set()
    (folder / published.NAME).write_bytes(response.bytes())
    manifest = published.read_manifest(folder)
    segments = published.list_segments(manifest, Path(published.NAME))
    paths = [segment.path for segment in segments]
    for name in (*paths, *DOCUMENTS, HISTORY):
        with suppress(FileNotFoundError):
            chunks = obstore.get(remote.store, name)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("wb") as file:
                file.writelines(chunks)
    version = {name: response.meta.get(name) for name in ("e_tag", "version")}
    known = {name: value for name, value in version.items() if value is not None}
    return known, {published.NAME, *DOCUMENTS, *paths}


def upload_dataset(
    remote: RemoteTarget, folder: Path, version: dict[str, Any], old: set[str]
) -> None:
    """Upload what is new or changed, then the manifest, which must replace that of *version*.

    An object is replaced only if it is one of the *old* files of the dataset, or one of an upload
    that failed.
    """
    import obstore
    from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

    manifest = published.read_manifest(folder)
    listed = published.list_segments(manifest, folder / published.NAME)
    paths = [segment.path for segment in listed if segment.path not in old]
    digests = {name: digest(folder / name) for name in (*paths, *DOCUMENTS)}
    record = folder.with_name(UPLOADED)
    uploaded = record.read_text().split() if record.is_file() else []
    record.write_text("\n".join([*uploaded, *digests.values()]))
    for name, sha256 in digests.items():
        found = None if name in old else hash_object(remote, name)
        if found is None or (found in uploaded and found != sha256):
            _upload_file(remote, folder / name, name)
        elif found != sha256:
            raise DatasetError(
                f"{remote.address}/{name} exists and is not a file of this export",
                hint="Move it away, or export to another address",
            )
    # Without a change, there is no new entry, and no file if the remote one was deleted.
    if (folder / HISTORY).exists():
        _upload_file(remote, folder / HISTORY, HISTORY)
    data = (folder / published.NAME).read_bytes()
    # Without a version, the store cannot detect that the manifest has changed.
    mode: Any = (version or "overwrite") if old else "create"
    try:
        obstore.put(remote.store, published.NAME, data, mode=mode)
    except (NotSupportedError, NotImplementedError):
        # A local folder, and some other stores, do not support conditional writes.
        obstore.put(remote.store, published.NAME, data)
    except (AlreadyExistsError, PreconditionError) as error:
        if hash_object(remote, published.NAME) is None:
            raise DatasetError(
                f"{remote.address}/{published.NAME} is a folder",
                hint="Move it away, or export to another address",
            ) from error
        raise DatasetError(
            f"another export to {remote.address} has finished during this one",
            hint="Run the export again: it adds to the rows of the other one",
        ) from error


def hash_object(remote: RemoteTarget, name: str) -> str | None:
    """Return the SHA-256 of an object; None if there is none."""
    import obstore

    sha256 = hashlib.sha256()
    with suppress(FileNotFoundError):
        for chunk in obstore.get(remote.store, name):
            sha256.update(chunk)
        return sha256.hexdigest()
    return None


def _upload_file(remote: RemoteTarget, path: Path, name: str) -> None:
    import obstore

    obstore.put(remote.store, name, path)


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
