"""Size and time of an installation, of each extra, and of the environment of developers.

Builds the wheel, downloads with pip what it needs, and installs it without network in new
environments, in the versions of ``requirements.lock``. Writes the tables of
``docs/installation.md``. It needs some minutes and 5 GB. ``--setup FOLDER`` measures an environment
of ``make setup`` that exists, instead of making one.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "installation.md"
LARGEST = 10
PURPOSES = {
    "lab": "JupyterLab, and progress bars as widgets",
    "excel": "Excel files",
    "duckdb": "analysis in DuckDB",
    "dask": "analysis in Dask",
    "spark": "analysis in PySpark",
    "cloud": "exports to object stores, such as S3",
    "video": "videos of the graffiti wall: MP4 and WebM",
    "static": "pictures of interactive charts, drawn in Chrome",
}
PIP = ("python3", "-m", "pip", "--disable-pip-version-check", "-qq")
"""`.venv` has no pip."""


def run(*command: str | Path, **options: object) -> None:
    """Run a command without its output."""
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, **options)


def measure(*command: str | Path, **options: object) -> float:
    """Run a command and return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder, or of one file."""
    paths = folder.rglob("*") if folder.is_dir() else [folder]
    return sum(path.lstat().st_size for path in paths if not path.is_dir())


def packages(environment: Path) -> dict[str, int]:
    """Return the packages of an environment with their bytes."""
    folders = [str(path) for path in environment.glob("lib/python*/site-packages")]
    return {
        one.metadata["Name"]: sum(
            Path(str(file.locate())).stat().st_size
            for file in one.files or []
            if Path(str(file.locate())).is_file()
        )
        for one in distributions(path=folders)
    }


def megabytes(count: float) -> str:
    """Return bytes as text in MB."""
    return f"{count / 1e6:,.0f} MB"


def table(header: str, rows: list[str]) -> str:
    """Return a table in Markdown."""
    columns = header.count("|") - 1
    return "\n".join([header, "|" + " --- |" * columns, *rows])


def measure_extras(work: Path) -> tuple[str, str]:
    """Return the table of the extras, and of the largest packages of the core."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", work, cwd=ROOT)
    (wheel,) = work.glob("*.whl")
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    constraints = work / "constraints.txt"
    constraints.write_text(re.sub(r" *\\$|^ *--hash.*\n", "", lock, flags=re.MULTILINE))

    def install(name: str, environment: Path) -> tuple[int, float]:
        """Return the downloaded bytes and the seconds of an installation."""
        wanted, wheels = f"{wheel}[{name}]" if name else str(wheel), work / f"wheels-{name}"
        # `pip wheel`, since pyspark comes as source.
        run(*PIP, "wheel", "-w", wheels, "-c", constraints, wanted)
        offline = ("--no-index", "--find-links", wheels)
        python = environment / "bin" / "python"
        return size(wheels), measure(*PIP, "--python", python, "install", *offline, wanted)

    core = work / "core"
    run(sys.executable, "-m", "venv", "--without-pip", core)
    empty = size(core)
    download, seconds = install("", core)
    in_core = packages(core)
    size_of_core = f"{megabytes(download)} | {megabytes(size(core) - empty)} | {seconds:.0f} s"
    rows = [f"| none | loading, analysis, charts | {len(in_core)} | {size_of_core} |"]
    rows.append(measure_headless(work, wheel))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in project["optional-dependencies"]:
        environment = work / name
        # Hard links instead of copies.
        shutil.copytree(core, environment, symlinks=True, copy_function=os.link)
        more, seconds = install(name, environment)
        added = len(packages(environment)) - len(in_core)
        rows.append(
            f"| `{name}` | {PURPOSES[name]} | + {added} | + {megabytes(more - download)} | "
            f"+ {megabytes(size(environment) - size(core))} | + {seconds:.0f} s |"
        )
        print(rows[-1], flush=True)
        shutil.rmtree(environment)
        shutil.rmtree(work / f"wheels-{name}")
    ranked = sorted(in_core.items(), key=lambda item: -item[1])[:LARGEST]
    return (
        table("| extra | for | packages | download | installed | installation |", rows),
        table(
            "| package | installed |",
            [f"| {name} | {megabytes(count)} |" for name, count in ranked],
        ),
    )


def measure_headless(work: Path, wheel: Path) -> str:
    """Return the row of the profile for servers, which is instead of the core."""
    environment, wheels = work / "headless", work / "wheels-headless"
    lock = ("--require-hashes", "-r", ROOT / "requirements-headless.txt")
    run(*PIP, "wheel", "-w", wheels, *lock)
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    empty = size(environment)
    install = (*PIP, "--python", environment / "bin" / "python", "install", "--no-index")
    seconds = measure(*install, "--find-links", wheels, *lock)
    seconds += measure(*install, "--no-deps", wheel)
    sizes = f"{megabytes(size(wheels) + size(wheel))} | {megabytes(size(environment) - empty)}"
    count = len(packages(environment))
    return (
        f"| headless | servers, see above; instead of all | {count} | {sizes} | {seconds:.0f} s |"
    )


def measure_setup(work: Path, existing: Path | None) -> str:
    """Return the table of the environment that ``make setup`` makes, and of its packages."""
    environment, seconds = existing or work / "venv", 0.0
    if existing is None:
        target = (f"VENV={environment}", f"TOOLS={work / 'tools'}")
        run("make", "setup", *target, cwd=ROOT)  # Fills the cache of downloads.
        shutil.rmtree(environment)
        seconds = measure("make", "setup", *target, cwd=ROOT)
    found = packages(environment)
    ranked = sorted(found.items(), key=lambda item: -item[1])[:LARGEST]
    rows = [f"| all {len(found)} | {megabytes(size(environment))} |"]
    rows += [f"| {name} | {megabytes(count)} |" for name, count in ranked]
    if seconds:
        print(f"make setup: {seconds:.0f} s")
    return table("| package | installed |", rows)


def write(name: str, content: str) -> None:
    """Replace a marked part of the page."""
    page = PAGE.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    before, after = page.partition(start)[0], page.partition(end)[2]
    PAGE.write_text(f"{before}{start}{content}{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", type=Path, help="an environment of `make setup`")
    existing = parser.parse_args().setup
    with tempfile.TemporaryDirectory() as folder:
        extras, largest = measure_extras(Path(folder))
        write("extras", extras)
        write("largest", largest)
        write("setup", measure_setup(Path(folder), existing))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
