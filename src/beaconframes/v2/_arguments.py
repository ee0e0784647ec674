"""The type of the argument ``validators`` in V2."""

from __future__ import annotations

from typing import TypeAlias

from beaconframes.client import Subjects
from beaconframes.endpoint.validator_sets import ValidatorSet

SubjectsOrSet: TypeAlias = Subjects | ValidatorSet
"""Indices or public keys, one or many, mixed; or a set such as `dashboard(7)`."""
