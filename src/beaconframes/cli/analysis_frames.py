"""The frames of an analysis: read from files, or loaded for the range of the first one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaconframes.cli import chart_input
from beaconframes.cli.analyses import RANGE, SUBJECTS
from beaconframes.cli.loader_options import list_arguments, require_loader
from beaconframes.errors import UsageError
from beaconframes.time_range import is_relative

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from beaconframes.cli.analyses import Analysis
    from beaconframes.client import Explorer


def parse_inputs(analysis: Analysis, texts: Sequence[str]) -> dict[str, Path]:
    """Return the file of each frame of ``--input``."""
    files: dict[str, Path] = {}
    hint = f"Write NAME=FILE; the names are {', '.join(analysis.frames)}"
    for text in texts:
        frame, equals, file = text.partition("=")
        if not equals or (frame not in analysis.frames and Path(text).exists()):
            frame, file = analysis.first, text
        elif frame not in analysis.frames:
            raise UsageError(f"--input {text}: there is no frame {frame!r}", hint=hint)
        if frame in files:
            raise UsageError(
                f"--input has two files for {frame}: {files[frame]} and {file}", hint=hint
            )
        files[frame] = Path(file)
    return files


def count_from_one_head(
    analysis: Analysis, given: Mapping[str, Any], absent: Sequence[str], explorer: Explorer
) -> dict[str, int]:
    """Return the relative bounds of *given* as epochs: loaders would count from different heads.

    With an income history, all count from the latest finalized epoch, as its loader does.
    """
    bounds = {key: given[key] for key in RANGE if given.get(key) not in (None, "finalized")}
    relative = [key for key, bound in bounds.items() if is_relative(bound)]
    if not relative or "day" in chart_input.schema_of(analysis.loaders[analysis.first]):
        return {}
    is_final = "income-history" in [analysis.loaders[frame] for frame in absent]
    since, until = given.get("since"), given.get("until")
    span = explorer.chain_head.span(since, until, "epoch", length=1, finalized=is_final)
    epochs = {"since": span.first, "until": span.last}
    return {key: epochs[key] for key in relative}


def build_call(
    analysis: Analysis,
    frame: str,
    given: Mapping[str, Any],
    frames: Mapping[str, pl.DataFrame],
    explorer: Explorer,
) -> dict[str, Any]:
    """Return the arguments with which to load a *frame*; the first frame sets the others' range."""
    loader = analysis.loaders[frame]
    names = list_arguments(require_loader(loader))
    first = frames.get(analysis.first)
    subjects = [name for name in SUBJECTS if name in names]
    call = {name: find_validators(given, first) for name in subjects}
    epochs = {key: given[key] for key in RANGE if key in given}
    if first is None or first.is_empty():
        if loader == "yield-index":
            length = explorer.chain.epochs_per_day
            epochs = {
                key: value // length if isinstance(value, int) else value
                for key, value in epochs.items()
            }
    elif loader == "yield-index":
        epochs = find_days(first, explorer)
    elif not epochs or "day" in first.columns:
        epochs = find_epochs(first, explorer)
    if "periods" in names and first is not None:
        call["periods"] = find_periods(first, explorer)
    return call | {key: value for key, value in epochs.items() if key in names}


def build_empty(
    analysis: Analysis, frames: Mapping[str, pl.DataFrame], absent: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Return the *frames*, and those that will be loaded, with their columns and without rows.

    Groups keep their rows: they are checked like an argument.
    """
    loaded = {frame: chart_input.schema_of(analysis.loaders[frame]).to_frame() for frame in absent}
    given = {name: rows if name == "groups" else rows.clear() for name, rows in frames.items()}
    return given | loaded


def find_epochs(rows: pl.DataFrame, explorer: Explorer) -> dict[str, Any]:
    """Return the range of epochs of *rows*, or of their days; nothing if they have neither."""
    if "epoch" in rows.columns:
        return {"since": rows["epoch"].min(), "until": rows["epoch"].max()}
    if "day" not in rows.columns:
        return {}
    length, days = explorer.chain.epochs_per_day, rows["day"].sort()
    return {"since": max(0, days[0]) * length, "until": (days[-1] + 1) * length - 1}


def find_periods(rows: pl.DataFrame, explorer: Explorer) -> list[int]:
    """Return the periods of the epochs of *rows*; without epochs, the current and the next one."""
    if "epoch" not in rows.columns:
        current = explorer.chain.at("period", explorer.now())
        return [current, current + 1]
    periods = rows["epoch"] // explorer.chain.epochs_per_sync_period
    return periods.unique().sort().to_list()


def find_days(rows: pl.DataFrame, explorer: Explorer) -> dict[str, int]:
    """Return the range of days of the epochs of *rows*, up to the latest complete one."""
    days = rows["day"] if "day" in rows.columns else rows["epoch"] // explorer.chain.epochs_per_day
    first, last = days.sort().gather([0, -1])
    # The loader refuses a first day that is not complete.
    return {"since": first, "until": max(first, min(last, explorer.chain_head.latest("day")))}


def find_validators(given: Mapping[str, Any], first: pl.DataFrame | None) -> list[Any]:
    """Return the validators of the option, or those of the first frame."""
    if "validators" in given:
        validators: list[Any] = given["validators"]
    elif first is not None and "validator_index" in first.columns:
        validators = first["validator_index"].unique().sort().to_list()
    else:
        raise UsageError(
            "--input or --validators is required", hint="Give a file, or the validators to load"
        )
    return validators


def read_frame(
    file: Path, frame: str, loader: str | None, arguments: Mapping[str, Any]
) -> pl.DataFrame:
    """Read the file of a *frame* of a loader; without a loader, as the format stores it."""
    if frame == "prices" and file.suffix.lower() == ".csv":
        from beaconframes.reports.prices import read_prices_file

        return read_prices_file(file, arguments["price"])
    return chart_input.read_file(file, loader)
