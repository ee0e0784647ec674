"""Exports to object stores: written on this machine, then uploaded, the manifest last.

An object is complete or does not exist, and the manifest is replaced only if no other export has
replaced it. So readers never see an unfinished dataset, and two exports never mix. The files stay
in a staging folder of this machine until the upload is complete, so that a killed export can
resume.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaconframes.dataset import published
from beaconframes.errors import DatasetError
from beaconframes.exports.atomic_files import clear_folder, translate_errors
from beaconframes.exports.journal import WORK_FOLDER, IncompatibleExport, open_journal
from beaconframes.exports.metadata import DOCUMENTS, HISTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beaconframes.exports.remote_target import RemoteTarget
    from beaconframes.exports.result import Export


def export_to_store(
    remote: RemoteTarget, write: Callable[[Path], Export], *, can_resume: bool, overwrite: bool
) -> Export:
    """Let *write* export to the staging folder, and upload the result.

    An export that *can_resume* reuses the staged files of an earlier one. An existing object is
    replaced only with *overwrite*.
    """
    staging = remote.staging_folder
    with translate_errors(staging, "cannot be created"):
        staging.mkdir(parents=True, exist_ok=True)
    with open_journal(staging, staging / WORK_FOLDER, remote.url):
        if remote.file_name and not overwrite:
            with _translate_store_errors(remote):
                exists = _has_object(remote, remote.file_name)
            if exists:
                raise DatasetError(
                    f"{remote.url} already exists", hint="Give overwrite=True to replace it"
                )
        export = _write_and_upload(remote, staging, write, can_resume=can_resume)
        # The upload is complete, so staged files may stay if they cannot be removed.
        with suppress(DatasetError):
            clear_folder(staging, keep=(WORK_FOLDER,))
    # Another export that waited for the lock may use the folder already.
    with suppress(OSError):
        staging.rmdir()
    return export.with_path(remote.url)


def _write_and_upload(
    remote: RemoteTarget, staging: Path, write: Callable[[Path], Export], *, can_resume: bool
) -> Export:
    """Let *write* export to *staging*, and upload the file or the dataset."""
    if remote.file_name:
        export = write(staging / remote.file_name)
        with _translate_store_errors(remote):
            _upload_file(remote, staging / remote.file_name, remote.file_name)
        return export
    folder = staging / "dataset"
    with _translate_store_errors(remote):
        version = download_dataset(remote, folder, can_resume=can_resume)
    export = _write_dataset(remote, folder, write, is_new=version is None)
    with _translate_store_errors(remote):
        upload_dataset(remote, folder, version)
    return export


def _write_dataset(
    remote: RemoteTarget, folder: Path, write: Callable[[Path], Export], *, is_new: bool
) -> Export:
    """Let *write* export to *folder*; for a new dataset, drop incompatible staged files."""
    was_not_uploaded = (
        is_new and (folder / published.NAME).is_file() and not (folder / WORK_FOLDER).exists()
    )
    try:
        return write(folder)
    except IncompatibleExport as error:
        if not was_not_uploaded:
            # The message must state the address, because users do not know the staging folder.
            error.message = error.message.replace(str(folder), remote.url)
            raise
    clear_folder(folder, keep=())
    return write(folder)


def download_dataset(
    remote: RemoteTarget, folder: Path, *, can_resume: bool
) -> dict[str, Any] | None:
    """Download the dataset into *folder*, and return the version of its manifest.

    Returns None if there is no dataset. Staged files of an earlier export stay if this one
    *can_resume* it.
    """
    import obstore

    folder.mkdir(parents=True, exist_ok=True)
    if not can_resume:
        clear_folder(folder, keep=())
    try:
        response = obstore.get(remote.store, published.NAME)
    except FileNotFoundError:
        return None
    if not (folder / WORK_FOLDER).exists():
        # The staged files were written for another manifest.
        clear_folder(folder, keep=())
    data = bytes(response.bytes())
    checked = folder / ".downloaded"
    checked.mkdir(exist_ok=True)
    (checked / published.NAME).write_bytes(data)
    manifest = published.read_manifest(checked)
    shutil.rmtree(checked)
    for segment in published.list_segments(manifest, Path(published.NAME)):
        if published.find_damage(segment, folder, thorough=True):
            path = folder / segment.path
            path.parent.mkdir(parents=True, exist_ok=True)
            _download_file(remote, segment.path, path)
    for name in (*DOCUMENTS, HISTORY):
        with suppress(FileNotFoundError):
            _download_file(remote, name, folder / name)
    (folder / published.NAME).write_bytes(data)
    version = {name: response.meta.get(name) for name in ("e_tag", "version")}
    return {name: value for name, value in version.items() if value is not None}


def upload_dataset(remote: RemoteTarget, folder: Path, version: dict[str, Any] | None) -> None:
    """Upload every new file, then the manifest, which must replace the manifest of *version*."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

    manifest = published.read_manifest(folder)
    paths = [s.path for s in published.list_segments(manifest, folder / published.NAME)]
    for path in paths:
        if not _is_uploaded(remote, folder / path, path):
            _check_no_object(remote, path)
            _upload_file(remote, folder / path, path)
    for name in (*DOCUMENTS, HISTORY):
        if version is None and name != HISTORY and not _is_uploaded(remote, folder / name, name):
            _check_no_object(remote, name)
        _upload_file(remote, folder / name, name)
    data = (folder / published.NAME).read_bytes()
    # Without a version, the store cannot detect that the manifest has changed.
    mode: Any = "create" if version is None else version or "overwrite"
    try:
        obstore.put(remote.store, published.NAME, data, mode=mode)
    except (NotSupportedError, NotImplementedError):
        # A local folder, and some other stores, do not support conditional writes.
        obstore.put(remote.store, published.NAME, data)
    except (AlreadyExistsError, PreconditionError) as error:
        if version is None:
            _check_no_folder(remote)
        raise DatasetError(
            f"another export to {remote.address} has finished during this one",
            hint="Run the export again: it adds to the rows of the other one",
        ) from error


def _is_uploaded(remote: RemoteTarget, path: Path, name: str) -> bool:
    """Return whether an object has the content of a file."""
    import obstore

    try:
        if obstore.head(remote.store, name)["size"] != path.stat().st_size:
            return False
        digest = hashlib.sha256()
        for chunk in obstore.get(remote.store, name):
            digest.update(chunk)
    except FileNotFoundError:
        return False
    with path.open("rb") as file:
        return digest.digest() == hashlib.file_digest(file, "sha256").digest()


def _has_object(remote: RemoteTarget, name: str) -> bool:
    """Return whether there is an object of that name."""
    import obstore

    try:
        obstore.head(remote.store, name)
    except FileNotFoundError:
        return False
    return True


def _check_no_object(remote: RemoteTarget, name: str) -> None:
    """Raise a DatasetError if an object that is not in the manifest has that name."""
    if _has_object(remote, name):
        raise DatasetError(
            f"{remote.address}/{name} exists and is not a file of this export",
            hint="Move it away, or export to another address",
        )


def _check_no_folder(remote: RemoteTarget) -> None:
    """Raise a DatasetError if a folder has the name of the manifest."""
    if not _has_object(remote, published.NAME):
        raise DatasetError(
            f"{remote.address}/{published.NAME} is a folder",
            hint="Move it away, or export to another address",
        )


def _upload_file(remote: RemoteTarget, path: Path, name: str) -> None:
    import obstore

    obstore.put(remote.store, name, path)


def _download_file(remote: RemoteTarget, name: str, path: Path) -> None:
    import obstore

    with path.open("wb") as file:
        for chunk in obstore.get(remote.store, name):
            file.write(chunk)


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
