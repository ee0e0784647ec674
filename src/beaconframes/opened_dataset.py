"""`open`: a dataset on disk as the source of all loaders, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from beaconframes.active_periods import NOT_IN_DATASET, NOT_RETURNED, REASON
from beaconframes.answers.dataset_source import ADDRESS, DatasetSource, open_dataset
from beaconframes.answers.view import DatasetViews
from beaconframes.client import Explorer, set_explorer
from beaconframes.client.quota import Quota
from beaconframes.config import settings as settings_block
from beaconframes.dataset import Dataset
from beaconframes.dataset.dataset import describe_origin
from beaconframes.errors import UsageError
from beaconframes.http.rate_limiter import RateLimiter
from beaconframes.summary import render_html

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from beaconframes.endpoint import Endpoint
    from beaconframes.fetch.pipeline import LoadResult
    from beaconframes.secret import Secret
    from beaconframes.setting_table import Settings


class OpenedDataset(Explorer):
    """A dataset on disk, which loaders use until it is closed; see `open`."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        frame: Literal["polars", "pandas"] | None = None,
        strict: bool | None = None,
        progress: bool | None = None,
    ) -> None:
        """Read *dataset*, and let loaders use it."""
        self.is_closed = False
        simulation = None
        if dataset.meta.get("simulated"):
            from beaconframes.simulator.dataset_at import SimulatedChain

            simulation = SimulatedChain()
        self.views = views = DatasetViews(dataset, simulation)
        # These settings are for a remote service.
        with settings_block(rate=None, offline=False, max_requests=None, timeout=None):
            super().__init__(
                ADDRESS,
                chain=views.current().chain,
                store=False,
                frame=frame,
                strict=strict,
                progress=progress,
                state=False,
                head=(lambda: views.current().head) if views.may_change else views.current().head,
            )
        self.about = {name: dataset.meta.get(name) for name in ("service", "simulated")}
        set_explorer(self)

    def __repr__(self) -> str:
        """Return the folder of the dataset."""
        views = vars(self).get("views")
        return f"OpenedDataset({None if views is None else str(views.dataset.path)!r})"

    def _open_source(self, settings: Settings, key: Secret | None) -> None:  # noqa: ARG002
        """Read the dataset; no request is sent."""
        self.rate_limiter = RateLimiter()
        self.source = DatasetSource(self.views)

    def _describe(self) -> list[tuple[str, str]]:
        """Return the facts about the dataset, each with its name."""
        head = self.views.current().head
        origin = describe_origin(self.views.dataset.meta)
        return [
            ("status", "closed" if self.is_closed else "open"),
            *(line for line in origin if "epoch" not in line[0]),
            ("head", f"epoch {head.epoch:,}, slot {head.slot:,}"),
        ]

    def _repr_html_(self) -> str:
        """Return the facts about the dataset, for a notebook."""
        return render_html(f"Dataset {self.views.dataset.path}", self._describe())

    def read_quota(self) -> Quota:
        """Return the requests of this process; a dataset has no quota."""
        return Quota(str(self.views.dataset.path), source="a dataset on disk has no quota")

    def _load(self, endpoint: Endpoint, values: Mapping[str, Any], *, is_lazy: bool) -> LoadResult:
        """Load the rows, unless the dataset is closed; missing ones are not in the dataset."""
        if self.is_closed:
            raise UsageError(
                f"the dataset {self.views.dataset.path} is closed",
                hint="Call bf.open again, and load before it is closed",
            )
        result = super()._load(endpoint, values, is_lazy=is_lazy)
        if REASON in result.gaps.missing.columns:
            named = pl.col(REASON).replace(NOT_RETURNED, NOT_IN_DATASET)
            result.gaps = result.gaps._replace(missing=result.gaps.missing.with_columns(named))
        return result

    def close(self) -> None:
        """Let loaders use the previous explorer again."""
        self.is_closed = True
        super().close()


def open(  # noqa: A001 - public as bf.open
    dataset: str | os.PathLike[str] | Dataset | None = None,
    *,
    frame: Literal["polars", "pandas"] | None = None,
    strict: bool | None = None,
    progress: bool | None = None,
) -> OpenedDataset:
    """Open a dataset on disk, and let every loader read it, without a server.

    ::

        with bf.open("mychain"):
            income = bf.load_income_history(range(10_000), since="30d")

    or, in a notebook, ``dataset = bf.open("mychain")`` and at the end ``dataset.close()``. Loaders
    return the same frames as from `local`, with the same checks, in a fraction of the time: rows
    are read from the files instead of JSON. `local` is for trying the API itself, and for other
    clients.

    A load has all its rows in memory, also with ``lazy=True``, because it checks every row. For
    more rows than that, ``bf.Dataset.open("mychain").scan("income_history")`` is a LazyFrame over
    the files.

    Parameters
    ----------
    dataset
        A dataset or its folder: an index of your own node, an export, a simulation. By default the
        sample that comes with the package, as for `local`.
    frame
        ``"polars"`` or ``"pandas"``: the kind of frame that loaders return.
    strict
        Whether missing rows are an error instead of a warning.
    progress
        Whether to show the progress of a load that takes over a second. Default: if the output is
        a terminal or a notebook.

    Raises
    ------
    DatasetError
        The folder is not a dataset, a file is damaged, or a table has other columns than its
        loader.
    """
    if dataset is None:
        from beaconframes.simulator import open_sample

        dataset = open_sample()
    elif not isinstance(dataset, Dataset):
        dataset = open_dataset(dataset)
    return OpenedDataset(dataset, frame=frame, strict=strict, progress=progress)
