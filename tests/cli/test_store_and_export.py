"""`beaconframes store`, `export` and the completion of words."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

import beaconframes as bf
from beaconframes import errors
from beaconframes.cli import commands, export, loader_options
from beaconframes.dataset import Dataset
from beaconframes.server import Server


@pytest.fixture
def run():
    """Run a command."""

    def invoke(*arguments):
        return CliRunner().invoke(commands, [*map(str, arguments)])

    return invoke


@pytest.fixture(scope="module")
def filled_store(chain, tmp_path_factory):
    """The folder of a store with income and balances of validators on mainnet."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    with Server(chain) as server:
        explorer = bf.Explorer(server.url, store=folder, head=server.service.head)
        with explorer:
            bf.load_income_history([1, 2, 3], since=100, until=199, explorer=explorer)
            bf.load_balance_history([1], since=100, until=109, explorer=explorer)
            return explorer.local_store.path


@pytest.fixture
def income(filled_store, tmp_path):
    """The option that locates a copy of that store."""
    copy = tmp_path / "store" / filled_store.name
    return ["--store", shutil.copytree(filled_store, copy)]


def test_store_show_lists_tables_and_coverage(run, income):
    """Its tables as text and as JSON, and the coverage of one table."""
    result = run("store", "show", *income)
    report = json.loads(run("store", "show", *income, "--json").stdout)
    table = json.loads(run("store", "show", "income_history", *income, "--json").stdout)

    assert 0 == result.exit_code
    assert str(income[1]) in result.stdout.splitlines()[0]
    assert {"income_history": 300, "balance_history": 10} == {
        row["table"]: row["rows"] for row in report["data"]
    }
    assert report["bytes"] == sum(f.stat().st_size for f in income[1].rglob("*") if f.is_file())
    assert [("1", 100, 199), ("2", 100, 199), ("3", 100, 199)] == sorted(
        (row["subject"], row["first"], row["last"]) for row in table["data"]
    )


def test_stored_rows_are_loaded_offline(run, income):
    """Without requests, from the same folder; other rows are an error."""
    result = run(
        "load", "income-history", "--validators", "1-3", "--since", "150", "--until", "159",
        "--offline", "--json", *income,
    )  # fmt: skip
    more = run("load", "latest-state", "--offline", *income)

    report = json.loads(result.stdout)
    assert (0, 0, 30) == (result.exit_code, report["requests"], report["rows"])
    assert (2, "") == (more.exit_code, more.stdout)


def test_store_limit_is_a_warning_of_a_load(run, chain, tmp_path):
    """C11: --store-limit is a warning of a load; an unknown size is an error of the caller."""
    with Server(chain) as server:
        call = ["load", "balance-history", "--validators", "1", "--since", "100", "--until", "110",
                "--url", server.url, "--store", tmp_path / "store"]  # fmt: skip
        wrong = run(*call, "--store-limit", "2 furlongs")
        limited = run(*call, "--store-limit", "1KB")

    assert (2, True) == (wrong.exit_code, "--store-limit" in wrong.stderr)
    assert (0, True) == (limited.exit_code, "more than its limit of 1,000" in limited.stderr)
    (folder,) = (tmp_path / "store").iterdir()
    assert 11 == Dataset.open(folder).tables()["balance_history"].rows


def test_store_prune_removes_what_was_stored_first(run, chain, tmp_path):
    """--to and --older-than remove whole files; they exclude other choices."""
    store = ("--store", tmp_path / "store")
    with Server(chain) as server:
        for since in ("100", "111"):
            call = ["load", "balance-history", "--validators", "1", "--since", since]
            run(*call, "--until", str(int(since) + 9), "--url", server.url, *store)
        of = ("--url", server.url, *store)
        size = json.loads(run("store", "show", *of, "--json").stdout)["data"][0]["bytes"]
        old = json.loads(run("store", "prune", "--older-than", "1d", *of, "--json").stdout)
        large = json.loads(run("store", "prune", "--to", str(size - 1), *of, "--json").stdout)
        (rest,) = json.loads(run("store", "show", *of, "--json").stdout)["data"]
        both = run("store", "prune", "balance_history", "--to", "5", *of)

    assert (20, 20) == (old["rows_before"], old["rows"])
    assert (20, 10) == (large["rows_before"], large["rows"])
    assert (111, 120) == (rest["first"], rest["last"])
    assert (2, True) == (both.exit_code, "--older-than and --to exclude" in both.stderr)


def test_store_verify_and_mend(run, income):
    """Damaged files are listed with exit code 9; mend removes them, and leaves all others."""
    sound = run("store", "verify", *income)
    file = next((income[1] / "balance_history").glob("*.parquet"))
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1] + b"x")

    found = run("store", "verify", *income)
    report = json.loads(run("store", "verify", *income, "--json").stdout)
    repaired = run("store", "mend", *income)
    again = run("store", "mend", *income)

    assert [0, 9, 0] == [sound.exit_code, found.exit_code, repaired.exit_code]
    assert file.name in found.stdout
    assert repaired.stdout.startswith("balance_history: ")
    assert "no file is damaged\n" == again.stdout
    assert (False, "balance_history") == (report["sound"], report["damaged"][0]["table"])
    assert {"sound": True, "damaged": []} == json.loads(
        run("store", "verify", *income, "--json").stdout
    )
    assert "income_history" in Dataset.open(income[1]).tables()


def test_store_prune_removes_what_is_chosen(run, income):
    """Some epochs of a validator, then a table, then all; without a choice, an error."""
    some = ["income_history", "--validators", "2", "--first", "150", "--last", "199"]
    first = json.loads(run("store", "prune", *some, *income, "--json").stdout)
    table = json.loads(run("store", "prune", "balance_history", *income, "--json").stdout)
    everything = json.loads(run("store", "prune", "--all", *income, "--json").stdout)

    assert [(310, 260), (260, 250), (250, 0)] == [
        (report["rows_before"], report["rows"]) for report in (first, table, everything)
    ]
    for wrong in (
        [],
        ["x", "--all"],
        ["--all", "--first", "3"],
        ["--all", "--to", "5"],
        ["nothing"],
    ):
        result = run("store", "prune", *wrong, *income)
        assert (2, "") == (result.exit_code, result.stdout)


def test_store_compact_merges_files(run, income):
    """The number of rows stays; the number of files falls."""
    result = run("store", "compact", *income)

    assert 0 == result.exit_code
    assert "310 rows in " in result.stdout
    assert "310 rows in 2 files now" in result.stdout


def test_the_store_commands_need_no_key(run, tmp_path, monkeypatch):
    """A missing store and a store that is turned off have different errors."""
    result = run("store", "show", "--store", tmp_path, "--json")
    monkeypatch.setenv("BEACONFRAMES_STORE", "false")
    off = run("store", "show")

    assert (9, 2) == (result.exit_code, off.exit_code)
    assert "does not exist" in result.stderr


def test_a_service_on_this_machine_has_a_store_if_it_was_turned_on(run):
    """It has none by default, so the place of one is named, not that it is turned off."""
    result = run("store", "show", "--url", "http://127.0.0.1:9")

    assert (9, "") == (result.exit_code, result.stdout)
    assert "does not exist" in result.stderr


@pytest.mark.parametrize("command", ["show", "verify", "mend", "compact", "prune"])
def test_a_missing_store(run, income, tmp_path, command):
    """The error lists the existing stores beside it."""
    file = tmp_path / "file"
    file.write_text("")
    words = ["store", command, *(["--all"] if command == "prune" else [])]
    for place, expected in (
        (income[1].parent, str(income[1])),
        (tmp_path / "none", "there is none beside it"),
        (file, "there is none beside it"),
    ):
        result = run(*words, "--store", place)

        assert (9, "") == (result.exit_code, result.stdout)
        assert "does not exist" in result.stderr
        assert expected in result.stderr
    assert "" == file.read_text()


def test_table_names_with_hyphens(run, income, chain, tmp_path):
    """As in every other command; an unknown table is refused."""
    shown = json.loads(run("store", "show", "income-history", *income, "--json").stdout)
    wrong = run("store", "show", "nope", *income)
    pruned = json.loads(run("store", "prune", "income-history", *income, "--json").stdout)
    words = ["export", "dataset", chain.path, "--table", "yield-index"]
    result = run(*words, "--out", tmp_path / "x.csv")

    assert ("income_history", 3) == (shown["table"], len(shown["data"]))
    assert (2, "") == (wrong.exit_code, wrong.stdout)
    assert "Tables: balance_history, income_history" in wrong.stderr
    assert (310, 10) == (pruned["rows_before"], pruned["rows"])
    assert 0 == result.exit_code


def test_an_invalid_prune_changes_nothing(run, income):
    """The error comes before any change; without matching rows, a message says so."""
    for words in (
        ["--first", "5", "--last", "3"],
        ["--validators", "abc"],
        ["--validators", "1-x"],
        ["--validators", "0x" + "ab" * 48],
    ):
        result = run("store", "prune", "income_history", *words, *income)
        assert (2, "") == (result.exit_code, result.stdout), words
    nothing = run("store", "prune", "income_history", "--validators", "77", *income)

    assert 0 == nothing.exit_code
    assert "nothing was removed" in nothing.stderr
    assert "310 rows" in nothing.stdout


def test_prune_by_public_key(run, chain, tmp_path):
    """The rows of its index are removed; a table without validators is refused."""
    key = chain.scan("validators").filter(pl.col("validator_index") == 2).collect()["pubkey"][0]
    with Server(chain) as server:
        head = server.service.head
        with bf.Explorer(server.url, store=tmp_path / "store", head=head) as explorer:
            bf.load_income_history([1, key], since=100, until=109, explorer=explorer)
            bf.load_epochs(since=100, until=109, explorer=explorer)
            store = ["--store", explorer.local_store.path, "--json"]

    result = run("store", "prune", "income-history", "--validators", key, *store)
    left = json.loads(run("store", "show", "income-history", *store).stdout)
    epochs = run("store", "prune", "epochs", "--validators", "1", *store)

    report = json.loads(result.stdout)
    assert 10 == report["rows_before"] - report["rows"]
    assert ["1"] == [row["subject"] for row in left["data"]]
    assert 2 == epochs.exit_code
    assert "has no validators" in epochs.stderr


def test_export_options_differ_from_loader_arguments():
    """Every loader of rows can be exported with all its arguments."""
    options = {option.name for option in export.list_options("table").values()}
    for version in (1, 2):
        for name in loader_options.list_loaders(version):
            loader = loader_options.find_loader(name, version)
            assert set() == set(loader_options.list_arguments(loader)) & options


def test_export_to_a_folder(run, chain, tmp_path):
    """Rows and metadata; the same command again adds nothing."""
    out = tmp_path / "income"
    options = [
        "export", "income-history", "--validators", "1,2,3", "--since", "100", "--until", "199",
        "--dataset", chain.path, "--out", f"{out}/", "--creator", "Ada", "--license", "CC0-1.0",
    ]  # fmt: skip

    result = run(*options)
    unchanged = run(*options)
    again = json.loads(run(*options, "--json").stdout)

    count = len([*out.rglob("*.parquet")])
    assert 0 == result.exit_code
    for printed, new in ((result, count), (unchanged, 0)):
        files = f"{count} files ({new} new)"
        assert f"'{out}': 300 rows, up to epoch 199, {files}, " in printed.stdout
    assert (True, 300, 0) == (again["complete"], again["rows"], again["added"])
    package = json.loads((out / "datapackage.json").read_text())
    assert "Ada" in json.dumps(package)
    assert 300 == pl.read_parquet(out / "income_history" / "**" / "*.parquet").height


def test_a_slash_at_the_end_means_a_folder(run, chain, tmp_path):
    """Also after a name that would be that of a file."""
    words = ["export", "epochs", "--since", "-3", "--dataset", chain.path]

    assert 0 == run(*words, "--out", f"{tmp_path}/epochs.csv/").exit_code

    assert (tmp_path / "epochs.csv" / "manifest.json").is_file()


def test_export_follow_adds_finalized_rows(run, chain, tmp_path, monkeypatch):
    """K12: each round adds newly finalized rows; an error of the service is retried."""
    waited, out = [], tmp_path / "income"
    with Server(chain) as server:
        head = server.service.head
        early = replace(head, epoch=200, finalized_epoch=198)
        rounds = iter([early, early, errors.ServerError("it is down"), head])

        @contextlib.contextmanager
        def open_explorer(_values):
            now = next(rounds)
            if isinstance(now, Exception):
                raise now
            with bf.Explorer(server.url, chain=server.service.chain, head=now) as explorer:
                yield explorer

        def wait(seconds):
            waited.append(seconds)
            if len(waited) == 4:
                raise KeyboardInterrupt

        monkeypatch.setattr("beaconframes.cli.export.open_explorer", open_explorer)
        monkeypatch.setattr("beaconframes.cli.export.time.sleep", wait)
        options = ["--validators", "1,2", "--since", "190", "--follow", "15", "--json"]
        result = run("export", "income-history", *options, "--out", f"{out}/")

    assert [900] * 4 == waited
    report = list(parse_documents(result.stdout))
    assert [198, head.finalized_epoch] == [one["until"] for one in report]
    assert [9 * 2, (head.finalized_epoch - 189) * 2] == [one["rows"] for one in report]
    assert "it is down; retrying in 15 minutes" in result.stderr


def parse_documents(text):
    """Parse the JSON parse_documents of a text one after the other."""
    while text := text.lstrip():
        found, end = json.JSONDecoder().raw_decode(text)
        text = text[end:]
        yield found


def test_invalid_options_of_follow_are_refused(run, tmp_path):
    """--until, and numbers that are not minutes of at most a year."""
    words = ["export", "income-history", "--validators", "1", "--out", tmp_path / "out"]
    for more in (
        ["--until", "9", "--follow", "5"],
        *(
            ["--follow", text]
            for text in ("0", "-1", "soon", "nan", "inf", "-inf", "525601", "1e300")
        ),
    ):
        result = run(*words, *more)

        assert (2, "") == (result.exit_code, result.stdout)
        assert "follow" in result.stderr


def test_export_with_gaps(run, chain, tmp_path):
    """All other rows are written; exit code 3, and JSON lists the gaps."""
    words = ["export", "validators", "--validators", "1,5000-5999", "--dataset", chain.path]
    result = run(*words, "--out", tmp_path / "out.parquet", "--json")
    file = run(*words, "--out", tmp_path / "out.csv")
    folder = run(*words, "--out", tmp_path / "out")

    assert [3, 3, 3] == [result.exit_code, file.exit_code, folder.exit_code]
    assert "1,000 gaps: 1,000 validators (5000, 5001, 5002, ...) (unknown to the" in file.stderr
    assert "--json lists all" in file.stderr
    assert "manifest" not in file.stderr
    assert "1,000 gaps, listed in the manifest" in folder.stderr
    assert json.loads(result.stdout)["complete"] is False
    assert 1 == pl.read_parquet(tmp_path / "out.parquet").height


def test_export_of_rows_that_are_not_final(run, running, tmp_path):
    """C7: exit code 3 and the remedy; with --unfinalized, all rows are exported."""
    words = ["export", "balance-history", "--validators", "1", "--since", "468", "--until", "469"]
    words += ["--url", running.url, "--no-store", "--out"]
    refused = run(*words, tmp_path / "rows.csv")
    accepted = run(*words, tmp_path / "all.csv", "--unfinalized", "--json")

    assert 3 == refused.exit_code
    assert "0 rows" in refused.stdout
    assert "not exported: epoch 468 to 469 (not final yet). Run the same" in refused.stderr
    report = json.loads(accepted.stdout)
    assert (0, 2, True) == (accepted.exit_code, report["rows"], report["complete"])
    assert ["false", "false"] == pl.read_csv(
        tmp_path / "all.csv", schema_overrides={"finalized": pl.String}
    )["finalized"].to_list()


def test_export_a_table_of_a_dataset(run, chain, tmp_path):
    """To a file of another format."""
    out = tmp_path / "epochs.csv"

    result = run("export", "dataset", chain.path, "--table", "epochs", "--out", out)

    assert 0 == result.exit_code
    assert chain.scan("epochs").collect().height == pl.read_csv(out).height


def test_export_without_a_target(run, chain, tmp_path, monkeypatch):
    """An empty --out, as an unset variable of a shell, is not the current folder."""
    monkeypatch.chdir(tmp_path)

    result = run("export", "dataset", chain.path, "--table", "epochs", "--out", "")

    assert (2, []) == (result.exit_code, list(tmp_path.iterdir()))
    assert "--out" in result.stderr


def test_export_without_partitions(run, chain, tmp_path):
    """``--by none`` is one file of a table, and the default is a folder for each day."""
    words = ["export", "dataset", chain.path, "--table", "epochs", "--out"]

    assert 0 == run(*words, tmp_path / "none", "--by", "none").exit_code
    assert 0 == run(*words, tmp_path / "day").exit_code

    folders = {name: {path.parent.name for path in (tmp_path / name).rglob("*.parquet")}
               for name in ("none", "day")}  # fmt: skip
    assert {"epochs"} == folders["none"]
    assert 1 < len(folders["day"])


def test_export_replaces_a_file_only_with_overwrite(run, chain, tmp_path):
    """The error comes before the first request; a dataset is never replaced."""
    out = tmp_path / "epochs.csv"
    rows = ["epochs", "--since", "100", "--until", "102", "--out", out]
    table = ["dataset", chain.path, "--table", "epochs", "--out", out]
    for words in ([*rows, "--url", "http://127.0.0.1:9"], table):
        out.write_text("old")
        result = run("export", *words)
        assert (9, "") == (result.exit_code, result.stdout)
        assert "--overwrite" in result.stderr
        assert "old" == out.read_text()

    replaced = run("export", *rows, "--dataset", chain.path, "--overwrite")
    folder = run("export", *table[:-1], tmp_path / "new", "--overwrite")

    assert (0, 3) == (replaced.exit_code, pl.read_csv(out).height)
    assert (2, [out]) == (folder.exit_code, list(tmp_path.iterdir()))


def test_export_follow_to_a_file(run, chain, tmp_path, monkeypatch):
    """An existing file is refused at first; later rounds write the file again."""
    out, waited = tmp_path / "epochs.csv", []

    def wait(seconds):
        waited.append(seconds)
        if waited.count(60) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("beaconframes.cli.export.time.sleep", wait)
    words = ["export", "epochs", "--since", "-3", "--follow", "1", "--dataset", chain.path]

    result = run(*words, "--out", out)

    assert (130, 2) == (result.exit_code, result.stdout.count(f"'{out}': 1 rows,"))
    assert 9 == run(*words, "--out", out).exit_code


def test_invalid_exports_are_refused(run, chain, tmp_path):
    """An image, a file of another kind, an unknown format, a folder that is not a dataset."""
    file = tmp_path / "file"
    file.write_text("old")
    for status, arguments in (
        (2, ["chart", "--out", tmp_path / "x"]),
        (2, ["epochs", "--dataset", chain.path, "--out", tmp_path / "x", "--format", "odt"]),
        (2, ["epochs", "--dataset", chain.path, "--out", file]),
        # C8: an unknown ending.
        (2, ["epochs", "--dataset", chain.path, "--out", tmp_path / "data.json"]),
        (9, ["dataset", tmp_path, "--out", tmp_path / "x"]),
    ):
        result = run("export", *arguments)
        assert (status, "") == (result.exit_code, result.stdout), arguments
        assert 1 == result.stderr.count("\n")
    assert "old" == file.read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell):
    """The environment variable of click prints it."""
    environment = {**os.environ, "_BEACONFRAMES_COMPLETE": f"{shell}_source"}
    result = subprocess.run(
        [sys.executable, "-c", "from beaconframes.cli import main; main()"],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip

    assert 0 == result.returncode
    assert f"_BEACONFRAMES_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pl"], ["plan", "plot"]),
        (["load", "inc"], ["income-history"]),
        (["load", "--v2", "rewards-"], ["rewards-aggregate"]),
        (["load", "income-history", "--val"], ["--validators"]),
        (["plot", "sync"], ["sync-participation", "sync-members"]),
        (["wall", "t"], ["timelapse"]),
        (["store", "prune", "--fi"], ["--first"]),
    ],
)
def test_words_are_completed(words, expected):
    """Commands, loaders of V1 and V2, charts and options."""
    shell = BashComplete(commands, {}, "beaconframes", "_BEACONFRAMES_COMPLETE")

    found = shell.get_completions(words[:-1], words[-1])

    assert expected == [item.value for item in found]


def test_completion_in_bash():
    """Bash sends the line and the number of the word."""
    environment = {
        **os.environ, "_BEACONFRAMES_COMPLETE": "bash_complete",
        "COMP_WORDS": "beaconframes pl", "COMP_CWORD": "1",
    }  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-m", "beaconframes"],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip

    assert "plain,plan\nplain,plot\n" == result.stdout


def test_program_and_module():
    """`beaconframes` and `python -m beaconframes` print the same help text."""
    script = Path(sys.executable).with_name("beaconframes")
    result = [
        subprocess.run([*way, "--help"], check=False, capture_output=True, text=True).stdout
        for way in ([str(script)], [sys.executable, "-m", "beaconframes"])
    ]

    assert result[0].startswith("Usage: beaconframes ")
    assert result[0] == result[1]


@pytest.mark.parametrize(
    "words", [("export",), ("export", "income-history"), ("export", "dataset")]
)
def test_the_help_of_exports_states_the_units(run, words):
    """Exports have no --unit: amounts stay exact, in the unit at the end of the column's name."""
    shown = " ".join(run(*words, "--help").output.split())

    assert "Amounts stay exact, in gwei and wei, as the names of columns end" in shown
    assert "load and analyse can write ether" in shown
