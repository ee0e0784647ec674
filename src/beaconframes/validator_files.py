"""Validators in the files that people have: lists, tables, deposit data, keystores, clusters."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from beaconframes.csv_rows import LINE, check_rows, read_csv_rows
from beaconframes.endpoint.identifiers import (
    ADDRESS_HINT,
    ADDRESS_PATTERN,
    LARGEST_INDEX,
    PUBKEY,
    normalize_validator,
    parse_lines,
)
from beaconframes.errors import DatasetError, UsageError, require_package
from beaconframes.frames import first_line
from beaconframes.text import shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

INDEX, KEY, GROUP, NAME = "validator_index", "pubkey", "group", "name"
SCHEMA = pl.Schema({INDEX: pl.Int64, KEY: pl.String, GROUP: pl.String, NAME: pl.String})
TITLES = {
    INDEX: (INDEX, "index"),
    KEY: (KEY, "public_key", "publickey", "validator_pubkey"),
    GROUP: (GROUP,),
    NAME: (NAME,),
}
"""The columns of a table, and what the header may call them."""
EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsb", ".ods")
_HINT = (
    "A file of validators is a list, a table with the column validator_index or pubkey, deposit "
    "data, a keystore, or an Obol cluster lock"
)


class _Ignored(msgspec.Struct):
    """An object of which nothing is decoded, such as the encrypted secret of a keystore."""


class _Distributed(msgspec.Struct):
    distributed_public_key: str


class _Definition(msgspec.Struct):
    name: str = ""


class _Document(msgspec.Struct):
    """A keystore of EIP-2335, or the lock of an Obol cluster. All else is skipped, not decoded."""

    crypto: _Ignored | None = None
    pubkey: str | None = None
    cluster_definition: _Definition | None = None
    distributed_validators: list[_Distributed] | None = None


class _Deposit(msgspec.Struct):
    pubkey: str


_decode = msgspec.json.Decoder(_Document | list[_Deposit | int | str]).decode


def validators(source: str | os.PathLike[str]) -> pl.DataFrame:
    """Read the validators of a file, one row per validator, in the order of the file.

    Loaders, `beaconframes.report` and ``--validators`` take the rows; the report compares their
    groups. Nothing is requested: validators that do not exist are named by what loads them.

    ::

        mine = bf.validators("validator_keys")
        bf.load_income_history(mine, since="7d")

    Parameters
    ----------
    source
        A file, recognized by its content:

        - a list of indices, ranges and public keys, with or without ``0x``;
        - CSV or Excel with the column ``validator_index`` or ``pubkey``, and maybe ``group`` and
          ``name``;
        - ``deposit_data-*.json`` of a deposit tool;
        - a keystore. Only its public key is read, never its encrypted secret;
        - the ``cluster-lock.json`` of an Obol cluster. Its name is the group.

        Or a folder with keystores or deposit data, also in folders below it.

    Returns
    -------
    polars.DataFrame
        ``validator_index`` and ``pubkey``, of which one may be null, ``group`` and ``name``.

    Raises
    ------
    DatasetError
        The file does not exist, or cannot be read.
    UsageError
        A line is not a validator, or a validator is in several groups.
    """
    try:
        path = Path(source)
    except TypeError:
        raise UsageError(
            f"{shorten(source)} is not the name of a file",
            hint="Loaders take indices and public keys themselves, one or many.",
        ) from None
    return read_validators(path)


def read_validators(path: Path, *, needs_group: bool = False) -> pl.DataFrame:
    """Return the validators of a file or folder; with *needs_group*, of a table with groups."""
    try:
        rows = _read_folder(path) if path.is_dir() else _read_file(path, needs_group=needs_group)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from None
    if rows.is_empty():
        raise UsageError(f"{path} has no validators", hint=_HINT)
    return rows.unique([INDEX, KEY], keep="first", maintain_order=True)


def _read_file(path: Path, *, needs_group: bool) -> pl.DataFrame:
    if not path.is_file():
        hint = ADDRESS_HINT if ADDRESS_PATTERN.fullmatch(str(path)) else "Check its name."
        raise DatasetError(f"the file {path} does not exist", hint=hint)
    if path.suffix.lower() in EXCEL_SUFFIXES:
        return _check_table(path, _read_excel(path))
    with path.open("rb") as file:
        start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"{", b"[")):
        found = _read_json(path)
        if found is None:
            raise UsageError(f"{path} has no validators", hint=_HINT)
        return found
    titles = re.split(rb"[\r\n]", start, maxsplit=1)[0].decode("utf-8", "replace")
    header = titles.replace(";", ",").split(",")
    columns = _find_titles(header)
    if needs_group:
        wanted = (KEY if KEY in columns else INDEX, GROUP)
        columns = dict(zip(wanted, wanted, strict=True)) | columns
    if columns:
        return _check_table(path, _read_csv(path, columns), needs_group=needs_group)
    with path.open("rb") as file:
        return _build_rows(parse_lines("validators", file, str(path), normalize_validator))


def _read_folder(path: Path) -> pl.DataFrame:
    """Return the validators of all JSON files in a folder that have some."""
    found = (_read_json(file) for file in sorted(path.rglob("*.json")) if file.is_file())
    return pl.concat([SCHEMA.to_frame(), *(rows for rows in found if rows is not None)])


def _read_json(path: Path) -> pl.DataFrame | None:
    """Return the validators of a JSON file; None if it is of another kind.

    An error never shows the content: a keystore has a secret.
    """
    try:
        document = _decode(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except msgspec.ValidationError:
        return None
    except msgspec.DecodeError as error:
        raise DatasetError(f"{path} is not JSON: {error}") from None
    check = partial(_check_item, path)
    if isinstance(document, list):
        items = [item.pubkey if isinstance(item, _Deposit) else item for item in document]
        return _build_rows([check(item) for item in items])
    if document.distributed_validators is not None:
        keys = [check(one.distributed_public_key) for one in document.distributed_validators]
        definition = document.cluster_definition
        return _build_rows(keys, definition.name or None if definition else None)
    if document.crypto is None:
        return None
    if not document.pubkey:
        raise UsageError(
            f"the keystore {path} has no public key",
            hint="Give the public key itself, or the deposit data",
        )
    return _build_rows([check(document.pubkey)])


def _check_item(path: Path, item: int | str) -> int | str:
    """Return an item of a JSON file, which must be a validator."""
    try:
        text = normalize_validator(item)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from None
    return text if text.startswith("0x") else int(text)


def _build_rows(items: Sequence[int | str], group: str | None = None) -> pl.DataFrame:
    """Return the rows of indices and public keys."""
    texts = [normalize_validator(item) if isinstance(item, str) else item for item in items]
    indices = [None if str(text).startswith("0x") else int(text) for text in texts]
    keys = [text if index is None else None for text, index in zip(texts, indices, strict=True)]
    rows = pl.DataFrame({INDEX: indices, KEY: keys}, {INDEX: pl.Int64, KEY: pl.String})
    missing = pl.lit(None, pl.String)
    return rows.with_columns(pl.lit(group, pl.String).alias(GROUP), missing.alias(NAME))


def _find_titles(header: Sequence[str]) -> dict[str, str]:
    """Return the titles of the columns of validators in a header; none if it has no validator."""
    titles = {title.strip().strip('"').lower(): title.strip().strip('"') for title in header}
    found = {
        column: titles[name] for column, names in TITLES.items() for name in names if name in titles
    }
    return found if INDEX in found or KEY in found else {}


def _read_csv(path: Path, titles: dict[str, str]) -> pl.DataFrame:
    hint = f"It is a CSV file with the columns {' and '.join(titles)}"
    rows = read_csv_rows(path, list(titles.values()), hint)
    return rows.rename({title: column for column, title in titles.items()})


def _read_excel(path: Path) -> pl.DataFrame:
    """Return the first sheet of a workbook as texts."""
    require_package("fastexcel", "an Excel file", "'beaconframes[excel]'")
    import fastexcel

    try:
        sheet = pl.read_excel(path, drop_empty_rows=False)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise DatasetError(f"{path} cannot be read as a workbook: {first_line(error)}") from None
    titles = _find_titles(sheet.columns)
    if not titles:
        raise UsageError(f"the first sheet of {path} has no column {INDEX} or {KEY}", hint=_HINT)
    line = pl.int_range(2, pl.len() + 2, dtype=pl.Int64).alias(LINE)
    texts = [pl.col(title).cast(pl.String).alias(column) for column, title in titles.items()]
    rows = sheet.select(line, *texts).with_columns(pl.exclude(LINE).str.strip_chars())
    return rows.filter(pl.any_horizontal(pl.exclude(LINE).is_not_null()))


def _check_table(path: Path, rows: pl.DataFrame, *, needs_group: bool = False) -> pl.DataFrame:
    """Return the rows of a table whose cells are texts; errors name the line."""
    absent = [pl.lit("").alias(column) for column in SCHEMA if column not in rows.columns]
    rows = rows.with_columns(*absent).with_columns(pl.exclude(LINE).fill_null(""))
    has_key = pl.col(KEY) != ""
    number = pl.col(INDEX).str.extract(r"^([0-9]{1,10})$").cast(pl.Int64)
    is_index = (number <= LARGEST_INDEX) | ((pl.col(INDEX) == "") & has_key)
    check_rows(path, rows, is_index, INDEX, "Give the index of a validator, such as 12345")
    is_key = pl.col(KEY).str.contains(f"^(?:{PUBKEY.pattern})$") | ~has_key
    check_rows(path, rows, is_key, KEY, "Give the 96 hex digits of a public key")
    if needs_group:
        check_rows(path, rows, pl.col(GROUP) != "", GROUP, "Give the name of the group")
    key = pl.lit("0x") + pl.col(KEY).str.to_lowercase().str.strip_prefix("0x")
    rows = rows.with_columns(number, pl.when(has_key).then(key).alias(KEY))
    twice = rows.filter(pl.col(GROUP) != pl.col(GROUP).first().over(INDEX, KEY))
    if twice.height:
        found = twice.row(0, named=True)
        raise UsageError(
            f"line {found[LINE]} of {path}: validator {found[INDEX] or found[KEY]} is in several "
            "groups",
            hint="Each validator belongs to one group at most",
        )
    names = [pl.col(column).replace("", None) for column in (GROUP, NAME)]
    return rows.select(INDEX, KEY, *names)
