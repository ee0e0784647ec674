"""Types of arguments decide their options; docstrings have their help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes import cli
from beaconframes.cli import loader_options
from beaconframes.cli.analyses import find_analysis, list_analyses
from beaconframes.cli.docstrings import describe, describe_arguments, split_sections, translate
from beaconframes.cli.from_signature import command, find_kind, list_arguments, list_frames
from beaconframes.endpoint.validator_sets import ValidatorSet
from beaconframes.errors import UsageError


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int | str | Iterable[int | str], ["1,2"], [1, 2]),
        (str | Iterable[str] | None, ["1,a"], ["1", "a"]),
        (int | str | Iterable[int | str] | ValidatorSet | None, ["3"], [3]),
        (str | Sequence[str], "a, b", ["a", "b"]),
        (int | str | date | datetime | None, "-7", -7),
        (int | str | date | datetime | None, "30d", "30d"),
        (tuple[int, int, int, int] | None, "0,1,2,3", (0, 1, 2, 3)),
        (int | str | None, "12", 12),
        (int | str | None, "a/b", "a/b"),
        (str | None, "12", "12"),
    ],
)
def test_the_type_decides_how_a_text_is_parsed(hint, text, value):
    """Lists, times, regions, identifiers and plain texts."""
    kind = find_kind(hint)

    assert value == kind.parse("--items", text)
    assert isinstance(text, list) == kind.many


def test_all_of_the_wall_is_a_region_only_where_the_type_says_so():
    """Images have it; the loader of the wall has corners only."""
    corners = tuple[int, int, int, int]

    assert "all" == find_kind(corners | Literal["all"] | None).parse("--region", "all")
    with pytest.raises(UsageError, match="not a valid region"):
        find_kind(corners | None).parse("--region", "all")


def test_a_range_is_no_option():
    """No text is one, so a chart of an index has no --epochs."""
    assert {} == list_arguments(bf.plot.index_coverage.__wrapped__)


def test_a_set_of_validators_is_parsed_as_one():
    """Only arguments whose type has sets."""
    kind = find_kind(int | str | Iterable[int | str] | ValidatorSet)

    assert bf.v2.dashboard(7) == kind.parse("--validators", ["dashboard:7"])
    with pytest.raises(UsageError, match="takes none"):
        find_kind(int | Iterable[int]).parse("--validators", ["dashboard:7"])


@pytest.mark.parametrize(
    ("hint", "kind"),
    [(int, "integer"), (float | None, "float"), (Path | None, "path"), (Literal["a"], "choice")],
)
def test_simple_types_are_types_of_click(hint, kind):
    """The error of an invalid value comes from click."""
    assert (
        kind == find_kind(hint).type.name
        if hint is Path
        else click.types.convert_type(find_kind(hint).type).name
    )


def example(
    rows: IntoFrame,  # noqa: F821
    income: IntoFrameT,  # noqa: F821
    blocks: IntoFrame | None = None,  # noqa: F821
    *,
    every: Literal["day", "week"] = "day",
    min_count: int = 0,
    split: bool = False,
    names: Annotated[tuple[str, ...], "--name", "NAME"] = (),
) -> IntoFrameT:  # noqa: F821
    """Add up *rows* with ``every="week"``. One row per day.

    See `bf.load_epochs` and ``split=True``. Without *blocks* this computes eagerly. *rows* stay.

    Parameters
    ----------
    rows, income
        Frames.
    every
        ``"day"`` or ``"week"``, as *min_count* says:
        both lines.
    min_count
        Smallest number.

    Returns
    -------
    A frame
        Not an argument.
    """
    return rows, income, blocks, every, min_count, split, names


def test_frames_are_no_options():
    """Their names need not exist at run time; the one whose kind the result has is first."""
    frames = list_frames(example)

    assert [("income", True), ("rows", True), ("blocks", False)] == list(frames.items())
    assert ["every", "min_count", "split", "names"] == list(list_arguments(example))


def test_options_have_the_defaults_of_the_function():
    """Also zero, which is shown; a repeated option has no default."""
    options = {name: each.build() for name, each in list_arguments(example).items()}

    assert ("day", True) == (options["every"].default, options["every"].show_default)
    assert (0, True) == (options["min_count"].default, options["min_count"].show_default)
    assert options["split"].is_flag
    assert (["--name"], "NAME", True) == (
        options["names"].opts,
        options["names"].metavar,
        options["names"].multiple,
    )
    assert '"day" or "week", as --min-count says: both lines.' == options["every"].help
    assert "Smallest number." == options["min_count"].help


def test_sections_of_a_docstring():
    """The text before them, and each by its title."""
    sections = split_sections(example)

    assert ["", "Parameters", "Returns"] == list(sections)
    assert {"rows", "income", "every", "min_count"} == set(describe_arguments(example))
    assert {"": "No sections - at all"} == split_sections(
        type("A", (), {"__doc__": "No sections - at all"})
    )


def test_python_in_a_docstring_becomes_a_command_line():
    """Options, commands, values; sentences about Python only are left out."""
    assert (
        "Add up rows with --every week. One row per day.\n\nSee load epochs and --split. rows stay."
        == describe(example, ["every", "split"])
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('``until=pd.Timestamp("2026-10-01")`` ends', "--until 2026-10-01T00:00 ends"),
        ("``since=-100_000``", "--since -100000"),
        ("``bf.analysis.own_yield``", "analyse own-yield"),
        (
            "`beaconframes.analysis.income` and `bf.v2.load_block`",
            "analyse income and load v2.block",
        ),
        ("`load_epochs`, `load_slots(...)`", "load epochs, load slots"),
        ("`bf.Chain` and ``{1: 2}``", "bf.Chain and {1: 2}"),
        ("one, or a list, range or Series of them", "one, or a list or range of them"),
    ],
)
def test_markup(text, expected):
    """Each piece of Python has its counterpart on the command line."""
    assert expected == translate(text, example)


def test_a_loader_of_v2_names_loaders_of_v2():
    """A loader without its package is of the same version."""
    assert "load v2.slot" == translate("`load_slot`", bf.v2.load_block)


def test_a_list_leaves_its_default_to_the_function():
    """A default that is a text would be a list of its characters."""
    option = loader_options.list_arguments(bf.load_sync_committees)["periods"].build()

    assert option.multiple
    assert () == click.Command("x", params=[option]).make_context("x", []).params["periods"]


def test_a_required_option_without_a_value_is_missing():
    """A default of None would count as a value."""
    result = CliRunner().invoke(cli.commands, ["load", "income-history"])

    assert (2, "Missing option '--validators'" in result.stderr) == (result.exit_code, True)


def test_a_function_is_a_command():
    """Arguments before the star are words; the others are options, and more parameters follow."""
    seen = []

    @command(click.Option(["--more"]))
    def store_rows(
        folder: Path, name: str | None = None, *, count: int = 3, follow: bool = False, **more: str
    ) -> None:
        """Store rows.

        Parameters
        ----------
        count
            Number of rows.
        """
        seen.append((folder, name, count, follow, more))

    shown = CliRunner().invoke(store_rows, ["--help"]).output
    CliRunner().invoke(store_rows, ["a", "--count", "5", "--more", "x"], catch_exceptions=False)
    wrong = CliRunner().invoke(store_rows, [])

    assert [(Path("a"), None, 5, False, {"more": "x"})] == seen
    assert "FOLDER [NAME]" in shown
    assert "Number of rows.  [default: 3]" in shown
    assert "Missing argument 'FOLDER'" in wrong.output


def test_an_analysis_without_a_loader_of_its_frames_has_no_command():
    """It takes rows of another analysis."""
    assert find_analysis("yearly_totals") is None
    assert "yearly-totals" not in list_analyses()
    assert {"balances": "balance-history"} == list_analyses()["daily-balances"].loaded


def test_an_argument_may_have_another_loader_in_one_analysis():
    """The blocks of most analyses are paid ones; those that reconcile balances are proposals."""
    analyses = list_analyses()

    assert "proposals" == analyses["reconcile"].loaders["blocks"]
    assert "epoch-slots" == analyses["sync-participation"].loaders["blocks"]
    assert "produced-blocks" == analyses["ledger"].loaders["blocks"]


def test_frames_with_a_request_per_validator_are_optional_files():
    """Daily statistics are loaded where they are required, and otherwise read from a file."""
    problems = list_analyses()["problems"]

    assert ("stats", "network") == problems.files
    assert "stats" not in problems.optional
    assert {"stats": "validator-stats"} == list_analyses()["daily-income"].loaded


def test_connection_options_are_described_apart():
    """The help of a command lists their names; --help-connection describes each, and ends."""
    shown = CliRunner().invoke(cli.commands, ["quota", "--help"]).output
    described = CliRunner().invoke(cli.commands, ["load", "epochs", "--help-connection"])

    assert "Store final rows in this folder" not in shown
    assert "--store-limit" in shown
    assert described.exit_code == 0
    text = " ".join(described.output.split())
    assert "Store final rows in this folder. [BEACONFRAMES_STORE]" in text
    assert "Prompt for the API key." in text
    assert "Usage" not in text
