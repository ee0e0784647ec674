"""Step 12, 8: a column that is missing or misspelled, everywhere a function needs one."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.cli import commands
from beaconframes.errors import UsageError
from beaconframes.v1.balance_history import BALANCE_HISTORY
from beaconframes.v1.epoch_slots import EPOCH_SLOTS
from beaconframes.v1.income_history import INCOME_HISTORY
from beaconframes.v1.validators import VALIDATORS
from beaconframes.v2.rewards import REWARDS

INCOME = INCOME_HISTORY.table.empty()
BALANCES = BALANCE_HISTORY.table.empty()
PANDAS = {"BEACONFRAMES_FRAME": "pandas"}


def read_error(function, *frames, **arguments):
    """Return the text of the UsageError that a call raises."""
    with pytest.raises(UsageError) as raised:
        function(*frames, **arguments)
    return str(raised.value)


@pytest.mark.parametrize("convert", [pl.DataFrame, bf.to_pandas, pl.DataFrame.lazy])
def test_a_frame_of_another_loader_is_recognized(convert):
    """The error has the loader of the frame, and the loader that fits."""
    text = read_error(bf.plot.income, convert(BALANCES))

    assert "looks like a frame of bf.load_balance_history(...)" in text
    assert "Pass a frame of bf.load_income_history(...)" in text
    text = read_error(bf.analysis.income, convert(REWARDS.table.empty()))
    assert "looks like a frame of bf.v2.load_rewards(...)" in text
    assert "and 10 more" in text


def test_a_misspelled_column_of_the_user_gets_the_nearest_of_the_frame():
    """`by=` takes columns of the frame, so the suggestion is one of them."""
    text = read_error(bf.analysis.income, INCOME, by="validatorindex")

    assert "no column validatorindex; did you mean 'validator_index'?" in text
    labeled = INCOME.with_columns(operator=pl.lit("a"))
    assert "did you mean 'operator'?" in read_error(bf.analysis.income, labeled, by="operater")


def test_a_column_of_another_loader_has_its_name():
    """`exit_epoch` is in frames of other loaders: join one of them."""
    text = read_error(bf.analysis.income, INCOME, by="exit_epoch")

    assert "bf.load_validators(...) and bf.v2.load_validators(...) return exit_epoch" in text
    # The nearest name of any loader, where the frame itself has none.
    text = read_error(bf.analysis.income, INCOME, by="exit_epochs")
    assert "did you mean 'exit_epoch'?" in text
    assert "bf.load_validators(...) and bf.v2.load_validators(...) return exit_epoch" in text


def test_a_renamed_column_is_found():
    """A column that the loader returns under another name has probably been renamed."""
    text = read_error(bf.analysis.income, INCOME.rename({"epoch": "Epoch"}))

    assert "no column epoch" in text
    assert "Rename 'Epoch' to 'epoch'" in text


def test_converted_amounts_are_recognized():
    """Analysis and charts take gwei and wei, and convert them themselves."""
    text = read_error(bf.plot.balances, bf.to_eth(BALANCES))

    assert "no column balance_gwei" in text
    assert "before bf.to_eth(...)" in text


def test_every_place_that_needs_columns_explains_them():
    """Second frames, the wall, token balances and prices."""
    blocks = EPOCH_SLOTS.table.empty()
    prices = pl.DataFrame({"time": [], "eurr": []}, schema={"time": pl.Datetime, "eurr": pl.Int64})

    text = read_error(bf.analysis.sync_members, blocks, BALANCES)
    assert "Pass a frame of bf.load_sync_committees(...)" in text
    assert "Pass a frame of bf.load_graffiti_wall(...)" in read_error(bf.wall.render, BALANCES)
    text = read_error(bf.to_tokens, BALANCES)
    assert "looks like a frame of bf.load_balance_history(...)" in text
    assert "load_token_balances" in text
    text = read_error(bf.analysis.ledger, INCOME, prices=prices, price="eur")
    assert "did you mean 'eurr'?" in text
    text = read_error(bf.analysis.income, INCOME, blocks=VALIDATORS.table.empty())
    assert "blocks: the frame has no column epoch; it looks like a frame of" in text
    assert "bf.load_validators(...). Pass a frame of bf.load_produced_blocks(...)" in text


def test_columns_of_the_command_line_get_suggestions():
    """The option has the nearest column; a column of another loader has the loader."""
    load = ["load", "validators", "--validators", "1", "--columns"]

    misspelled = CliRunner().invoke(commands, [*load, "validator_idx"])
    other = CliRunner().invoke(commands, [*load, "attestation_source_reward_gwei"])

    assert misspelled.exit_code == other.exit_code == 2
    assert "did you mean 'validator_index'?" in misspelled.stderr
    assert "load income-history returns attestation_source_reward_gwei" in other.stderr


def test_a_file_of_another_loader_is_recognized(tmp_path):
    """`plot income balances.parquet` says which chart's loader the file has."""
    file = tmp_path / "balances.parquet"
    BALANCES.write_parquet(file)

    drawn = CliRunner().invoke(
        commands, ["plot", "income", str(file), "--out", str(tmp_path / "a.png")]
    )

    assert drawn.exit_code == 2
    assert "looks like a file of load balance-history" in drawn.stderr


def test_describe_takes_a_table_and_a_column():
    """A table has its columns; a column has one row for each loader that returns it."""
    table = bf.describe(INCOME_HISTORY.table.table_name)
    column = bf.describe("exit_epoch")

    assert table["column"].to_list() == INCOME.columns
    assert "load_validators" in column["loader"].to_list()
    assert {"exit_epoch"} == set(column["column"])
    assert column.filter(pl.col("loader") == "load_validators")["meaning"].to_list() == [
        VALIDATORS.table.describe().filter(column="exit_epoch")["meaning"][0]
    ]
    assert "v2.load_rewards" in bf.describe("total_penalty_wei")["loader"].to_list()
    assert bf.describe(bf.v2.load_rewards).equals(bf.describe("v2.rewards"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("incom_history", "'load_income_history'"),
        ("v2.reward", "'v2.load_rewards'"),
        ("load_income", "'load_income_history'"),
        ("load_rewards", "'load_income_history' or 'v2.load_rewards'"),
        ("activation_epochs", "'activation_epoch'"),
        ("validatorindex", "'validator_index'"),
        ("slot_incomes", "'slot_income'"),
    ],
)
def test_describe_suggests_names(name, meant):
    """Loaders, tables and columns, and the synonyms of loaders."""
    assert f"did you mean {meant}?" in read_error(bf.describe, name)


def test_descriptions_are_in_the_kind_of_frame_of_the_settings():
    """Who works in pandas gets pandas, also of the dictionary."""
    with bf.settings(frame="pandas"):
        described, listed = bf.describe("epochs"), bf.loaders()

    assert bf.describe("epochs")["column"].to_list() == described["column"].tolist()
    assert len(listed) == bf.loaders().height


def test_the_command_dictionary_lists_the_loaders_of_a_column():
    """`dictionary COLUMN` prints one line per loader."""
    printed = CliRunner().invoke(commands, ["dictionary", "exit_epoch"], env=PANDAS)

    assert printed.exit_code == 0
    assert [line.split()[0] for line in printed.output.splitlines()] == [
        "load_validators",
        "v2.load_validators",
    ]


def test_a_column_in_the_index_of_pandas_is_named():
    """Step 12, 7: pandas users put times into the index, and the error says how to undo it."""
    frame = bf.to_pandas(INCOME).set_index(["validator_index", "epoch"])

    text = read_error(bf.analysis.income, frame)

    assert "epoch is in the index of the frame, not a column. Pass frame.reset_index()" in text


def test_a_frame_instead_of_a_loader_is_one_short_line():
    """Step 12, 8: the message has the type of the frame instead of its table."""
    text = read_error(bf.describe, INCOME)

    assert text.startswith("an object of type DataFrame is not a loader. ")


def test_every_function_named_in_an_error_exists():
    """The argument *loader* of a check is a name that users can call: bf.analysis.daily_income."""
    sources = (path.read_text("utf-8") for path in Path(bf.__file__).parent.rglob("*.py"))
    named = {name for source in sources for name in re.findall(r'\bloader="([\w.]+)"', source)}

    assert len(named) > 20
    assert [] == [name for name in sorted(named) if not callable(_find_public(name))]


def _find_public(name):
    return reduce(lambda owner, part: getattr(owner, part, None), name.split("."), bf)
