"""A dataset on disk as the source of loads: no server, no requests, no JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from beaconframes.answers.answer import AnswerBuilder, describe_refusal
from beaconframes.answers.charts import draw_chart
from beaconframes.answers.table_cache import find_kind
from beaconframes.answers.uncovered import lists_gaps
from beaconframes.answers.v2 import SUNSETS
from beaconframes.cache.pubkey_index import KEYS_PATH
from beaconframes.dataset import Dataset, PublishedDataset
from beaconframes.endpoint import Envelope, RequestRefused
from beaconframes.endpoint.absent_table import TableAbsent
from beaconframes.errors import (
    BadRequest,
    DatasetError,
    NotFound,
    NotServed,
    TableNotInDataset,
)
from beaconframes.fetch.paginator import find_first_page_error
from beaconframes.fetch.response_warnings import warn_of_sunset
from beaconframes.fetch.source import FetchedRows, Source, plan_calls
from beaconframes.progress import count_rows
from beaconframes.v1 import ENDPOINTS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from beaconframes.answers.answer import Answer
    from beaconframes.answers.view import DatasetViews
    from beaconframes.endpoint import Call, ChainHead, Endpoint, Request
    from beaconframes.errors import ServiceError
    from beaconframes.fetch.served_range import ServedRange

ADDRESS = "http://127.0.0.1"
"""The address of an explorer that reads a dataset: this machine, without a port."""

HINT = "Check the arguments of the call"


class DatasetSource(Source):
    """A dataset on disk, which answers all calls of a load together.

    Its errors are those of a local explorer that serves the dataset.
    """

    def __init__(self, views: DatasetViews) -> None:
        self.views = views
        self._has_all_validators = find_kind(views.dataset) == "simulation"
        self._reported_sunsets: set[str] = set()

    def fetch(self, request: Request) -> bytes:
        """Return the validators with some public keys, or a chart as PNG."""
        view = self.views.current()
        if request.path == KEYS_PATH:
            keys = msgspec.json.decode(request.body or b"{}")["indicesOrPubkey"].split(",")
            return msgspec.json.encode(
                [{"pubkey": key, "validator_index": view.indices.get(key)} for key in keys]
            )
        try:
            return draw_chart(view, request.path.rpartition("/")[2])
        except TableAbsent as refusal:
            raise build_absence_error(refusal, request.endpoint) from None
        except RequestRefused as refusal:
            raise build_error(400, refusal.message, request.endpoint) from None

    def fetch_rows(
        self,
        endpoint: Endpoint,
        arguments: Sequence[Mapping[str, Any]],
        chain_head: ChainHead,
        served: ServedRange,
    ) -> Iterator[FetchedRows]:
        """Yield the rows of *endpoint* for all of the *arguments*, in one frame."""
        # The head of a dataset is fixed: the plan has no units after it.
        dataset, pending = self.views.dataset, plan_calls(endpoint, arguments, chain_head)
        while pending:
            answer = self._answer(endpoint, pending)
            not_found, parts = [], []
            for call, refusal in answer.refused:
                status, text = describe_refusal(endpoint, refusal)
                if endpoint.absent and endpoint.absent in text:
                    not_found.append(call)
                else:
                    error = build_error(status, text, call.request.endpoint)
                    parts += narrow_call(endpoint, call, error, served)
            for call in (*answer.empty, *not_found):
                endpoint.check_has_record(call)
            rows = endpoint.mark_open_rows(answer.rows, chain_head)
            endpoint.table.check(rows, chain_head.chain)
            count_rows(rows.height)
            warnings: list[Warning] = []
            if endpoint.envelope is Envelope.V2 and endpoint.name in SUNSETS:
                header = SUNSETS[endpoint.name]
                warnings = warn_of_sunset(endpoint, header, self._reported_sunsets)
            failed = {id(call) for call, _ in answer.refused} - {id(call) for call in not_found}
            yield FetchedRows(
                [call for call in pending if id(call) not in failed],
                rows,
                not_found,
                warnings=warnings,
                uncovered=answer.uncovered,
                has_all_validators=self._has_all_validators,
                has_all_rows=isinstance(dataset, PublishedDataset)
                and lists_gaps(endpoint, dataset),
            )
            pending = parts

    def _answer(self, endpoint: Endpoint, calls: Sequence[Call]) -> Answer:
        """Return the answer to *calls*, from one state of the dataset."""
        try:
            return self.views.read_unchanged(
                lambda view: AnswerBuilder(endpoint, view).answer(calls)
            )
        except TableAbsent as refusal:
            raise build_absence_error(refusal, calls[0].request.endpoint) from None
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            dataset = self.views.dataset
            # A file that polars cannot decode does not have the content that was written.
            for damage in dataset.verify():
                raise DatasetError(
                    f"table {damage.table} of {dataset.path} is damaged: "
                    f"{damage.path} {damage.reason}",
                    hint="Restore the file from a copy, or create the dataset again",
                ) from error
            raise


def narrow_call(
    endpoint: Endpoint, call: Call, refusal: ServiceError, served: ServedRange
) -> list[Call]:
    """Return the part of a refused *call* that the dataset has, if any; or raise the refusal."""
    error = find_first_page_error(endpoint, refusal)
    if isinstance(error, NotServed):
        raise error
    part = served.narrow(call, error, public=False)
    return [] if part is None else [part]


def build_error(status: int, text: str, route: str) -> ServiceError:
    """Return the error for the *text* with which a local explorer refuses a request."""
    kind = NotFound if status == 404 else BadRequest
    message = f"the service refused the request with status {status}: {text.removesuffix('.')}"
    return kind(message, hint=HINT, endpoint=route, attempts=1)


def build_absence_error(refusal: TableAbsent, route: str) -> TableNotInDataset:
    """Return the error for a table that the dataset does not have."""
    error = TableNotInDataset(refusal.message, hint=refusal.hint, endpoint=route, attempts=1)
    error.table = refusal.absent.table
    return error


def open_dataset(folder: str | os.PathLike[str]) -> Dataset:
    """Open a dataset of unknown origin: its files are checked before any row is read.

    Raises
    ------
    DatasetError
        The folder is not a dataset, a file is damaged or leads out of the folder, or a table has
        other columns than its loader.
    """
    dataset = Dataset.open(folder)
    dataset.check_files()
    declared = {endpoint.table.table_name: endpoint.table for endpoint in ENDPOINTS}
    for name in dataset.tables().keys() & declared.keys():
        schema = dataset.schema(name) or pl.Schema()
        for column, dtype in declared[name].schema().items():
            if schema.get(column) != dtype:
                raise DatasetError(
                    f"table {name} of {folder} cannot be served: {column} is "
                    f"{schema.get(column, 'missing')} instead of {dtype}",
                    hint="Serve a dataset that this version of beaconframes wrote",
                )
    return dataset
