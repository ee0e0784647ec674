"""Judging an answer: whether it is what was asked for.

A status is only half of the verdict. The service reports errors under 200 and failures of its
database as 400, and what stands in front of it answers in HTML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from beaconframes.endpoint import Page
from beaconframes.errors import ProtocolError, ServerError
from beaconframes.http.envelope import BOM, error_in, members, usual_data
from beaconframes.http.failure import AttemptFailed
from beaconframes.http.status_errors import challenged, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beaconframes.http.body import Reply


@dataclass(frozen=True)
class Answer(Page):
    """The page that was asked for, and the headers of its answer.

    ``denied`` says that there is no page: the service said itself that there is no such thing.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    denied: bool = False


NO_ROWS = b"[]"
PNG = b"\x89PNG\r\n\x1a\n"


def judge(reply: Reply, envelope: str, absent: str = "") -> Answer:
    """Return what *reply* brings in its *envelope*, or raise the Failure that it is.

    An error that says *absent* says that there are no rows.
    """
    if absent and reply.status in {400, 404} and absent in reply.body.decode(errors="replace"):
        return Answer(NO_ROWS, headers=reply.headers, denied=True)
    if reply.status != 200:
        raise refusal(reply)
    if envelope == "v1" and (usual := usual_data(reply)) is not None:
        return Answer(usual, headers=reply.headers)
    if (challenge := challenged(reply)) is not None:
        raise challenge
    if envelope == "png" and reply.body.startswith(PNG):
        return Answer(reply.body, headers=reply.headers)
    found = members(reply)
    if (error := error_in(found)) is not None:
        raise AttemptFailed(ServerError, "the service reported", said=error)
    if envelope == "bare" and found and not found.keys() & {"status", "data"}:
        return Answer(reply.body.removeprefix(BOM), headers=reply.headers)
    if (fault := _fault(envelope, found)) is not None:
        raise fault
    data, paging = found.pop("data", None), found.pop("paging", None)
    if data is None or data == b"null":
        raise _unlike("has no data")
    return Answer(data, None if paging == b"null" else paging, found, reply.headers)


def _fault(envelope: str, found: Mapping[str, bytes]) -> AttemptFailed | None:
    """Return what is wrong with the members of an *envelope*, if anything."""
    if envelope == "png":
        return _unlike("is no PNG picture")
    if envelope == "code" and found.get("code") != b"200":
        return _unlike("has no code 200")
    if envelope in {"v1", "bare"} and found.get("status") != b'"OK"':
        return _unlike("has no status OK")
    return None


def _unlike(why: str) -> AttemptFailed:
    return AttemptFailed(ProtocolError, f"the answer {why}, so it is no answer of this API")
