"""The consensus specification as pure functions of numpy arrays and parsed JSON.

Amounts are int64 gwei. An epoch that never comes is ``FAR_FUTURE_EPOCH``. Forks have the names of
the specification, from "altair" on.
"""
