"""The command line, as a user types it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import platformdirs
import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

from beaconframes import cli, simulator


@pytest.fixture
def run():
    """Run a command in this process."""

    def invoke(*arguments):
        return CliRunner().invoke(cli.commands, list(arguments), catch_exceptions=False)

    return invoke


@pytest.fixture
def small_sample(chain, tmp_path, monkeypatch):
    """The kept sample is the small chain of the tests."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_: tmp_path)
    simulator.sample_path().symlink_to(chain.path)


def painted_one_by_one(pixels):
    """The wall as a plain loop paints it."""
    wall = np.zeros((1000, 1000, 4), np.uint8)
    for x, y, color in pixels.sort("slot").select("x", "y", "color").rows():
        wall[y, x] = (*bytes.fromhex(color), 255)
    return wall


def test_the_demo_leaves_five_files_and_a_table(run, chain, small_sample, tmp_path):
    """Four pictures, an exact table, and what each load took; the wall to the pixel."""
    out = tmp_path / "out"

    told = run("demo", "--out", str(out))

    # The validator that left before the last epochs has no rows of them, and that is said.
    assert 3 == told.exit_code
    assert "warning: " in told.stderr
    assert {
        "income.png", "yield_index.png", "sync_participation.png", "wall.png", "income.parquet"
    } == {file.name for file in out.iterdir()}  # fmt: skip
    income = pl.read_parquet(out / "income.parquet")
    # Fifteen pages, and one to see that the validator which left before the last epochs has none.
    assert re.search(rf"income_history +{income.height:,} +16 ", told.output)
    first_250 = chain.scan("income_history").filter(
        pl.col("validator_index") < 250, pl.col("epoch") <= chain.meta["finalized_epoch"]
    )
    assert first_250.collect().height == income.height
    wall = painted_one_by_one(chain.scan("graffiti_wall").collect())
    assert np.array_equal(wall, np.asarray(Image.open(out / "wall.png").convert("RGBA")))
    for name in ("income.png", "yield_index.png", "sync_participation.png"):
        colours = Image.open(out / name).convert("RGB").getcolors(1 << 24)
        assert 20 < len(colours)


@pytest.mark.long
def test_the_demo_tells_machines(run, small_sample, tmp_path):
    """The same counts and files as JSON; a part is told there as well."""
    told = run("demo", "--out", str(tmp_path / "out"), "--json")

    said = json.loads(told.stdout)
    assert (3, False) == (told.exit_code, said["complete"])
    assert ["income_history", "yield_index", "epoch_slots", "sync_committees", "graffiti_wall"] == [
        loaded["table"] for loaded in said["loaded"]
    ]
    assert all(Path(file).is_file() for file in said["files"])


def test_simulate_says_what_it_wrote(run, tmp_path):
    """A folder that is a dataset, and its tables with their rows."""
    told = run("simulate", "--validators", "64", "--epochs", "8", "--out", str(tmp_path / "made"))

    assert 0 == told.exit_code
    assert re.search(r"epochs +8 rows", told.output)
    assert (tmp_path / "made" / "ledger.sqlite").exists()


def test_simulate_tells_machines(run, tmp_path):
    """As JSON; what is there already is left alone."""
    options = ["simulate", "--validators", "64", "--epochs", "8", "--out", str(tmp_path / "made")]

    said = json.loads(run(*options, "--json").stdout)
    again = run(*options, "--json")

    assert 8 == said["tables"]["epochs"]["rows"]
    assert (9, "") == (again.exit_code, again.stdout)


def test_serve_knows_the_tier_of_each_key(chain):
    """A free key is refused what a premium one is given; without a key nobody is answered."""
    keys = ["--key", "a:b:free", "--key", "larger:premium"]
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", "serve", str(chain.path), "--port", "0", *keys],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        assert f"load with --dataset {chain.path}, not --url\n" in process.stdout.readline()
        statuses = [
            httpx.post(
                f"{url}/api/v2/ethereum/validators",
                json={"chain": "mainnet", "validator": {"entity": "Fyrlykt"}},
                headers={"Authorization": f"Bearer {key}"} if key else {},
            ).status_code
            for key in (None, "a:b", "larger")
        ]
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()

    assert [401, 403, 200] == statuses


@pytest.mark.parametrize("text", ["key", "key:", ":free", "key:gold"])
def test_serve_refuses_a_key_of_no_tier(run, text):
    """Before anything is served."""
    told = run("serve", "--key", text)

    assert 2 == told.exit_code
    assert "KEY:free or KEY:premium" in told.output


def test_serve_answers_until_it_is_stopped(chain):
    """On loopback, over HTTP; with a key in the environment only to those who know it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", "serve", str(chain.path), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BEACONFRAMES_SERVE_KEY": "right"},
    )
    try:
        said = process.stdout.readline()
        url = json.loads(said)["url"]

        assert url.startswith("http://127.0.0.1:")
        assert str(chain.path) == json.loads(said)["dataset"]
        assert "right" not in said
        assert 401 == httpx.get(f"{url}/api/v1/latestState").status_code
        answer = httpx.get(f"{url}/api/v1/latestState", headers={"apikey": "right"})
        assert chain.meta["latest_epoch"] == answer.json()["data"]["currentEpoch"]
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def test_an_error_is_one_line(run, tmp_path):
    """No traceback, an exit status, nothing on standard output."""
    told = run("serve", str(tmp_path), "--port", "0")

    assert 9 == told.exit_code
    assert "" == told.stdout
    assert 1 == told.stderr.count("\n")
    assert str(tmp_path) in told.stderr
