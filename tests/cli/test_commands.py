"""The commands demo, simulate and serve."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

from beaconframes import cli
from beaconframes.calendar import HOODI
from beaconframes.dataset import Dataset
from beaconframes.server import Server
from beaconframes.server.service import Service


@pytest.fixture(autouse=True)
def loggers():
    """Restore the loggers of the server: serve changes them for the rest of its process."""
    names = ("beaconframes.server", "beaconframes.server.access")
    found = [(logging.getLogger(name), dict(vars(logging.getLogger(name)))) for name in names]
    yield
    for logger, values in found:
        vars(logger).update(values)
        logger.setLevel(values["level"])  # forgets which levels are enabled


@pytest.fixture
def run():
    """Run a command in this process."""

    def invoke(*arguments):
        return CliRunner().invoke(cli.commands, list(arguments), catch_exceptions=False)

    return invoke


def paint_pixel_by_pixel(pixels):
    """Paint the wall in a plain loop."""
    wall = np.zeros((1000, 1000, 4), np.uint8)
    for x, y, color in pixels.sort("slot").select("x", "y", "color").rows():
        wall[y, x] = (*bytes.fromhex(color), 255)
    return wall


@pytest.mark.more
def test_demo_writes_pictures_and_an_exact_table(run, chain, small_sample, tmp_path):
    """Four pictures, an exact table, and the requests of each load; the wall is exact."""
    out = tmp_path / "out"

    result = run("demo", "--out", str(out))

    # G1: a validator that exited has no rows of later epochs, and none of them is missing.
    assert (0, "") == (result.exit_code, result.stderr)
    assert {
        "income.png", "yield_index.png", "sync_participation.png", "wall.png", "income.parquet"
    } == {file.name for file in out.iterdir()}  # fmt: skip
    income = pl.read_parquet(out / "income.parquet")
    # 32 validators, and five windows of up to 100 epochs.
    assert re.search(rf"income_history +{income.height:,} +5 ", result.output)
    # Half a day of epochs, a request each.
    assert re.search(r"epoch_slots +3,[0-9]{3} +112 ", result.output)
    first_32 = chain.scan("income_history").filter(
        pl.col("validator_index") < 32, pl.col("epoch") <= chain.meta["finalized_epoch"]
    )
    assert first_32.collect().height == income.height
    wall = paint_pixel_by_pixel(chain.scan("graffiti_wall").collect())
    rows, columns = (np.flatnonzero(wall[..., 3].any(axis=axis)) for axis in (1, 0))
    wall = wall[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    image = Image.open(out / "wall.png")
    assert "yes" == image.info["Simulated"]
    picture = np.asarray(image.convert("RGBA"))
    scale = picture.shape[0] // wall.shape[0]
    assert np.array_equal(wall.repeat(scale, axis=0).repeat(scale, axis=1), picture)
    for name in ("income.png", "yield_index.png", "sync_participation.png"):
        colours = Image.open(out / name).convert("RGB").getcolors(1 << 24)
        assert 20 < len(colours)


def test_an_interrupted_demo_leaves_no_half_written_picture(
    run, small_sample, tmp_path, monkeypatch
):
    """C03: a picture has its name only once it is complete."""

    def interrupt(_figure, target, **_options):
        Path(target).write_bytes(b"half of a picture")
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", interrupt)

    result = run("demo", "--out", str(tmp_path / "out"))

    assert (130, []) == (result.exit_code, list((tmp_path / "out").iterdir()))


@pytest.mark.long
def test_demo_as_json(run, small_sample, tmp_path):
    """The same counts and files as JSON; no row is missing."""
    result = run("demo", "--out", str(tmp_path / "out"), "--json")

    report = json.loads(result.stdout)
    assert (0, True) == (result.exit_code, report["complete"])
    assert [
        "income_history",
        "produced_blocks",
        "yield_index",
        "epoch_slots",
        "sync_committees",
        "graffiti_wall",
    ] == [loaded["table"] for loaded in report["loaded"]]
    assert all(Path(file).is_file() for file in report["files"])


def test_simulate_writes_a_dataset(run, tmp_path):
    """The folder is a dataset; the output lists its tables with their rows."""
    result = run("simulate", "--validators", "64", "--epochs", "8", "--out", str(tmp_path / "made"))

    assert 0 == result.exit_code
    assert re.search(r"epochs +8 rows", result.output)
    assert (tmp_path / "made" / "ledger.sqlite").exists()


def test_simulate_as_json(run, tmp_path):
    """E3, E9: the same as JSON, of hoodi at a given time; an existing folder is not changed."""
    options = ["simulate", "--validators", "64", "--epochs", "8", "--out", str(tmp_path / "made")]
    options += ["--chain", "hoodi", "--ends", "2026-11-22T12:00"]

    report = json.loads(run(*options, "--json").stdout)
    again = run(*options, "--json")

    assert 8 == report["tables"]["epochs"]["rows"]
    meta = Dataset.open(tmp_path / "made").meta
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    assert ("hoodi", HOODI.at("slot", noon)) == (meta["chain"]["name"], meta["latest_slot"])
    assert (9, "") == (again.exit_code, again.stdout)


@pytest.mark.more
def test_serve_with_keys_of_two_tiers(chain):
    """A free key is refused a premium endpoint; a request without a key is refused.

    The queues have their old shape.
    """
    keys = ["--key", "a:b:free", "--key", "larger:premium", "--old-queues"]
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", "serve", str(chain.path), "--port", "0", *keys],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = re.search(r"http://\S+", process.stdout.readline())[0]
        assert f"--url {url}, or with bf.connect({url!r})\n" in process.stdout.readline()
        statuses = [
            httpx.post(
                f"{url}/api/v2/ethereum/validators",
                json={"chain": "mainnet", "validator": {"entity": "Fyrlykt"}},
                headers={"Authorization": f"Bearer {key}"} if key else {},
            ).status_code
            for key in (None, "a:b", "larger")
        ]
        queues = httpx.post(
            f"{url}/api/v2/ethereum/queues",
            json={"chain": "mainnet"},
            headers={"Authorization": "Bearer larger"},
        ).json()["data"]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()

    assert [401, 403, 200] == statuses
    assert "withdrawal_sweep" in queues


@pytest.mark.parametrize("text", ["key", "key:", ":free", "key:gold"])
def test_serve_refuses_a_key_without_a_tier(run, text):
    """The error comes before the server starts."""
    result = run("serve", "--key", text)

    assert 2 == result.exit_code
    assert "KEY:free or KEY:premium" in result.output


@pytest.mark.parametrize(
    "option",
    [["--limits", "second=0"], ["--fault", "200"], ["--fault", "latency=80"], ["--origin", "*"]],
)
def test_serve_refuses_invalid_options(run, chain, option):
    """E4, E8: the error names the value, and no server starts."""
    result = run("serve", str(chain.path), "--port", "0", *option)

    assert 2 == result.exit_code
    assert option[1] in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--help",), "[default: 2000; 50<=x<=10000000]"),
        (("--help",), "[default: 1575; 8<=x<=10000000]"),
        (("--validators", "49"), "'--validators': 49 is not in the range 50<=x<=10000000"),
        (("--ends", "1900-01-01"), "--ends '1900-01-01' is before the genesis of mainnet, 2020-12"),
    ],
)
def test_limits_of_simulations(run, tmp_path, arguments, text):
    """The help and the errors state the limits of the simulator, and the value as it was given."""
    result = run("simulate", *arguments, "--out", str(tmp_path / "made"))

    assert (0 if arguments == ("--help",) else 2) == result.exit_code
    assert text in " ".join(result.output.split())


@pytest.mark.parametrize("end", ["2025-04-01", "7"])
def test_simulate_refuses_an_end_before_its_start(run, tmp_path, end):
    """E9: the error names the value; no folder is created."""
    options = ["--chain", "hoodi", "--epochs", "9999", "--ends", end]
    result = run("simulate", *options, "--out", str(tmp_path / "made"))

    assert 2 == result.exit_code
    assert ("--epochs 9999" if "-" in end else "--ends 7 is not a valid time") in result.stderr
    assert not (tmp_path / "made").exists()


def test_the_banner_of_serve(run, hoodi, monkeypatch):
    """E9, E10: it names the wire, the base URLs for other clients, and how the head moves."""
    monkeypatch.setattr(Server, "wait", lambda _: None)
    epoch = hoodi.meta["latest_epoch"] - 20
    options = ["--live", "--start", str(epoch), "--speed", "100"]
    result = run("serve", str(hoodi.path), "--port", "0", "--cache", "64MB", *options)

    assert 0 == result.exit_code
    assert re.search(r"V1 (http://127.0.0.1:\d+)/api/v1, V2 \1/api/v2/ethereum", result.stdout)
    assert "Wire: spec" in result.stdout
    assert "--wire public" in result.stdout
    assert f"Live from epoch {epoch} (2026-09-30 " in result.stdout
    assert "a slot every 12 s, 100 times as fast, until 2026-10-01 00:00 UTC" in result.stdout
    assert "use --live for a head" in run("serve", str(hoodi.path), "--port", "0").stdout
    frozen = Service(hoodi).describe_head()
    assert (
        f"The latest epoch stays epoch {epoch + 20} (2026-10-01 00:00 UTC); use live=True" in frozen
    )


@pytest.mark.more
def test_serve_refuses_requests_without_the_key(chain):
    """HTTP on loopback; with a key in the environment, requests without it are refused."""
    process = subprocess.Popen(
        [sys.executable, "-m", "beaconframes", "serve", str(chain.path), "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BEACONFRAMES_SERVE_KEY": "right"},
    )
    try:
        report = process.stdout.readline()
        url = json.loads(report)["url"]

        assert url.startswith("http://127.0.0.1:")
        assert str(chain.path) == json.loads(report)["dataset"]
        assert "right" not in report
        assert 401 == httpx.get(f"{url}/api/v1/latestState").status_code
        answer = httpx.get(f"{url}/api/v1/latestState", headers={"apikey": "right"})
        assert chain.meta["latest_epoch"] == answer.json()["data"]["currentEpoch"]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def test_an_error_is_one_line(run, tmp_path):
    """No traceback, an exit code, nothing on standard output."""
    result = run("serve", str(tmp_path), "--port", "0")

    assert 9 == result.exit_code
    assert "" == result.stdout
    assert 1 == result.stderr.count("\n")
    assert str(tmp_path) in result.stderr
