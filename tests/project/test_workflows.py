"""The workflows of the repository: what no schema checks."""

from __future__ import annotations

import re

import pytest
import yaml

from .test_repository import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_and_commands_of_a_workflow_exist(path):
    """Jobs that a job waits for, targets of make, and scripts."""
    jobs = yaml.safe_load(path.read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text())
    scripts = [command for command in commands if command.startswith(".")]

    assert {job["needs"] for job in jobs.values() if "needs" in job} <= jobs.keys()
    assert {c.split()[1] for c in commands if c.startswith("make ")} <= set(targets)
    assert [] == [script for script in scripts if not (ROOT / script).is_file()]


def test_a_change_runs_the_checks_of_the_project():
    """The workflow `test` runs the script that must pass before a change lands."""
    (job,) = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"].values()

    assert [".ci/run"] == [step["run"] for step in job["steps"] if "run" in step]
