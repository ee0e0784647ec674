"""What loaders of generation 2 take as validators and as slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from beaconframes.client import Subjects
    from beaconframes.endpoint.sets import ValidatorSet

    Validators: TypeAlias = Subjects | ValidatorSet
    """Indices or public keys, one or many, mixed; or a set named in another way."""
