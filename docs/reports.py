"""Write the example reports of the documentation: ``python docs/reports.py``, or ``make docs``."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from pathlib import Path

import beaconframes as bf
from beaconframes.reports.inputs import load_inputs
from beaconframes.reports.report import make_report

FOLDER = Path(__file__).resolve().parent / "_static"
EXAMPLES = {
    "report-3.html": {"validators": [7, 11, 130], "groups": None},
    "report-200.html": {
        "validators": range(200),
        "groups": {"Client A": range(120), "Client B": range(120, 200)},
    },
}
MADE_AT = datetime(2026, 10, 7, 12, tzinfo=UTC)
"""The end of the sample, so that the same sample makes the same pages."""


def main() -> None:
    """Write each example, of the simulated sample."""
    warnings.simplefilter("error")
    with bf.open() as source:
        for name, example in EXAMPLES.items():
            inputs = load_inputs(
                example["validators"],
                since="2026-10-01",
                until=None,
                groups=example["groups"],
                detail="auto",
                explorer=source,
            )
            inputs.made_at = MADE_AT
            path = make_report(inputs).save(FOLDER / name)
            print(f"{name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
