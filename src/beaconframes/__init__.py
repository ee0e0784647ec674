"""Load Ethereum beacon chain data into DataFrames.

::

    import beaconframes as bf

    with bf.local():
        income = bf.load_income_history(range(250), since=-250)
        blocks = bf.load_produced_blocks(range(250))
        bf.plot.income(income, blocks=blocks, every="day", unit="eth")

The public names are listed once, in `__init__.pyi`. Type checkers read them there, and so does
this module: a name is imported on its first use, so that importing the package loads no library.
"""

from __future__ import annotations

_modules: dict[str, str] = {}


def _modules_by_name() -> dict[str, str]:
    """Return the module of each public name."""
    if not _modules:
        import ast
        from pathlib import Path

        stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
        for statement in stub.body:
            if isinstance(statement, ast.ImportFrom) and statement.module:
                _modules.update({alias.name: statement.module for alias in statement.names})
    return _modules


def __getattr__(name: str) -> object:
    """Import a public name on its first use."""
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version("beaconframes")
    modules = _modules_by_name()
    if name == "__all__":
        return [*modules]
    if name not in modules:
        from beaconframes.misspelled_names import missing_name

        raise missing_name(__name__, name, modules)
    try:
        module = import_module(modules[name])
        if modules[name] == "beaconframes":
            return import_module(f"beaconframes.{name}")
    except ModuleNotFoundError as error:
        from beaconframes.errors import build_package_error

        if (error.name or "").startswith("beaconframes"):
            raise
        raise build_package_error(str(error.name), f"bf.{name}") from None
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, for completion."""
    return [*_modules_by_name(), "__version__"]
