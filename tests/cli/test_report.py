"""``beaconframes report``: the answer, a file, JSON, and a folder of pages."""

import hashlib
import json
import sys
from datetime import date
from types import SimpleNamespace
from unittest.mock import Mock

import polars as pl
import pytest
from click.testing import CliRunner

from beaconframes import cli, v1
from beaconframes.errors import NotFound, QuotaSpent
from beaconframes.reports import archive, page


@pytest.fixture
def run(explorer, monkeypatch):
    """Run a command in this process, with the small chain on loopback."""
    monkeypatch.setattr(page, "render_svg", lambda picture: f'<svg id="{picture.name}"></svg>')

    def invoke(*arguments, **more):
        url = ["--url", explorer.url, "--no-progress"]
        return CliRunner().invoke(
            cli.commands, ["report", *arguments, *url], catch_exceptions=False, **more
        )

    return invoke


RANGE = ("--since", "440", "--until", "445")


def test_the_answer_is_printed(run):
    """Without --out: income, rates and the problems with the highest cost."""
    result = run("3,5", *RANGE)

    assert 0 == result.exit_code
    assert "2 of 2 validators active, 2026-10-02 10:56 to 2026-10-02 11:34 UTC" in result.output
    assert "net income" in result.output
    assert "effectiveness" in result.output
    # Advice and what is usual are in the frames, and on the page.
    assert "compounding" not in result.output


@pytest.mark.more
def test_a_report_without_an_input_has_an_exit_code(running, tmp_path, monkeypatch):
    """A scheduled report that is not complete ends like a load: exit code 3, and a warning."""

    def load_deposits(*_, **__):
        raise NotFound("the service does not have it")

    monkeypatch.setattr(v1, "load_deposits", load_deposits)
    options = (*RANGE, "--out", str(tmp_path / "report.html"), "--no-progress")
    arguments = ["report", "3", *options, "--url", running.url]
    result = CliRunner().invoke(cli.commands, arguments, catch_exceptions=False)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")

    assert 3 == result.exit_code
    (line,) = result.stderr.splitlines()
    assert line.startswith("beaconframes: warning: the report from 2026-10-02 is incomplete: load_")
    assert line.endswith("Numbers without these rows are marked")
    # The text of the warning is above the figures of the page.
    assert line.partition("incomplete: ")[2].partition(" failed")[0] in page.partition("<main>")[0]


@pytest.mark.more
def test_a_page_is_written(run, tmp_path):
    """A file is written once; --json reports it."""
    out = tmp_path / "report.html"

    result = run("3,5", *RANGE, "--out", str(out), "--json")

    assert (0, "") == (result.exit_code, result.stderr)
    assert {"file": str(out), "validators": 2}.items() <= json.loads(result.output).items()
    assert "Report on 2 validators" in out.read_text(encoding="utf-8")
    again = run("3,5", *RANGE, "--out", str(out))
    assert 9 == again.exit_code
    assert "--overwrite" in again.stderr
    replaced = run("3,5", *RANGE, "--out", str(out), "--overwrite")
    assert f"{out}: {out.stat().st_size:,} bytes\n" == replaced.output


@pytest.mark.more
def test_frames_as_json_of_groups_with_prices(run, tmp_path):
    """--json without --out prints all frames; files have groups and prices."""
    (tmp_path / "groups.csv").write_text("validator_index,group\n3,A\n5,B\n")
    (tmp_path / "prices.csv").write_text("time,eur\n2026-10-02,2500\n")
    files = ("--groups", f"{tmp_path}/groups.csv", "--prices", f"{tmp_path}/prices.csv")

    result = run(*files, "--price", "eur", *RANGE, "--json")

    printed = json.loads(result.output)
    assert (True, [], []) == tuple(printed[name] for name in ("complete", "missing", "warnings"))
    frames = printed["frames"]
    assert ["A", "B"] == [row["group"] for row in frames["validators"]]
    assert "eur" == frames["summary"][0]["currency"]
    assert "2500.00000000" == frames["value"][0]["eur"]


@pytest.mark.more
def test_files_saved_by_excel_are_read(run, tmp_path):
    """Its "CSV UTF-8" begins with a byte order mark, and lines end with CR and LF."""
    texts = {
        "groups": "validator_index,group\n3,A\n5,B\n",
        "prices": "time,eur\n2026-10-02,2500\n",
        "validators": "3\n5\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    files = (f"{tmp_path}/validators.csv", "--groups", f"{tmp_path}/groups.csv")

    result = run(*files, "--prices", f"{tmp_path}/prices.csv", "--price", "eur", *RANGE, "--json")

    printed = json.loads(result.output)
    assert (True, [], []) == tuple(printed[name] for name in ("complete", "missing", "warnings"))
    frames = printed["frames"]
    assert [(3, "A"), (5, "B")] == [
        (row["validator_index"], row["group"]) for row in frames["validators"]
    ]
    assert "2500.00000000" == frames["value"][0]["eur"]


def test_a_range_without_a_whole_period_is_warned_of(run, tmp_path):
    """The default of 30 days rarely has a whole month: "0 reports" did not say so."""
    result = run("3", "--since", "440", "--every", "1mo", "--out", str(tmp_path / "reports"))

    assert (0, f"{tmp_path}/reports: 0 reports\n") == (result.exit_code, result.stdout)
    assert "no whole period of 1mo from 2026-10-02 to 2026-10-0" in result.stderr
    assert "Give an earlier --since, or a shorter --every" in result.stderr


@pytest.mark.more
def test_a_folder_is_filled_and_resumed(run, tmp_path):
    """--every writes one page for each whole day, and only the missing ones later."""
    folder = tmp_path / "reports"

    first = run("3", "--since", "0", "--every", "1d", "--out", str(folder))

    names = sorted(path.name for path in folder.iterdir())
    expected = ["arguments.json", "index.html", "report-2026-10-01.html"]
    assert (0, expected) == (first.exit_code, names)
    stamp = (folder / names[2]).stat().st_mtime_ns
    again = run("3", "--since", "0", "--every", "1d", "--out", str(folder))
    assert (0, stamp) == (again.exit_code, (folder / names[2]).stat().st_mtime_ns)


def test_each_report_of_a_folder_has_one_period_and_the_chain_is_stated(run, tmp_path, monkeypatch):
    """Both ends of the day, and the chain, which another folder may not have."""
    made = Mock(side_effect=lambda **_: 1 / 0)
    monkeypatch.setattr(archive, "report", made)
    folder = tmp_path / "reports"

    run("3", "--since", "0", "--every", "1d", "--out", str(folder))

    day = date(2026, 10, 1)
    assert (day, day) == (made.call_args.kwargs["since"], made.call_args.kwargs["until"])
    stated = json.loads((folder / "arguments.json").read_text())
    assert {"VALIDATORS", "--groups", "--prices", "--tz", "--detail", "the chain"} == set(stated)


@pytest.mark.more
def test_reports_with_other_arguments_need_another_folder(run, tmp_path, monkeypatch):
    """The pages of a folder have the same validators, groups, currency and time zone."""
    folder = tmp_path / "reports"
    options = ("--since", "0", "--every", "1d", "--out", str(folder))
    assert 0 == run("3,5", *options).exit_code
    monkeypatch.setattr(archive, "report", lambda *_, **__: 1 / 0)
    (tmp_path / "groups.csv").write_text("validator_index,group\n3,A\n")
    (tmp_path / "prices.csv").write_text("time,eur\n2026-10-02,1\n")
    files = {name: f"{tmp_path}/{name}.csv" for name in ("groups", "prices")}

    for arguments, change in (
        (("3,5,7",), "VALIDATORS 2 validators before, 3 validators now"),
        (("3,7",), "VALIDATORS 2 validators before, others now"),
        (("3,5", "--tz", "Europe/Berlin"), "--tz UTC before, Europe/Berlin now"),
        (("3,5", "--groups", files["groups"]), "--groups not given before, 1 row now"),
        (("3,5", "--prices", files["prices"], "--price", "eur"), "--prices not given before, in e"),
    ):
        result = run(*arguments, *options)

        assert 2 == result.exit_code
        assert f"{folder} has reports with other arguments: {change}" in result.stderr
        assert "another folder with --out" in result.stderr
    assert 0 == run("5,3", *options).exit_code
    # A folder of an earlier version does not state its arguments.
    (folder / "arguments.json").unlink()
    assert 0 == run("3,5,7", *options).exit_code


def test_the_arguments_of_a_folder_state_the_groups():
    """Another group of a validator is another report; the order of the rows is not."""
    groups = pl.DataFrame({"validator_index": [3, 5], "pubkey": None, "group": ["A", "B"]})
    described = {
        name: archive.describe_arguments({"groups": frame})["--groups"]
        for name, frame in {
            "same": groups[::-1],
            "renamed": groups.with_columns(group=pl.Series(["A", "C"])),
        }.items()
    }

    # Earlier folders have the digest of pairs of an index and a group.
    digest = hashlib.sha256(b"(3, 'A')\n(5, 'B')").hexdigest()
    assert described["same"].startswith("2 rows")
    assert described["same"].endswith(digest)
    assert described["renamed"] != described["same"]


def test_validators_are_read_from_a_file_or_standard_input(run, tmp_path, monkeypatch):
    """As in every other command: a list on any number of lines, with comments."""
    from beaconframes.cli import report as module

    chosen = []
    monkeypatch.setattr(module, "make_report", lambda **given: chosen.append(given) or 1 / 0)
    (file := tmp_path / "validators.txt").write_text("3 # first\n\n5,7-8\n")

    for word, text in ((str(file), None), ("-", file.read_text()), ("3,5,7..8", None)):
        run(word, *RANGE, input=text)

    of_file, *others = (arguments["validators"] for arguments in chosen)
    assert [[3, 5, 7, 8]] * 3 == [of_file["validator_index"].to_list(), *others]


def test_the_report_of_a_spent_quota_is_written(run, monkeypatch):
    """It is incomplete, which the exit code says."""
    from beaconframes.cli import report as module

    error = QuotaSpent("the monthly quota is spent")
    error.report = SimpleNamespace(to_json=lambda: '{"frames": {}}')
    monkeypatch.setattr(module, "make_report", Mock(side_effect=error))

    result = run("3", *RANGE, "--json")

    printed = {"complete": False, "warnings": [], "missing": [], "frames": {}}
    assert (5, printed) == (result.exit_code, json.loads(result.stdout))
    assert "the monthly quota is spent" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [("440", 440), ("-5", -5), ("2026-10", "2026-10"), ("30d", "30d"), ("--5", "--5")],
)
def test_times_are_read_as_by_loaders(run, monkeypatch, text, expected):
    """A number is an epoch; any other text is parsed, or refused, with the range."""
    from beaconframes.cli import report as module

    chosen = []
    monkeypatch.setattr(module, "make_report", lambda **given: chosen.append(given) or 1 / 0)

    run("3", f"--since={text}", f"--until={text}")
    run("3")

    assert [(expected,) * 2, (None, None)] == [(a.get("since"), a.get("until")) for a in chosen]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tz", "Berlin"), "--tz 'Berlin' is not a time zone"),
        (("--out", "report.pdf"), "'report.pdf' cannot be written: its ending has no format. Use"),
        (("--every", "1d"), "--every needs --out with a folder"),
        (("--every", "2d", "--out", "reports"), "'--every': '2d' is not one of '1d', '1w', '1mo'"),
        (("--year", "2026", "--since", "3d"), "is a range already"),
        (
            ("--every", "1d", "--out", "all", "--year", "2026"),
            "--every and --year exclude each other",
        ),
        (("--since=--5",), "--since '--5' is not a valid time"),
        (("--groups", "no-file.csv"), "the file no-file.csv does not exist"),
        (("--prices", "no-file.csv"), "the file no-file.csv does not exist"),
        (("--groups", "wrong.csv"), "wrong.csv has no column group; its columns are validator_in"),
        (("--groups", "float.csv"), "line 3 of float.csv: '1.5' is not a valid validator_index"),
        (("--groups", "empty.csv"), "line 2 of empty.csv: '' is not a valid group"),
        (("--groups", "minus.csv"), "line 2 of minus.csv: '-1' is not a valid validator_index"),
        (("--groups", "header.csv"), "header.csv has no rows"),
        (("--groups", "twice.csv"), "line 3 of twice.csv: validator 1 is in several groups"),
    ],
)
def test_wrong_options_are_explained(run, arguments, message, tmp_path, monkeypatch):
    files = {"float": "1,A\n1.5,A\n", "empty": "3,\n", "minus": "-1,A\n", "header": ""}
    for name, text in (files | {"twice": "1,A\n1,B\n"}).items():
        (tmp_path / f"{name}.csv").write_text(f"validator_index,group\n{text}")
    (tmp_path / "wrong.csv").write_text("validator_index,machine\n3,A\n")
    monkeypatch.chdir(tmp_path)
    result = run("3", *arguments)

    assert (9 if "exist" in message else 2) == result.exit_code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sys.exc_info() == (None, None, None)
