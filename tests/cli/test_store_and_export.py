"""`beaconframes store`, `export` and `completion`."""

from __future__ import annotations

import contextlib
import json
import os
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
from beaconframes.cli import commands, export, nouns
from beaconframes.dataset import Dataset
from beaconframes.server import Server


@pytest.fixture
def run():
    """Run a command."""

    def invoke(*arguments):
        return CliRunner().invoke(commands, [*map(str, arguments)])

    return invoke


@pytest.fixture
def income(chain, tmp_path):
    """What a service tells of validators on mainnet, kept in a folder."""
    folder = tmp_path / "store"
    with Server(chain) as server:
        explorer = bf.Explorer(server.url, store=folder, head=server.service.head)
        with explorer:
            bf.load_income_history([1, 2, 3], since=100, until=199, explorer=explorer)
            bf.load_balance_history([1], since=100, until=109, explorer=explorer)
            return ["--store", explorer.local_store.path]


def test_what_the_store_has(run, income):
    """Its tables, as lines and as JSON, and what of a table is there of whom."""
    told = run("store", "show", *income)
    said = json.loads(run("store", "show", *income, "--json").stdout)
    table = json.loads(run("store", "show", "income_history", *income, "--json").stdout)

    assert 0 == told.exit_code
    assert str(income[1]) in told.stdout.splitlines()[0]
    assert {"income_history": 300, "balance_history": 10} == {
        row["table"]: row["rows"] for row in said["data"]
    }
    assert said["bytes"] == sum(f.stat().st_size for f in income[1].rglob("*") if f.is_file())
    assert [("1", 100, 199), ("2", 100, 199), ("3", 100, 199)] == sorted(
        (row["subject"], row["first"], row["last"]) for row in table["data"]
    )


def test_what_is_kept_is_loaded_again_without_asking(run, income):
    """Offline, from the same folder."""
    told = run(
        "load", "income-history", "--validators", "1-3", "--since", "150", "--until", "159",
        "--offline", "--json", *income,
    )  # fmt: skip
    more = run("load", "latest-state", "--offline", *income)

    said = json.loads(told.stdout)
    assert (0, 0, 30) == (told.exit_code, said["requests"], said["rows"])
    assert (2, "") == (more.exit_code, more.stdout)


def test_damage_is_found_and_mended(run, income):
    """It is named, with a status; after mending all is sound, and the rest is still there."""
    sound = run("store", "verify", *income)
    file = next((income[1] / "balance_history").glob("*.parquet"))
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1] + b"x")

    found = run("store", "verify", *income)
    said = json.loads(run("store", "verify", *income, "--json").stdout)
    mended = run("store", "mend", *income)

    assert [0, 9, 0] == [sound.exit_code, found.exit_code, mended.exit_code]
    assert file.name in found.stdout
    assert (False, "balance_history") == (said["sound"], said["damaged"][0]["table"])
    assert {"sound": True, "damaged": []} == json.loads(
        run("store", "verify", *income, "--json").stdout
    )
    assert "income_history" in Dataset.open(income[1]).tables()


def test_what_is_forgotten(run, income):
    """Some epochs of somebody, then a table, then everything; nothing without saying what."""
    some = ["income_history", "--validators", "2", "--first", "150", "--last", "199"]
    first = json.loads(run("store", "prune", *some, *income, "--json").stdout)
    table = json.loads(run("store", "prune", "balance_history", *income, "--json").stdout)
    everything = json.loads(run("store", "prune", "--all", *income, "--json").stdout)

    assert [(310, 260), (260, 250), (250, 0)] == [
        (said["rows_before"], said["rows"]) for said in (first, table, everything)
    ]
    for wrong in ([], ["x", "--all"], ["--all", "--first", "3"], ["nothing"]):
        told = run("store", "prune", *wrong, *income)
        assert (2, "") == (told.exit_code, told.stdout)


def test_compacting_keeps_every_row(run, income):
    """Said in rows and files."""
    told = run("store", "compact", *income)

    assert 0 == told.exit_code
    assert "310 rows in " in told.stdout
    assert "310 rows in 2 files now" in told.stdout


def test_the_store_needs_no_key(run, tmp_path, monkeypatch):
    """That of the public service, which has nothing yet; one that is switched off is told."""
    told = run("store", "show", "--store", tmp_path, "--json")
    monkeypatch.setenv("BEACONFRAMES_STORE", "false")
    off = run("store", "show")

    assert (9, 2) == (told.exit_code, off.exit_code)
    assert "there is no store" in told.stderr


@pytest.mark.parametrize("command", ["show", "verify", "mend", "compact", "prune"])
def test_a_store_that_is_not_there(run, income, tmp_path, command):
    """Neither sound nor empty: it is said that there is none, and which there are beside it."""
    file = tmp_path / "file"
    file.write_text("")
    words = ["store", command, *(["--all"] if command == "prune" else [])]
    for place, expected in (
        (income[1].parent, str(income[1])),
        (tmp_path / "none", "There is no folder"),
        (file, f"{file} is a file"),
    ):
        told = run(*words, "--store", place)

        assert (9, "") == (told.exit_code, told.stdout)
        assert "there is no store" in told.stderr
        assert expected in told.stderr
    assert "" == file.read_text()


def test_tables_are_called_as_nouns(run, income, chain, tmp_path):
    """With hyphens, as every other command takes them; one that is not there is refused."""
    shown = json.loads(run("store", "show", "income-history", *income, "--json").stdout)
    wrong = run("store", "show", "nope", *income)
    pruned = json.loads(run("store", "prune", "income-history", *income, "--json").stdout)
    words = ["export", "dataset", chain.path, "--table", "yield-index"]
    told = run(*words, "--out", tmp_path / "x.csv")

    assert ("income_history", 3) == (shown["table"], len(shown["data"]))
    assert (2, "") == (wrong.exit_code, wrong.stdout)
    assert "It has: balance_history, income_history" in wrong.stderr
    assert (310, 10) == (pruned["rows_before"], pruned["rows"])
    assert 0 == told.exit_code


def test_pruning_what_makes_no_sense(run, income):
    """It is refused instead of doing nothing; where nothing is kept of it, that is said."""
    for words in (
        ["--first", "5", "--last", "3"],
        ["--validators", "abc"],
        ["--validators", "1-x"],
        ["--validators", "0x" + "ab" * 48],
    ):
        told = run("store", "prune", "income_history", *words, *income)
        assert (2, "") == (told.exit_code, told.stdout), words
    nothing = run("store", "prune", "income_history", "--validators", "77", *income)

    assert 0 == nothing.exit_code
    assert "nothing of that is kept" in nothing.stderr
    assert "310 rows" in nothing.stdout


def test_pruning_by_public_key(run, chain, tmp_path):
    """A validator that was asked for by its key is forgotten by it; what has none is refused."""
    key = chain.scan("validators").filter(pl.col("validator_index") == 2).collect()["pubkey"][0]
    with Server(chain) as server:
        head = server.service.head
        with bf.Explorer(server.url, store=tmp_path / "store", head=head) as explorer:
            bf.load_income_history([1, key], since=100, until=109, explorer=explorer)
            bf.load_epochs(since=100, until=109, explorer=explorer)
            store = ["--store", explorer.local_store.path, "--json"]

    told = run("store", "prune", "income-history", "--validators", key, *store)
    left = json.loads(run("store", "show", "income-history", *store).stdout)
    epochs = run("store", "prune", "epochs", "--validators", "1", *store)

    said = json.loads(told.stdout)
    assert 10 == said["rows_before"] - said["rows"]
    assert ["1"] == [row["subject"] for row in left["data"]]
    assert 2 == epochs.exit_code
    assert "not kept by validator" in epochs.stderr


def test_no_option_of_an_export_hides_one_of_a_loader():
    """Every loader of rows can be exported with all its arguments."""
    for generation in (1, 2):
        for noun in nouns.nouns(generation):
            loader = nouns.loader_of(noun, generation)
            if not nouns.gives_a_picture(loader):
                assert set() == set(nouns.arguments(loader)) & set(export.NAMES)


def test_an_export_is_a_dataset(run, chain, tmp_path):
    """Rows, metadata and what was asked; the same again adds nothing."""
    out = tmp_path / "income"
    options = [
        "export", "income-history", "--validators", "1,2,3", "--since", "100", "--until", "199",
        "--dataset", chain.path, "--out", f"{out}/", "--creator", "Ada", "--license", "CC0-1.0",
    ]  # fmt: skip

    told = run(*options)
    again = json.loads(run(*options, "--json").stdout)

    assert 0 == told.exit_code
    assert f"{out}: 300 rows, " in told.stdout
    assert (True, 300, 0) == (again["complete"], again["rows"], again["added"])
    package = json.loads((out / "datapackage.json").read_text())
    assert "Ada" in json.dumps(package)
    assert 300 == pl.read_parquet(out / "income_history" / "**" / "*.parquet").height


def test_an_export_follows_the_chain(run, chain, tmp_path, monkeypatch):
    """Round after round it adds what is final by then, and what a service has done passes by."""
    waited, out = [], tmp_path / "income"
    with Server(chain) as server:
        head = server.service.head
        early = replace(head, epoch=200, finalized_epoch=198)
        rounds = iter([early, early, errors.ServerError("it has its troubles"), head])

        @contextlib.contextmanager
        def connected(_given):
            now = next(rounds)
            if isinstance(now, Exception):
                raise now
            with bf.Explorer(server.url, chain=server.service.chain, head=now) as explorer:
                yield explorer

        def wait(seconds):
            waited.append(seconds)
            if len(waited) == 4:
                raise KeyboardInterrupt

        monkeypatch.setattr("beaconframes.cli.asking.connected", connected)
        monkeypatch.setattr("beaconframes.cli.export.time.sleep", wait)
        options = ["--validators", "1,2", "--since", "190", "--follow", "15", "--json"]
        told = run("export", "income-history", *options, "--out", f"{out}/")

    assert [900] * 4 == waited
    said = list(documents(told.stdout))
    assert [198, head.finalized_epoch] == [one["until"] for one in said]
    assert [9 * 2, (head.finalized_epoch - 189) * 2] == [one["rows"] for one in said]
    assert "it has its troubles; asked again in 15 minutes" in told.stderr


def documents(text):
    """Each JSON document of a text that has several."""
    while text := text.lstrip():
        found, end = json.JSONDecoder().raw_decode(text)
        text = text[end:]
        yield found


def test_following_has_no_end(run, tmp_path):
    """With an end there is nothing to follow; and it waits for minutes, not for ever."""
    words = ["export", "income-history", "--validators", "1", "--out", tmp_path / "out"]
    for more in (
        ["--until", "9", "--follow", "5"],
        *(["--follow", text] for text in ("0", "-1", "soon", "nan", "inf", "-inf", "1e300")),
    ):
        told = run(*words, *more)

        assert (2, "") == (told.exit_code, told.stdout)
        assert "follow" in told.stderr


def test_an_export_with_gaps_is_no_success(run, chain, tmp_path):
    """What came is there; status and JSON tell that it is not all."""
    words = ["export", "validators", "--validators", "1,5000-5999", "--dataset", chain.path]
    told = run(*words, "--out", tmp_path / "out.parquet", "--json")
    file = run(*words, "--out", tmp_path / "out.csv")
    folder = run(*words, "--out", tmp_path / "out")

    assert [3, 3, 3] == [told.exit_code, file.exit_code, folder.exit_code]
    assert "1,000 gaps: validator_index 5000; " in file.stderr
    assert "more, which --json names" in file.stderr
    assert "manifest" not in file.stderr
    assert "1,000 gaps, named in the manifest" in folder.stderr
    assert json.loads(told.stdout)["complete"] is False
    assert 1 == pl.read_parquet(tmp_path / "out.parquet").height


def test_a_dataset_is_exported_into_a_file(run, chain, tmp_path):
    """One of its tables, in another format."""
    out = tmp_path / "epochs.csv"

    told = run("export", "dataset", chain.path, "--table", "epochs", "--out", out)

    assert 0 == told.exit_code
    assert chain.scan("epochs").collect().height == pl.read_csv(out).height


def test_an_export_replaces_a_file_only_on_demand(run, chain, tmp_path):
    """Of a loader and of a dataset; nothing is asked before that, and a dataset is no file."""
    out = tmp_path / "epochs.csv"
    rows = ["epochs", "--since", "100", "--until", "102", "--out", out]
    table = ["dataset", chain.path, "--table", "epochs", "--out", out]
    for words in ([*rows, "--url", "http://127.0.0.1:9"], table):
        out.write_text("mine")
        told = run("export", *words)
        assert (9, "") == (told.exit_code, told.stdout)
        assert "--overwrite" in told.stderr
        assert "mine" == out.read_text()

    replaced = run("export", *rows, "--dataset", chain.path, "--overwrite")
    folder = run("export", *table[:-1], tmp_path / "new", "--overwrite")

    assert (0, 3) == (replaced.exit_code, pl.read_csv(out).height)
    assert (2, [out]) == (folder.exit_code, list(tmp_path.iterdir()))


def test_following_replaces_its_own_file(run, chain, tmp_path, monkeypatch):
    """What is there is refused at first; later rounds write the file again."""
    out, waited = tmp_path / "epochs.csv", []

    def wait(seconds):
        waited.append(seconds)
        if waited.count(60) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("beaconframes.cli.export.time.sleep", wait)
    words = ["export", "epochs", "--since", "-3", "--follow", "1", "--dataset", chain.path]

    told = run(*words, "--out", out)

    assert (130, 2) == (told.exit_code, told.stdout.count(f"{out}: 1 rows"))
    assert 9 == run(*words, "--out", out).exit_code


def test_exports_that_cannot_be(run, chain, tmp_path):
    """A picture, a place of something else, a format that nobody knows."""
    file = tmp_path / "file"
    file.write_text("mine")
    for status, arguments in (
        (2, ["chart", "--out", tmp_path / "x"]),
        (2, ["epochs", "--dataset", chain.path, "--out", tmp_path / "x", "--format", "odt"]),
        (2, ["epochs", "--dataset", chain.path, "--out", file]),
        (9, ["dataset", tmp_path, "--out", tmp_path / "x"]),
    ):
        told = run("export", *arguments)
        assert (status, "") == (told.exit_code, told.stdout), arguments
        assert 1 == told.stderr.count("\n")
    assert "mine" == file.read_text()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_needs_to_complete(run, shell):
    """The script of each; another shell is refused."""
    told = run("completion", shell)

    assert 0 == told.exit_code
    assert f"_BEACONFRAMES_COMPLETE={shell}_complete" in told.stdout
    assert 2 == run("completion", "tcsh").exit_code


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
    """Commands, nouns of both generations, charts and options."""
    shell = BashComplete(commands, {}, "beaconframes", "_BEACONFRAMES_COMPLETE")

    found = shell.get_completions(words[:-1], words[-1])

    assert expected == [item.value for item in found]


def test_a_shell_is_told():
    """As bash asks: by the whole line and which word of it."""
    environment = {
        **os.environ, "_BEACONFRAMES_COMPLETE": "bash_complete",
        "COMP_WORDS": "beaconframes pl", "COMP_CWORD": "1",
    }  # fmt: skip
    told = subprocess.run(
        [sys.executable, "-m", "beaconframes"],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip

    assert "plain,plan\nplain,plot\n" == told.stdout


def test_both_ways_to_start_are_the_same():
    """`beaconframes` beside this Python, and `python -m beaconframes`."""
    script = Path(sys.executable).with_name("beaconframes")
    told = [
        subprocess.run([*way, "--help"], check=False, capture_output=True, text=True).stdout
        for way in ([str(script)], [sys.executable, "-m", "beaconframes"])
    ]

    assert told[0].startswith("Usage: beaconframes ")
    assert told[0] == told[1]
