"""The headless profile: what works without pandas, pyarrow, matplotlib and plotly."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.errors import UsageError
from beaconframes.exports.formats import parquet
from beaconframes.exports.formats.cells import CellOptions

ROOT = Path(__file__).parents[2]
LEFT_OUT = {"pandas", "pyarrow", "matplotlib", "plotly"}


ROWS = pl.DataFrame(
    {
        "validator_index": [1],
        "epoch": [100],
        "time": [datetime(2026, 10, 1, tzinfo=UTC)],
        "balance_gwei": [32_000_000_001],
        "effective_balance_gwei": [32_000_000_000],
        "slot": [3_200],
        "x": [1],
        "y": [1],
        "color": ["ff0000"],
    }
)
"""Columns of a chart and of the wall."""


def name_of(requirement):
    """Return the name of a package in a requirement."""
    return re.match(r"[\w.-]+", requirement)[0].lower()


def test_the_profile_has_all_other_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    dependencies = project["project"]["dependencies"]

    expected = [one for one in dependencies if name_of(one) not in LEFT_OUT]
    assert len(dependencies) - len(LEFT_OUT) == len(expected)
    assert expected == project["dependency-groups"]["headless"]


def test_the_lock_of_the_profile_has_the_versions_of_the_whole_one():
    """Every package with hashes, and without the address of an index."""
    text, whole = (
        (ROOT / name).read_text() for name in ("requirements-headless.txt", "requirements.lock")
    )
    pinned = re.findall(r"^[\w.-]+==[^ \\\n]+", text, re.MULTILINE)

    assert set(pinned) <= set(re.findall(r"^[\w.-]+==[^ \\\n]+", whole, re.MULTILINE))
    assert len(pinned) == len(re.findall(r"^[\w.-]+==.*\\\n    --hash=sha256:", text, re.MULTILINE))
    assert not LEFT_OUT & {name_of(one) for one in pinned}
    assert "://" not in text


@pytest.fixture
def without_them(monkeypatch):
    """Imports of the four fail, as if they were not installed."""
    for name in LEFT_OUT:
        for module in [each for each in sys.modules if each.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("package", "work"),
    [
        ("matplotlib", lambda rows, _: bf.plot.balances(rows)),
        ("plotly", lambda rows, _: bf.interactive.wall(rows)),
        ("plotly", lambda rows, _: bf.interactive.balances(rows)),
        ("pandas", lambda rows, _: bf.to_pandas(rows)),
        ("pyarrow", lambda rows, folder: bf.export(rows, folder / "rows.arrow")),
    ],
)
def test_what_needs_a_package_names_it(without_them, monkeypatch, tmp_path, package, work):
    monkeypatch.delitem(vars(bf), "plot", raising=False)
    for module in [each for each in sys.modules if each.startswith("beaconframes.plot")]:
        monkeypatch.delitem(sys.modules, module)

    with pytest.raises(UsageError) as caught:
        work(ROWS, tmp_path)

    assert f"needs the package {package}, which is not installed" in caught.value.message
    assert f"pip install {package}" == caught.value.hint


def test_a_parquet_file_in_parts_needs_no_pyarrow(without_them, tmp_path):
    parts = [pl.DataFrame({"x": [n, n + 1]}) for n in (0, 2, 4)]
    parquet.write(tmp_path / "rows.parquet", parts, CellOptions(is_simulated=True))

    assert_frame_equal(pl.concat(parts), pl.read_parquet(tmp_path / "rows.parquet"))
    assert "true" == pl.read_parquet_metadata(tmp_path / "rows.parquet")["simulated"]


TASKS = """
import sys, threading
for name in {left_out!r}:
    sys.modules[name] = None
from pathlib import Path

import polars as pl
from click.testing import CliRunner

import beaconframes as bf
from beaconframes.cli import commands
from tests.support.beacon_node_stub import BeaconNodeStub

folder = Path({folder!r})
with bf.open():
    income = bf.load_income_history(range(20), since="1d")
    blocks = bf.load_produced_blocks(range(200))
    assert blocks["block_hash"].str.len_chars().unique().to_list() == [66]
    rewards = bf.v2.load_rewards(range(5), since=-4, until=-4)
    days = bf.analysis.income(income, blocks=blocks, every="day")
    report = bf.report([1, 2, 3], since="1d")
    report.save(folder / "report.html")
    report.save_json(folder / "report.json")
    wall = bf.load_graffiti_wall(since=0)
    bf.wall.save(wall, folder / "wall.png")
    for suffix in ("parquet", "csv", "jsonl"):
        bf.export(income, folder / f"rows.{{suffix}}")
    for form in ("parquet", "csv"):
        bf.export(bf.load_income_history, folder / form, validators=range(5), since="2d",
                  format=form)
assert income.height and rewards.height and days.height and blocks.height
assert "Charts are left out: the package matplotlib" in (folder / "report.html").read_text()
with bf.local(store=folder / "store"):
    first = bf.load_income_history(range(5), since="1d")
    assert first.equals(bf.load_income_history(range(5), since="1d"))
with BeaconNodeStub("capella", head=130) as stub:
    assert bf.index(stub.url, folder / "index").height
    stop = threading.Event()
    followed = bf.follow(stub.url, folder / "followed", stop=stop, on_epoch=lambda _: stop.set())
    assert followed.height
    with bf.node(stub.url, store=False):
        assert bf.load_income_history([1, 2], since=5, until=8).height == 8
        assert bf.report([1, 2], since=5).summarize()
for line, code in {{
    "load validators --validators 1,2 --local": 0,
    "analyse income --validators 1-3 --since 1d --local": 0,
    "report 1,2 --since 1d --local": 0,
    f"export income-history --validators 1-3 --since 1d --local --out {{folder}}/exported": 0,
    f"plot income {{folder}}/rows.parquet --out {{folder}}/income.png": 2,
    f"demo --out {{folder}}/demo": 2,
}}.items():
    result = CliRunner().invoke(commands, line.split())
    assert result.exit_code == code, (line, result.output, result.exception)
    assert (code == 2) == ("needs the package matplotlib" in result.stderr), result.output
assert not [name for name in {left_out!r} if sys.modules[name] is not None]
"""


@pytest.mark.more
def test_tasks_of_a_server(tmp_path):
    """Loads, the store, an own node, analysis, a report, exports, the wall and commands."""
    program = TASKS.format(left_out=sorted(LEFT_OUT), folder=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stderr[-2000:]
