"""Targets in an object store: their addresses and storage options."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import platformdirs

from beaconframes.errors import UsageError
from beaconframes.exports.targets import check_path, find_file_format
from beaconframes.text import visible

_URL = re.compile(r"[a-z][a-z0-9+.\-]*://.*", re.IGNORECASE | re.DOTALL)
_CLIENT_OPTION = re.compile(
    r"(aws_|azure_|google_)?(allow_http|allow_invalid_certificates|connect_timeout|timeout"
    r"|proxy_url|proxy_ca_certificate|proxy_excludes|http1_only|http2_only|user_agent"
    r"|default_content_type|pool_idle_timeout|pool_max_idle_per_host)",
    re.IGNORECASE,
)
"""Options that obstore expects in `client_options`, and other libraries at the top level."""


@dataclass(frozen=True)
class RemoteTarget:
    """A folder of an object store, or one object in it."""

    store: Any
    address: str
    file_name: str = ""
    """The name of the object, if the target is one object."""
    process: str = ""
    """Distinguishes a store in memory from others with the same address."""

    @property
    def url(self) -> str:
        """Return the address of the folder or the object."""
        return f"{self.address}/{self.file_name}".rstrip("/")

    @property
    def staging_folder(self) -> Path:
        """Return the folder of this machine in which the files are written before the upload."""
        identity = f"{self.address} {self.file_name} {self.process}"
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return platformdirs.user_cache_path("beaconframes") / "exports" / digest


def parse_remote_target(target: Any, options: Mapping[str, Any] | None) -> RemoteTarget | None:
    """Return *target* as a target in an object store; None if it is a local path.

    A target is an address, or a store object of obstore.
    """
    if isinstance(target, str) and _URL.fullmatch(target):
        return _open_address(target, options)
    if type(target).__module__.partition(".")[0] != "obstore":
        return None
    # All stores in memory have the same representation, without an address.
    text = repr(target)
    address = type(target).__name__ if text.startswith("<") else visible(text)
    return RemoteTarget(target, address, process=f"{os.getpid()}-{id(target)}")


def _open_address(address: str, options: Mapping[str, Any] | None) -> RemoteTarget:
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
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError:
        raise UsageError(
            f"{scheme}:// needs the package obstore", hint="pip install 'beaconframes[cloud]'"
        ) from None
    is_folder = address.endswith("/") or not find_file_format(rest)
    file_name = "" if is_folder else PurePosixPath(rest).name
    folder = address.removesuffix(file_name).rstrip("/")
    store_options = build_store_options(options or {})
    try:
        store = from_url(folder, **store_options)
    except (BaseError, ValueError, TypeError) as error:
        reason = visible((str(error).splitlines() or [""])[0], 200)
        raise UsageError(f"{scheme}://... is not a valid target: {reason}") from None
    except BaseException as error:
        # Obstore panics at some unknown options.
        if type(error).__name__ != "PanicException":
            raise
        raise UsageError(
            f"{scheme}://... cannot be opened with these storage_options",
            hint="Give the options of obstore: region, endpoint, keys, client_options",
        ) from None
    return RemoteTarget(store, folder, file_name)


def build_store_options(options: object) -> dict[str, Any]:
    """Return *options* as obstore expects them: numbers as text, client options separately."""
    client_options = (options.get("client_options") or {}) if isinstance(options, Mapping) else None
    if not isinstance(options, Mapping) or not isinstance(client_options, Mapping):
        raise UsageError(
            "storage_options and its client_options must be mappings",
            hint='Give {"region": "...", "endpoint": "...", ...}',
        )
    store_options: dict[str, Any] = {"client_options": {**client_options}}
    for name, value in options.items():
        text = str(value) if type(value) is int else value
        if match := _CLIENT_OPTION.fullmatch(name):
            store_options["client_options"][match[2].lower()] = text
        elif name != "client_options":
            store_options[name] = text
    return (
        store_options
        if store_options["client_options"]
        else {**store_options, "client_options": None}
    )
