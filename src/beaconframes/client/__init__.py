"""The explorer, the function behind all loaders, and estimates of their requests."""

from beaconframes.client.connection import connect, quota, set_explorer
from beaconframes.client.explorer import Explorer
from beaconframes.client.loader import (
    Eager,
    EagerRange,
    Frame,
    Lazy,
    LazyRange,
    Pandas,
    PandasRange,
    Subjects,
    SubjectsOrSet,
    Values,
    load,
    loader,
)
from beaconframes.client.plan import Plan, plan
from beaconframes.client.quota import Quota
from beaconframes.client.store import Store, store

__all__ = [
    "Eager",
    "EagerRange",
    "Explorer",
    "Frame",
    "Lazy",
    "LazyRange",
    "Pandas",
    "PandasRange",
    "Plan",
    "Quota",
    "Store",
    "Subjects",
    "SubjectsOrSet",
    "Values",
    "connect",
    "load",
    "loader",
    "plan",
    "quota",
    "set_explorer",
    "store",
]
