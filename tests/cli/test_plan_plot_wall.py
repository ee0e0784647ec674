"""`beaconframes plan`, `plot` and `wall`: estimates, charts and images."""

from __future__ import annotations

import inspect
import json
import re

import click
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from matplotlib import pyplot as plt
from PIL import Image, ImageSequence

import beaconframes as bf
from beaconframes import plot as charts
from beaconframes.charts import FRAMES
from beaconframes.cli import chart_input, commands, loader_options
from beaconframes.cli import plot as plots
from beaconframes.v1.sync_committees import SyncCommittees


@pytest.fixture
def run():
    """Run a command."""

    def invoke(*arguments):
        return CliRunner().invoke(commands, [*map(str, arguments)])

    return invoke


@pytest.fixture
def source(chain):
    """The option for the dataset of the small chain."""
    return ["--dataset", chain.path]


def test_a_plan(run, source, small_sample):
    """Text, or numbers as JSON: three requests of a hundred epochs for three validators."""
    options = ["income-history", "--validators", "1-3", "--since", "100", "--until", "399"]
    result = run("plan", *options, "--local")
    report = json.loads(run("plan", *options, "--local", "--json").stdout)
    from_files = json.loads(run("plan", *options, *source, "--json").stdout)

    assert 0 == result.exit_code
    assert result.stdout.startswith("load_income_history:\n  requests ")
    assert (3, 900, "load_income_history") == (report["requests"], report["rows"], report["loader"])
    assert (0, 900) == (from_files["requests"], from_files["rows"])


def test_a_plan_of_v2(run, source):
    """With --v2, as for load; invalid arguments are refused."""
    result = run("plan", "rewards", "--v2", "--validators", "1", *source, "--json")
    wrong = run("plan", "rewards", "--v2", "--validators", "one", *source)

    assert "load_rewards" == json.loads(result.stdout)["loader"].split(".")[-1]
    assert 2 == wrong.exit_code
    assert "" == wrong.stdout


NOT_OPTIONS = {"ax", "chain", "groups", "kwargs", "since", "until", "validators"}
LOADERS = {chart: loader for chart, loader in plots.list_charts().items() if loader}
"""The charts of the rows of a loader, and this loader."""
COMMANDS = {chart: plots.build_command(chart) for chart in LOADERS}


def test_every_chart_has_a_command_with_its_arguments():
    """All arguments except axes, keyword arguments and groups."""
    commands = {name.replace("-", "_") for name in plots.plot.list_commands(None)}
    assert set(charts.__all__) - {"alt_text", "style"} == commands
    for chart, command in COMMANDS.items():
        names = [parameter.name for parameter in command.params]
        assert len(set(names)) == len(names)
        arguments = inspect.signature(getattr(charts, chart.replace("-", "_"))).parameters
        assert {*list(arguments)[1:]} - NOT_OPTIONS <= set(names)
        assert "out" in names
        options = [option for option in command.params if isinstance(option, click.Option)]
        assert [] == [option.name for option in options if not option.help]


def test_the_help_of_a_chart_lists_the_choices_of_its_options(run):
    """Step 12, 8: --every, --unit, --by and the like; another value is an error with the list."""
    choices = {
        f"{chart} {option.opts[0]}": list(option.type.choices)
        for chart, command in COMMANDS.items()
        for option in command.params
        if isinstance(option.type, click.Choice)
    }
    texts = [
        option
        for chart, command in COMMANDS.items()
        for option in command.params
        if isinstance(option.default, str) and not isinstance(option.type, click.Choice)
    ]

    assert ["epoch", "day", "week", "month"] == choices["income --every"]
    assert ["eth", "gwei", "wei"] == choices["gas-fees --unit"]
    assert ["total", "validator"] == choices["balances --by"]
    assert ["slot", "epoch"] == choices["sync-participation --every"]
    assert ["color", "age", "overwrites", "territory"] == choices["wall --show"]
    assert [] == texts
    assert "--by [total|component|validator]" in run("plot", "income", "--help").stdout
    invalid = run("plot", "income", "x.parquet", "--every", "year", "--out", "x.png")
    assert (2, 1) == (invalid.exit_code, invalid.stderr.count("\n"))
    assert "'epoch', 'day', 'week', 'month'" in invalid.stderr


@pytest.mark.parametrize("chart", ["calendar", "effectiveness"])
def test_the_validators_of_a_chart_of_votes_are_those_to_load(run, chart):
    """The frame that leaves out penalties after an exit is an argument of Python only."""
    text = run("plot", chart, "--help").stdout

    assert "--validators LIST" in text
    assert "With --validators" not in text


LONG = pytest.mark.long


@pytest.mark.more
@pytest.mark.parametrize(
    "ending", ["png", *(pytest.param(ending, marks=LONG) for ending in ("svg", "pdf", "html"))]
)
def test_the_suffix_chooses_image_or_page(run, source, tmp_path, ending):
    """An image or an interactive page of loaded rows."""
    out = tmp_path / f"income.{ending}"
    result = run(
        "plot", "income", "--validators", "1,2", "--since", "-300", "--by", "component",
        "--out", out, "--json", *source,
    )  # fmt: skip

    report = json.loads(result.stdout)
    assert (0, True, str(out), 600) == (
        result.exit_code, report["complete"], report["file"], report["rows"],
    )  # fmt: skip
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype html>"}
    assert magic[ending] == out.read_bytes()[: len(magic[ending])]
    assert [out] == list(tmp_path.iterdir())


@pytest.mark.more
@pytest.mark.parametrize(
    "ending",
    ["csv", *(pytest.param(ending, marks=LONG) for ending in ("parquet", "jsonl", "arrow"))],
)
def test_a_chart_of_a_file(run, source, tmp_path, ending):
    """The chart of a file equals that of loaded rows, which are known to be simulated."""
    rows, drawn, loaded = tmp_path / f"rows.{ending}", tmp_path / "a.png", tmp_path / "b.png"
    options = ["--validators", "1,2", "--since", "-300", *source]
    run("load", "balance-history", *options, "--out", rows)

    shared = ["--caption", "", "--title", "Two", "--figsize", "5", "3"]
    result = run("plot", "balances", rows, *shared, "--out", drawn)
    run("plot", "balances", *options, *shared, "--out", loaded)

    assert (0, "") == (result.exit_code, result.stderr)
    assert np.array_equal(np.asarray(Image.open(drawn)), np.asarray(Image.open(loaded)))


OPTIONS = {"validators": "1,2", "since": "-2"}


FURTHER = {
    chart: [name for name, each in plots.list_options(chart).items() if each.is_required]
    for chart in LOADERS
} | {"luck": ["epochs", "committees", "proposals"]}
"""The further frames of a chart. Luck needs proposals or committees."""
SOME = ("attestations", "sync-members", "wall")


@pytest.mark.more
@pytest.mark.parametrize(
    "chart",
    [chart if chart in SOME else pytest.param(chart, marks=pytest.mark.more) for chart in LOADERS],
)
def test_every_chart_of_a_file(run, source, tmp_path, chart):
    """The file is enough; some charts need further files."""
    loader, rows, out = LOADERS[chart], tmp_path / "rows.parquet", tmp_path / "a.png"
    known = loader_options.list_arguments(loader_options.find_loader(loader))
    words = [w for n, text in OPTIONS.items() if n in known for w in (f"--{n}", text)]
    run("load", loader, *words, *source, "--out", rows)
    second = []
    for option in FURTHER[chart]:
        path, further = tmp_path / f"{option}.parquet", FRAMES[option].replace("_", "-")
        ranged = {"epochs": ["--since", "-2"], "proposals": ["--validators", "1,2"]}.get(
            further, []
        )
        run("load", further, *ranged, *source, "--out", path)
        second += [f"--{option.replace('_', '-')}", path]

    figures = plt.get_fignums()
    result = run("plot", chart, rows, *second, "--out", out)

    assert (0, "") == (result.exit_code, result.stderr)
    assert figures == plt.get_fignums()
    assert b"\x89PNG" == out.read_bytes()[:4]


@pytest.mark.parametrize(
    "ending",
    ["parquet", *(pytest.param(ending, marks=pytest.mark.more) for ending in
                  ("csv", "jsonl", "arrow"))],
)  # fmt: skip
def test_an_error_names_a_column_that_a_file_does_not_have(run, source, tmp_path, ending):
    """Such as a file of an earlier version."""
    rows, out = tmp_path / f"rows.{ending}", tmp_path / "a.png"
    words = ["--validators", "1", "--since", "-3", *source]
    run("load", "income-history", *words, "--columns", "validator_index,epoch,time", "--out", rows)

    result = run("plot", "income", rows, "--out", out)

    assert (2, False) == (result.exit_code, out.exists())
    assert re.search("(has no column |such as )([a-z_]+_gwei|[a-z_]+_wei)[;.]", result.stderr)


@pytest.mark.parametrize(
    "ending",
    ["parquet", *(pytest.param(ending, marks=pytest.mark.more) for ending in
                  ("csv", "jsonl", "arrow"))],
)  # fmt: skip
def test_a_file_in_another_unit(run, source, tmp_path, ending):
    """The error is one short line that says how to load the rows instead."""
    rows, out = tmp_path / f"rows.{ending}", tmp_path / "a.png"
    words = ["--validators", "1", "--since", "-3", "--unit", "eth", *source]
    run("load", "income-history", *words, "--out", rows)

    result = run("plot", "income", rows, "--out", out)

    assert (2, False) == (result.exit_code, out.exists())
    assert "Load it without --unit and --columns" in result.stderr
    assert len(result.stderr) < 300


@pytest.mark.more
def test_the_default_range_is_that_of_the_loader(run, source, tmp_path):
    """Duties that can still be included are pending in a file, and in a chart without one."""
    rows, drawn = tmp_path / "rows.parquet", [tmp_path / "a.png", tmp_path / "b.png"]
    validators = ["--validators", "1,2", *source]
    run("load", "attestations", *validators, "--out", rows)

    # A file does not say that its rows are simulated, as the caption does otherwise.
    same = ["--caption", ""]
    result = run("plot", "attestations", *validators, "--out", drawn[0], "--json", *same)
    of_file = run("plot", "attestations", rows, "--out", drawn[1], *same)
    chosen = run(
        "plot", "attestations", *validators, "--since", "-3", "--out", tmp_path / "c.png", "--json"
    )

    assert [0, 0] == [result.exit_code, of_file.exit_code]
    assert 2 * 100 == json.loads(result.stdout)["rows"]
    assert "pending" in pl.read_parquet(rows)["status"].to_list()
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    assert 2 * 3 == json.loads(chosen.stdout)["rows"]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl"])
def test_the_name_of_a_file_is_no_pattern(tmp_path, ending):
    """A bracket in it is itself; most readers of polars take it for a pattern."""
    rows = pl.DataFrame([[1], [0], [5], [256], [511]], schema=SyncCommittees.schema())
    file = tmp_path / f"rows [1].{ending}"
    bf.export(rows, file)
    for name in ("sync_committees", None):
        assert rows.equals(chart_input.read_file(file, name))


def test_a_file_excludes_options_of_the_load(run, tmp_path):
    """The message names the first of these options."""
    rows = tmp_path / "rows.parquet"

    result = run("plot", "attestations", rows, "--no-store", "--slim", "--out", tmp_path / "a.png")

    assert 2 == result.exit_code
    assert f"{rows} and --slim exclude each other" in result.stderr


@LONG
def test_a_chart_of_two_files(run, source, tmp_path):
    """The second frame is read from its own file."""
    committees, out = tmp_path / "committees.parquet", tmp_path / "members.png"
    run("load", "sync-committees", *source, "--out", committees)

    result = run("plot", "sync-members", *source, "--committees", committees, "--out", out)

    assert 0 == result.exit_code
    assert 20 < len(Image.open(out).convert("RGB").getcolors(1 << 24))


@LONG
def test_income_with_the_blocks_of_a_file(run, source, tmp_path):
    """M1: --blocks is a file of load produced-blocks; the picture then has no note."""
    blocks, outs = tmp_path / "blocks.parquet", [tmp_path / "fees.png", tmp_path / "paid.png"]
    run("load", "produced-blocks", "--producers", "1-3", *source, "--out", blocks)

    for out, more in zip(outs, ([], ["--blocks", blocks]), strict=True):
        result = run("plot", "income", "--validators", "1-3", *more, *source, "--out", out)
        assert 0 == result.exit_code

    assert outs[0].read_bytes() != outs[1].read_bytes()


@pytest.mark.more
def test_invalid_images(run, source, tmp_path):
    """One line each; no file is written or replaced."""
    there = tmp_path / "there.png"
    there.write_text("old")
    invalid = tmp_path / "rows.parquet"
    invalid.write_text("PAR1 no PAR1")
    other = tmp_path / "other.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(other)
    out = ["--out", tmp_path / "x.png"]
    for status, arguments in (
        (9, ["plot", "income", invalid, *out]),
        (9, ["plot", "income", tmp_path / "none.parquet", *out]),
        (2, ["plot", "income", other, *out]),
        (2, ["plot", "income", tmp_path / "rows.txt", *out]),
        (2, ["plot", "income", *source, *out]),
        (2, ["plot", "income", other, "--validators", "1", *out]),
        (2, ["plot", "income", other, *source, *out]),
        (2, ["plot", "income", other, "--out", tmp_path / "x.txt"]),
        (2, ["plot", "income", "--validators", "1", *source, "--every", "year", *out]),
        (9, ["plot", "income", other, "--out", there]),
        (9, ["wall", "save", other, "--out", there]),
        (2, ["wall", "save", *source, "--out", tmp_path / "x.jpg"]),
        (2, ["wall", "save", *source, "--region", "1,2", *out]),
        (2, ["wall", "timelapse", *source, "--since", "0", "--fps", "0", *out]),
    ):
        result = run(*arguments)

        assert (status, "") == (result.exit_code, result.stdout), arguments
        assert 1 == result.stderr.count("\n")
    assert "old" == there.read_text()
    assert {there, invalid, other} == set(tmp_path.iterdir())


def test_the_wall_as_an_image(run, source, chain, tmp_path):
    """The pixels equal those of Python; the metadata has the chain, and that it is simulated."""
    out, expected = tmp_path / "wall.png", tmp_path / "expected.png"
    pixels = chain.scan("graffiti_wall").collect()
    region = (0, 0, 999, 999)
    bf.wall.save(pixels, expected, region=region, background="#ffffff")

    result = run(
        "wall", "save", *source, "--since", "0", "--region", "0,0,999,999",
        "--background", "#ffffff", "--out", out, "--json",
    )  # fmt: skip

    assert (0, pixels.height) == (result.exit_code, json.loads(result.stdout)["rows"])
    picture = Image.open(out)
    assert ("yes", chain.meta["chain"]["name"]) == (
        picture.text["Simulated"],
        picture.text["Chain"],
    )
    assert np.array_equal(
        np.asarray(picture.convert("RGBA")), np.asarray(Image.open(expected).convert("RGBA"))
    )


@pytest.mark.parametrize(("options", "region"), [((), None), (("--region", "all"), "all")])
def test_the_painted_area_is_the_default_region(run, source, chain, tmp_path, options, region):
    """Without --region, an image is cropped; with "all", it is the whole wall."""
    out = tmp_path / "wall.png"
    pixels = chain.scan("graffiti_wall").collect()

    result = run("wall", "save", *source, "--since", "0", *options, "--out", out)

    assert 0 == result.exit_code, result.stderr
    with Image.open(out) as image:
        corners = bf.wall.render(pixels, region=region).info["region"]
        assert ",".join(map(str, corners)) == image.text["Region"]
        assert (region == "all") == (image.size == (1000, 1000))


@pytest.mark.more
@pytest.mark.parametrize("words", [("wall", "save"), ("plot", "wall")])
def test_only_the_region_of_an_image_is_loaded(run, source, chain, tmp_path, words):
    """The region of the image is that of the load, too."""
    pixels = chain.scan("graffiti_wall").collect()
    inside = pixels.filter(x=pixels["x"][0], y=pixels["y"][0]).height
    region = ",".join([f"{pixels['x'][0]},{pixels['y'][0]}"] * 2)

    result = run(
        *words, *source, "--since", "0", "--region", region, "--out", tmp_path / "a.png", "--json"
    )

    assert 0 == result.exit_code, result.stderr
    assert inside == json.loads(result.stdout)["rows"] < pixels.height


def test_the_holders_of_the_wall_by_name(run, source, tmp_path):
    """Names are a file, as of load validators; a file without names is an error."""
    rows, names = tmp_path / "wall.parquet", tmp_path / "names.parquet"
    run("load", "graffiti-wall", *source, "--since", "0", "--out", rows)
    pl.DataFrame({"validator_index": range(100)}).with_columns(name=pl.lit("Ada")).write_parquet(
        names
    )
    options = ("plot", "wall", rows, "--show", "territory", "--names")

    result = run(*options, names, "--out", tmp_path / "wall.svg")

    assert 0 == result.exit_code, result.stderr
    assert "Ada: " in (tmp_path / "wall.svg").read_text()
    assert "Painter: pixels" in (tmp_path / "wall.svg").read_text()
    wrong = run(*options, rows, "--out", tmp_path / "b.svg")
    assert 2 == wrong.exit_code
    assert "no column name" in wrong.stderr


@pytest.mark.more
def test_the_wall_as_an_animation(run, source, tmp_path):
    """An animation of a file; an existing file is replaced only with --overwrite."""
    rows, out = tmp_path / "wall.parquet", tmp_path / "wall.gif"
    run("load", "graffiti-wall", *source, "--since", "0", "--out", rows)

    result = run("wall", "timelapse", rows, "--frames", "5", "--out", out)
    every = run("wall", "timelapse", rows, "--every", "3000", "--overwrite", "--out", out)

    assert [0, 0] == [result.exit_code, every.exit_code]
    with Image.open(out) as film:
        assert 1 < film.n_frames
    heights = []
    for words in (["--dates"], ["--no-dates"]):
        options = ["--seconds", "4", "--hold", "1", "--every", "3000", "--overwrite"]
        result = run("wall", "timelapse", rows, *options, *words, "--scale", "5", "--out", out)
        assert 0 == result.exit_code, result.stderr
        with Image.open(out) as film:
            durations = [frame.info["duration"] for frame in ImageSequence.Iterator(film)]
            heights.append(film.height)
        assert 4000 == sum(durations)
        assert durations[-1] >= 1000 > durations[0]
    assert heights[0] > heights[1]


def test_the_plan_and_the_progress_of_a_picture(run, source, chain, tmp_path):
    """Rows are those of Python, of the whole wall; graffiti are those of pixels to paint."""
    pixels = chain.scan("graffiti_wall").collect()
    x, y = pixels.row(-1, named=True)["x"], pixels.row(-1, named=True)["y"]
    target, out = tmp_path / "logo.png", tmp_path / "plan.parquet"
    Image.new("RGB", (6, 4), "#" + pixels["color"][-1]).save(target)
    place = ("--at", min(x, 990), min(y, 990), "--width", 3)
    expected = bf.wall.plan(pixels, target, at=(min(x, 990), min(y, 990)), width=3, form="short")
    graffiti = expected.filter(is_right=False)["graffiti"].to_list()

    for name, text in (
        ("next.txt", "".join(f"{each}\n" for each in graffiti)),
        ("next.yaml", "ordered:\n" + "".join(f'- "{each}"\n' for each in graffiti)),
    ):
        options = ("--form", "short", "--graffiti", tmp_path / name, "--out", out, "--overwrite")
        result = run("wall", "plan", target, *source, *place, *options)

        assert 0 == result.exit_code, result.stderr
        assert expected.equals(pl.read_parquet(out))
        assert text == (tmp_path / name).read_text()
    assert 1 <= expected["is_right"].sum() < expected.height
    again = run("wall", "plan", target, *source, *place, "--graffiti", tmp_path / "next.txt")
    assert "" == again.stdout
    assert "already exists" in again.stderr

    result = run("wall", "progress", target, *source, *place, "--every", "12h", "--json")

    options = {"at": (min(x, 990), min(y, 990)), "width": 3, "every": "12h"}
    rows = bf.wall.progress(pixels, target, **options)
    data = json.loads(result.stdout)["data"]
    assert rows["right"].to_list() == [row["right"] for row in data]
    assert expected["is_right"].sum() == data[-1]["right"]
