"""Exports: rows as datasets that a paper can cite and that any tool can load.

`source_factory` creates the sources of rows (`sources`, `dataset_sources`, `chunked_load`).
`dataset_writer` stages the rows (`work_folder`, `staged_rows`), writes the files of each partition
(`table_writer`, `formats`), the documents (`metadata`) and last the manifest (`manifest`).
The package is called ``exports`` so that it does not shadow the function ``bf.export``.
"""

from beaconframes.exports.exporter import export
from beaconframes.exports.result import Export

__all__ = ["Export", "export"]
