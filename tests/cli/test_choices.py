"""Step 12, 8: the command line lists the choices of options, and suggests commands."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from beaconframes.cli import commands


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("lod", "'load'"),
        ("load incomehistory", "'income-history'"),
        ("load income", "'income-history'"),
        ("load withdrawals", "'validator-withdrawals' or 'slot-withdrawals'"),
        ("plan reward --v2", "'rewards'"),
        ("plot incom", "'income'"),
        ("wall safe", "'save'"),
        ("ledger", "'analyse ledger'"),
        ("income", "'analyse income' or 'plot income'"),
        ("income-history", "'load income-history'"),
    ],
)
def test_an_unknown_command_gets_a_suggestion(line, meant):
    """Commands, loaders and charts, also by another word for the same rows."""
    ended = CliRunner().invoke(commands, line.split())

    assert ended.exit_code == 2
    assert f"; did you mean {meant}? See beaconframes" in ended.stderr


def test_options_of_loaders_list_their_choices():
    """In the help, in the error, and for the completion of a shell."""
    shown = CliRunner().invoke(commands, ["load", "owners", "--v2", "--help"])
    wrong = CliRunner().invoke(commands, ["load", "owners", "--v2", "--window", "1h"])
    environment = {"COMP_WORDS": "beaconframes load v2.owners --sort-by ", "COMP_CWORD": "4"}
    completed = CliRunner().invoke(
        commands,
        prog_name="beaconframes",
        complete_var="_BEACONFRAMES_COMPLETE",
        env=environment | {"_BEACONFRAMES_COMPLETE": "bash_complete"},
    )

    text = " ".join(shown.output.split())
    assert "--window [24h|7d|30d|90d]" in text
    assert "--sort-by [validator_count|beaconscore|net_share]" in text
    assert "'1h' is not one of '24h', '7d', '30d', '90d'" in wrong.stderr
    assert completed.output.split() == [
        "plain,validator_count",
        "plain,beaconscore",
        "plain,net_share",
    ]
