"""``beaconframes load NOUN``: every loader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beaconframes.cli import asking, nouns, results
from beaconframes.errors import UsageError

if TYPE_CHECKING:
    from beaconframes.cli.nouns import Loader


class Nouns(click.Group):
    """A command for every loader, by its noun; with ``--v2`` anywhere for generation 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the nouns of the generation that is asked for."""
        return nouns.nouns(2 if ctx.params.get("v2") else 1)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; which generation may be said behind the noun."""
        if "--v2" in args[1:]:
            ctx.params["v2"] = True
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a noun."""
        from beaconframes.cli import everywhere

        noun = cmd_name.removeprefix("v2.")
        generation = 2 if noun != cmd_name or ctx.params.get("v2") else 1
        loader = nouns.loader_of(noun, generation)
        if loader is None:
            if generation == 1 and nouns.loader_of(noun, 2) is not None:
                ctx.fail(f"{noun} is of generation 2: add --v2.")
            return None
        return everywhere(command(noun.replace("_", "-"), loader))


def command(noun: str, loader: Loader) -> click.Command:
    """Return the command that calls *loader*."""
    second = click.Option(["--v2"], is_flag=True, expose_value=False, help="Generation 2.")
    strict = click.Option(
        ["--strict"], is_flag=True, help="Give nothing if rows are missing, instead of the others."
    )
    picture = loader.__name__ == "load_chart"
    return click.Command(
        noun,
        params=[
            *nouns.options(loader),
            *([] if picture else [strict]),
            *results.options(),
            *asking.options(),
            second,
        ],
        help=nouns.summary(loader),
        callback=lambda **given: (save_picture if picture else load_rows)(loader, given),
    )


def load_rows(loader: Loader, given: dict[str, Any]) -> None:
    """Load rows and give them to whom the command line says."""
    said = results.taken(given)
    asked = nouns.values(loader, given)
    strict = given.pop("strict")
    with asking.connected(given) as explorer:
        rows = loader(**asked, explorer=explorer, **({"strict": True} if strict else {}))
        requests = explorer.requests
    results.give(rows, said, {"loader": loader.__name__, "requests": requests})


def save_picture(loader: Loader, given: dict[str, Any]) -> None:
    """Load a picture into a file."""
    from beaconframes.cli.showing import write_json
    from beaconframes.wall import save

    said = results.taken(given)
    if said["out"] is None:
        raise UsageError("a picture needs --out", hint="Such as: --out chart.png")
    asked = nouns.values(loader, given)
    with asking.connected(given) as explorer:
        picture = loader(**asked, explorer=explorer)
    save(picture, said["out"])
    if said["as_json"]:
        write_json({"complete": True, "file": str(said["out"])})
    else:
        click.echo(f"{click.format_filename(said['out'])}: {picture.width} x {picture.height}")


@click.group(cls=Nouns, subcommand_metavar="NOUN [OPTIONS]")
@click.option("--v2", is_flag=True, help="Nouns of generation 2 of the service.")
def load(v2: bool) -> None:
    """Load rows and show them, or write them to a file.

    NOUN is a loader without load_: load income-history is load_income_history. Moments are as in
    Python: an epoch, slot or day (negative ones count back from the latest), a date, a time in UTC,
    or 30d and 12h for that long before now.
    """
