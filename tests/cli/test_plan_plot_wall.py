"""`beaconframes plan`, `plot` and `wall`: what a load takes, and pictures of rows."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from matplotlib import pyplot as plt
from PIL import Image

import beaconframes as bf
from beaconframes import plot as charts
from beaconframes.cli import commands, nouns
from beaconframes.cli import plot as plots


@pytest.fixture
def run():
    """Run a command."""

    def invoke(*arguments):
        return CliRunner().invoke(commands, [*map(str, arguments)])

    return invoke


@pytest.fixture
def served(chain):
    """The options that ask a local explorer of the small chain."""
    return ["--dataset", chain.path]


def test_a_plan_asks_for_nothing(run, served):
    """Words for people, numbers for machines: three times a hundred epochs of three validators."""
    options = ["income-history", "--validators", "1-3", "--since", "100", "--until", "399", *served]
    told = run("plan", *options)
    said = json.loads(run("plan", *options, "--json").stdout)

    assert 0 == told.exit_code
    assert told.stdout.startswith("load_income_history:\n  requests ")
    assert (3, 900, "load_income_history") == (said["requests"], said["rows"], said["loader"])


def test_a_plan_of_generation_2(run, served):
    """By --v2, as for load; what the loader would refuse is refused."""
    told = run("plan", "rewards", "--v2", "--validators", "1", *served, "--json")
    wrong = run("plan", "rewards", "--v2", "--validators", "one", *served)

    assert "load_rewards" == json.loads(told.stdout)["loader"].split(".")[-1]
    assert 2 == wrong.exit_code
    assert "" == wrong.stdout


def test_every_chart_has_a_command_with_its_arguments():
    """Those of the functions, but for axes, keywords of libraries and groups."""
    assert set(charts.__all__) - {"style"} == {name.replace("-", "_") for name in plots.CHARTS}
    for chart in plots.CHARTS:
        command = plots.command(chart)
        names = [parameter.name for parameter in command.params]
        assert len(set(names)) == len(names)
        assert {name for name, _ in plots.looks(chart)} <= set(names)
        assert "out" in names


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "ending", ["png", *(pytest.param(ending, marks=LONG) for ending in ("svg", "pdf", "html"))]
)
def test_a_chart_by_its_ending(run, served, tmp_path, ending):
    """A picture, or a page to look into, from rows that are loaded."""
    out = tmp_path / f"income.{ending}"
    told = run(
        "plot", "income", "--validators", "1,2", "--since", "-300", "--by", "component",
        "--out", out, "--json", *served,
    )  # fmt: skip

    said = json.loads(told.stdout)
    assert (0, True, str(out), 600) == (
        told.exit_code, said["complete"], said["file"], said["rows"],
    )  # fmt: skip
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype html>"}
    assert begins[ending] == out.read_bytes()[: len(begins[ending])]
    assert [out] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "ending",
    ["csv", *(pytest.param(ending, marks=LONG) for ending in ("parquet", "jsonl", "arrow"))],
)
def test_a_chart_of_a_file(run, served, tmp_path, ending):
    """What load has written is drawn the same as what is loaded."""
    rows, drawn, loaded = tmp_path / f"rows.{ending}", tmp_path / "a.png", tmp_path / "b.png"
    options = ["--validators", "1,2", "--since", "-300", *served]
    run("load", "balance-history", *options, "--out", rows)

    told = run("plot", "balances", rows, "--out", drawn)
    run("plot", "balances", *options, "--out", loaded)

    assert (0, "") == (told.exit_code, told.stderr)
    assert np.array_equal(np.asarray(Image.open(drawn)), np.asarray(Image.open(loaded)))


OPTIONS = {"validators": "1,2", "since": "-2"}


SOME = ("attestations", "sync-members", "wall")


@pytest.mark.parametrize(
    "chart",
    [
        chart if chart in SOME else pytest.param(chart, marks=pytest.mark.more)
        for chart in plots.CHARTS
    ],
)
def test_every_chart_of_a_file(run, served, tmp_path, chart):
    """Nothing but the file is needed; where a second one is, that one too."""
    noun, rows, out = plots.CHARTS[chart], tmp_path / "rows.parquet", tmp_path / "a.png"
    known = nouns.arguments(nouns.loader_of(noun))
    words = [w for n, text in OPTIONS.items() if n in known for w in (f"--{n}", text)]
    run("load", noun, *words, *served, "--out", rows)
    beside = []
    if chart == "sync-members":
        beside = ["--committees", tmp_path / "committees.parquet"]
        run("load", "sync-committees", *served, "--out", beside[1])

    figures = plt.get_fignums()
    told = run("plot", chart, rows, *beside, "--out", out)

    assert (0, "") == (told.exit_code, told.stderr)
    assert figures == plt.get_fignums()
    assert b"\x89PNG" == out.read_bytes()[:4]


@pytest.mark.parametrize(
    "ending",
    ["parquet", *(pytest.param(ending, marks=pytest.mark.more) for ending in
                  ("csv", "jsonl", "arrow", "xlsx", "duckdb"))],
)  # fmt: skip
def test_a_file_in_another_unit(run, served, tmp_path, ending):
    """A chart of it is refused in one short line that tells how to load it instead."""
    rows, out = tmp_path / f"rows.{ending}", tmp_path / "a.png"
    words = ["--validators", "1", "--since", "-3", "--unit", "eth", *served]
    run("load", "income-history", *words, "--out", rows)

    told = run("plot", "income", rows, "--out", out)

    assert (2, False) == (told.exit_code, out.exists())
    assert "Load it without --unit and --columns" in told.stderr
    assert len(told.stderr) < 300


def test_duties_that_lie_ahead_are_not_drawn(run, served, tmp_path, chain):
    """Without a range it ends with the last epoch that is over, as the help says."""
    rows, drawn = tmp_path / "rows.parquet", [tmp_path / "a.png", tmp_path / "b.png"]
    running = chain.meta["latest_epoch"]
    whom = ["--validators", "1,2", *served]
    run("load", "attestations", *whom, "--until", running - 1, "--since", "-100", "--out", rows)

    told = run("plot", "attestations", *whom, "--out", drawn[0], "--json")
    of_file = run("plot", "attestations", rows, "--out", drawn[1])
    asked = run(
        "plot", "attestations", *whom, "--since", "-3", "--out", tmp_path / "c.png", "--json"
    )

    assert [0, 0] == [told.exit_code, of_file.exit_code]
    assert 2 * 99 == json.loads(told.stdout)["rows"]
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert 2 * 3 == json.loads(asked.stdout)["rows"]
    assert "up to the epoch before" in " ".join(run("plot", "attestations", "-h").stdout.split())


def test_the_option_that_does_not_go_with_a_file(run, tmp_path):
    """The one that was typed is named, the first in the order of the help."""
    rows = tmp_path / "rows.parquet"

    told = run("plot", "attestations", rows, "--no-store", "--slim", "--out", tmp_path / "a.png")

    assert 2 == told.exit_code
    assert f"{rows} and --slim do not go together" in told.stderr


@LONG
def test_a_chart_of_two_files(run, served, tmp_path):
    """What stands beside the rows comes from a file of its own."""
    committees, out = tmp_path / "committees.parquet", tmp_path / "members.png"
    run("load", "sync-committees", *served, "--out", committees)

    told = run("plot", "sync-members", *served, "--committees", committees, "--out", out)

    assert 0 == told.exit_code
    assert 20 < len(Image.open(out).convert("RGB").getcolors(1 << 24))


def test_pictures_that_cannot_be(run, served, tmp_path):
    """Each is refused in one line, nothing is written and nothing replaced."""
    there = tmp_path / "there.png"
    there.write_text("old")
    nonsense = tmp_path / "rows.parquet"
    nonsense.write_text("PAR1 no PAR1")
    other = tmp_path / "other.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(other)
    out = ["--out", tmp_path / "x.png"]
    for status, arguments in (
        (9, ["plot", "income", nonsense, *out]),
        (9, ["plot", "income", tmp_path / "none.parquet", *out]),
        (2, ["plot", "income", other, *out]),
        (2, ["plot", "income", tmp_path / "rows.txt", *out]),
        (2, ["plot", "income", *served, *out]),
        (2, ["plot", "income", other, "--validators", "1", *out]),
        (2, ["plot", "income", other, *served, *out]),
        (2, ["plot", "income", other, "--out", tmp_path / "x.txt"]),
        (2, ["plot", "income", "--validators", "1", *served, "--every", "year", *out]),
        (9, ["plot", "income", other, "--out", there]),
        (9, ["wall", "save", other, "--out", there]),
        (2, ["wall", "save", *served, "--out", tmp_path / "x.jpg"]),
        (2, ["wall", "save", *served, "--region", "1,2", *out]),
        (2, ["wall", "timelapse", *served, "--since", "0", "--fps", "0", *out]),
    ):
        told = run(*arguments)

        assert (status, "") == (told.exit_code, told.stdout), arguments
        assert 1 == told.stderr.count("\n")
    assert "old" == there.read_text()
    assert {there, nonsense, other} == set(tmp_path.iterdir())


def test_the_wall_as_a_file(run, served, chain, tmp_path):
    """The same as from Python, to the pixel; it tells the chain and that it is simulated."""
    out, expected = tmp_path / "wall.png", tmp_path / "expected.png"
    pixels = chain.scan("graffiti_wall").collect()
    region = (0, 0, 999, 999)
    bf.wall.save(pixels, expected, region=region, background="#ffffff")

    told = run(
        "wall", "save", *served, "--since", "0", "--region", "0,0,999,999",
        "--background", "#ffffff", "--out", out, "--json",
    )  # fmt: skip

    assert (0, pixels.height) == (told.exit_code, json.loads(told.stdout)["rows"])
    picture = Image.open(out)
    assert ("yes", chain.meta["chain"]["name"]) == (
        picture.text["Simulated"],
        picture.text["Chain"],
    )
    assert np.array_equal(
        np.asarray(picture.convert("RGBA")), np.asarray(Image.open(expected).convert("RGBA"))
    )


def test_the_wall_as_it_was_painted(run, served, tmp_path):
    """An animation, of a file of load as well; what is there is replaced on demand."""
    rows, out = tmp_path / "wall.parquet", tmp_path / "wall.gif"
    run("load", "graffiti-wall", *served, "--since", "0", "--out", rows)

    told = run("wall", "timelapse", rows, "--frames", "5", "--out", out)
    every = run("wall", "timelapse", rows, "--every", "3000", "--overwrite", "--out", out)

    assert [0, 0] == [told.exit_code, every.exit_code]
    with Image.open(out) as film:
        assert 1 < film.n_frames
