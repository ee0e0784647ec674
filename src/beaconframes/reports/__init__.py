"""The validator report: how validators did, as a page, as frames and as a notebook.

The package is not called ``report``, because that would shadow the function `beaconframes.report`.
"""

from beaconframes.reports.report import Report, report

__all__ = ["Report", "report"]
