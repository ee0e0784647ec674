"""What the project's files may not hold, and what has to agree between them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from ..conftest import Sample

ROOT = Path(__file__).resolve().parents[2]

# Put together here, so that this file does not hold what it looks for.
REGISTRIES = [
    ".".join(parts)
    for parts in [
        ("pypi", "org"),
        ("detsohnohtyp"[::-1], "org"),
        ("pypi", "python", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("anaconda", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
    ]
]
HOMES = "|".join(["home", "Users", "root", "work", "opt", "mnt", "workspace"])
ABSOLUTE = re.compile(rf"(?<![\w.~*}}\])-])(?:[A-Za-z]:[\\/]|/)(?:{HOMES})[\\/][\w.]")


def tracked() -> list[Path]:
    """Every file that belongs to the project."""
    answer = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        pytest.skip("not a git checkout")
    return [path for name in answer.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def texts() -> list[tuple[str, str]]:
    """Name and content of every tracked file that is text."""
    found = []
    for path in tracked():
        raw = path.read_bytes()
        if b"\0" not in raw[:8192]:
            found.append((path.relative_to(ROOT).as_posix(), raw.decode("utf-8")))
    return found


@pytest.mark.parametrize(("most", "numbers"), [(None, [5, 1]), (3, [3, 1]), (9, [5, 1])])
def test_a_sample_has_some_cases_of_each_test(most, numbers):
    """The same ones in each process: workers of pytest-xdist must agree."""
    names = [f"a.py::test_one[{number}]" for number in range(5)] + ["a.py::test_two"]

    chosen = Sample(most).choose_cases(names)

    assert numbers == [sum(test in name for name in chosen) for test in ("test_one", "test_two")]
    assert chosen == Sample(most).choose_cases(names)


def locked() -> dict[str, list[Requirement]]:
    """The pins of the lock by name; one name may have several, with different markers."""
    pins: dict[str, list[Requirement]] = {}
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip():
            pin = Requirement(line.split("--hash")[0].strip())
            pins.setdefault(pin.name.lower().replace("_", "-"), []).append(pin)
    return pins


def test_no_registry_is_named():
    """No file says where packages come from: that is the machine's business."""
    found = [(name, host) for name, text in texts() for host in REGISTRIES if host in text]

    assert [] == found


def test_no_absolute_path_of_a_machine():
    """Q10: no file holds a path that exists on one machine only."""
    found = [
        (name, match.group())
        for name, text in texts()
        for match in ABSOLUTE.finditer(text)
        if name != "tests/project/test_repository.py"
    ]

    assert [] == found


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ("/" + "home/ada/x", True),
        ('"/' + "root/.cache", True),
        ("C:" + "\\Users\\ada", True),
        ("path=/" + "opt/wheels", True),
        ("file://" + "/opt/wheels", True),
        ("docs/home/page", False),
        ("https://example.com/home/page", False),
        ("{prefix}/home/page", False),
        ("/api/v1/epoch/1", False),
    ],
)
def test_paths_are_recognized(text, is_path):
    """The search for paths finds paths, and no parts of addresses."""
    assert is_path == bool(ABSOLUTE.search(text))


def test_lock_holds_no_address():
    """The lock pins what to install, and by hash, never where from."""
    text = (ROOT / "requirements.lock").read_text()

    assert [] == re.findall(r"\S*://\S*|^\s*--(?:index|extra|find)\S*", text, re.MULTILINE)


def test_lock_pins_everything_by_hash():
    """Q07: every line of the lock is one exact version with at least one SHA-256."""
    lines = (ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()

    assert [] == [line[:60] for line in lines if "==" not in line or "--hash=sha256:" not in line]


def test_lock_satisfies_pyproject():
    """What pyproject asks for is what the lock gives; after a change run `make lock`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["project"]["dependencies"],
        *extras["lab"],
        *extras["duckdb"],
        *extras["dask"],
        *project["dependency-groups"]["dev"],
    ]
    pins = locked()
    unmet = []
    for requirement in map(Requirement, asked):
        versions = [next(iter(pin.specifier)).version for pin in pins.get(requirement.name, [])]
        if not versions or not all(Version(v) in requirement.specifier for v in versions):
            unmet.append((str(requirement), versions))

    assert [] == unmet


def test_every_dependency_is_imported():
    """Step 12, 2: an installation has 700 MB, so it has nothing that no module imports."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", sources, re.MULTILINE))
    modules = {"pillow": "PIL"}
    # Programs for notebooks; plotly, polars and the caller of an analysis import the others.
    unimported = {"jupyterlab", "ipykernel", "ipywidgets", "kaleido", "fastexcel", "duckdb"}
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(text for extra in extras for text in extra)]
    names = {Requirement(text).name for text in asked} - unimported

    assert {name for name in names if modules.get(name, name) not in imported} == set()


def test_ci_runs_what_the_readme_promises():
    """The README names the test command in a marked block, and the script finds it there."""
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- test-command -->\n```\w*\n(.*?)```", readme, re.DOTALL)

    assert block is not None
    assert ["make test"] == [line for line in block[1].splitlines() if line.startswith("make ")]
    assert "<!-- test-command -->" in (ROOT / ".ci" / "run").read_text()


def test_the_version_stands_in_one_place():
    """The package says the version of its metadata; the citation and the changelog follow."""
    from importlib.metadata import version

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    answer = subprocess.run(
        [sys.executable, "-c", "import beaconframes; print(beaconframes.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert project["version"] == version("beaconframes") == answer.stdout.strip()
    citation = (ROOT / "CITATION.cff").read_text()
    released = re.search(r"(?m)^version: (.*)\ndate-released: (.*)$", citation)
    assert released is not None
    assert project["version"] == released[1]
    assert f"\n## {released[1]} - {released[2]}\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.more
def test_the_readme_shows_what_its_example_prints(tmp_path, machine_cache):
    """The README's example runs as it stands and prints exactly what stands below it."""
    readme = (ROOT / "README.md").read_text()
    found = re.search(
        r"```python\n(import beaconframes.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL
    )
    assert found is not None
    program, printed = found.groups()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BEACONFRAMES_")}
    environment |= {
        "XDG_CACHE_HOME": str(machine_cache),
        "MPLBACKEND": "agg",
        "PYTHONIOENCODING": "utf-8",
    }
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert "" == answer.stderr
    assert printed == answer.stdout
    assert {"days.png", "graffiti.png"} <= {path.name for path in tmp_path.iterdir()}


def test_map_of_the_code_agrees_with_the_folders():
    """The map in CONTRIBUTING has each package and each module of the library, and no other."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = text.partition("src/beaconframes/\n")[2].partition("```")[0]
    # The names end with two spaces; the rest of the line describes them.
    names = {name for line in listed.splitlines() for name in line.split("  ")[1].split(", ")}
    package = ROOT / "src" / "beaconframes"
    modules = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    packages = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}

    assert names - {"__init__.pyi"} == modules | packages
