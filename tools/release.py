"""Make a release: version, changelog, distributions, checks, a commit and a tag.

    make release VERSION=0.2.0
    make dist                    # the distributions of the last commit only

Nothing is published. A release is made in a worktree of its own: the branch and the tags change
only after every check has passed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
EDITS = [
    ("pyproject.toml", r'(?m)^version = ".*"$', 'version = "{version}"'),
    ("CITATION.cff", r"(?m)^version: .*$", "version: {version}"),
    ("CITATION.cff", r"(?m)^date-released: .*$", "date-released: {date}"),
    ("CHANGELOG.md", r"(?m)^## Unreleased$", "## Unreleased\n\n## {version} - {date}"),
]
"""What a release changes: file, pattern of the only place, and its new text."""


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """Return what a command prints; exit with its output if it fails."""
    ended = subprocess.run(
        command, cwd=cwd or ROOT, env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if ended.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{ended.stdout}{ended.stderr}")
    return ended.stdout.strip()


def read_version(root: Path) -> str:
    """Return the version of a checkout."""
    found = re.search(r'(?m)^version = "(.*)"$', (root / "pyproject.toml").read_text())
    return found[1] if found else sys.exit("pyproject.toml has no version")


def cut(root: Path, version: str, date: str) -> None:
    """Write the version and its date into the files of a checkout."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        sys.exit(f"{version!r} is not a version such as 0.2.0")
    if Version(version) <= Version(current := read_version(root)):
        sys.exit(f"{version} is not later than {current}")
    changes = (root / "CHANGELOG.md").read_text().partition("\n## Unreleased\n")[2]
    if not changes.partition("\n## ")[0].strip():
        sys.exit("CHANGELOG.md has no changes below Unreleased")
    for name, pattern, new in EDITS:
        path = root / name
        text, count = re.subn(pattern, new.format(version=version, date=date), path.read_text())
        if count != 1:
            sys.exit(f"{name} has {count} places that match {pattern!r}, not one")
        path.write_text(text)


def build(root: Path, target: Path) -> list[Path]:
    """Build the distributions of the last commit of *root*, check them, and write checksums."""
    time = run("git", "log", "-1", "--format=%ct", cwd=root)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("one", "two"):
            source = Path(folder, "source", name)
            source.mkdir(parents=True)
            run("git", "archive", "--output", f"{source}.tar", "HEAD", cwd=root)
            run("tar", "-xf", f"{source}.tar", "-C", source)
            command = [sys.executable, "-m", "hatchling", "build", "-d", Path(folder, name)]
            run(*command, cwd=source, SOURCE_DATE_EPOCH=time)
        sums = {}
        for path in sorted(Path(folder, "one").iterdir()):
            sums[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
            if path.read_bytes() != Path(folder, "two", path.name).read_bytes():
                sys.exit(f"two builds of {path.name} differ")
        files = [Path(folder, "one", name) for name in sums]
        print(run(sys.executable, "-m", "twine", "check", "--strict", *files))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(Path(folder, "one"), target)
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    (target / "SHA256SUMS").write_text(text)
    return [target / name for name in sums]


def release(version: str, uv: str) -> None:
    """Make, check, commit and tag a version."""
    if run("git", "status", "--porcelain"):
        sys.exit("the checkout has changes: commit or remove them")
    tag = f"v{version}"
    if run("git", "tag", "--list", tag):
        sys.exit(f"the tag {tag} exists")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        run("git", "worktree", "add", "--detach", tree, "HEAD")
        try:
            cut(tree, version, f"{datetime.now(UTC):%Y-%m-%d}")
            run("git", "commit", "--all", "--message", f"Release {version}", cwd=tree)
            for file in build(tree, ROOT / "dist"):
                script = tree / "tests" / "project" / "wheel.sh"
                print(run(script, Path(uv).absolute(), sys.executable, file, cwd=tree))
            commit = run("git", "rev-parse", "HEAD", cwd=tree)
        finally:
            run("git", "worktree", "remove", "--force", tree)
    run("git", "merge", "--ff-only", commit)
    run("git", "tag", "--annotate", tag, "--message", f"beaconframes {version}")
    print(f"dist/ has {version}, tagged {tag}; to publish it: git push --follow-tags")


def main() -> None:
    """Make a release, or only the distributions of the last commit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", nargs="?", help="without it, build the last commit only")
    parser.add_argument("--uv", default="uv", help="the program that makes empty environments")
    chosen = parser.parse_args()
    if chosen.version is None:
        build(ROOT, ROOT / "dist")
    else:
        release(chosen.version, chosen.uv)


if __name__ == "__main__":
    main()
