"""Exports: rows as datasets that a paper can cite and that any tool can load.

`source_factory` creates the sources of rows (`sources`, `dataset_sources`, `chunked_load`).
`dataset_writer` sorts the rows into the files of each partition (`sorter`, `table_writer`,
`formats`), and publishes them (`work_folder`), the documents (`metadata`) and last the manifest
(`manifest`).
The package is called ``exports`` so that it does not shadow the function ``bf.export``.
"""

from beaconframes.exports.exporter import export
from beaconframes.exports.result import Export

__all__ = ["Export", "export"]
