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
