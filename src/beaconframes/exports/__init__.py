"""Publish: rows as datasets that a paper can cite and another lab can load without us.

Whatever is exported is a `Source` of rows (``sources``, ``calls``); they are sorted into the files
of each partition (``sorting``), one writer per format (``formats``); the manifest is written last
(``manifest``), beside what describes it to others (``documents``).
"""

from beaconframes.exports.exporter import export
from beaconframes.exports.result import Export

__all__ = ["Export", "export"]
