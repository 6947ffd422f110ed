"""What `bcd lab` does, one plain function a subcommand; parsing and streams are the command line's.

Each imports what it needs when it is called: `push` and `releases` start no world.
"""

from pathlib import Path
from typing import TextIO

from bcd.core.exits import ExitStatus


def tour(
    *,
    dir: Path | None,  # noqa: A002  # the option's name
    only: tuple[str, ...],
    split: bool,
    color: bool,
    terminal: bool,
    out: TextIO,
    err: TextIO,
) -> ExitStatus:
    """Play every scenario, or those that match `only`; see `bcd.lab.tour.tour.run_tour`."""
    from bcd.lab.tour.tour import run_tour  # noqa: PLC0415

    return run_tour(directory=dir, only=only, split=split, color=color, terminal=terminal, out=out, err=err)


def up(*, dir: Path | None, split: bool, out: TextIO, err: TextIO) -> ExitStatus:  # noqa: A002  # the option's name
    """Keep a world with one node running; see `bcd.lab.up.run_up`."""
    from bcd.lab.up import run_up  # noqa: PLC0415

    return run_up(directory=dir, split=split, out=out, err=err)


def push(*, name: str, dir: Path, by_command: bool, out: TextIO) -> ExitStatus:  # noqa: A002  # as above
    """Push a release to the lab that is up in `dir`, by the section or by a `daemon.upgrade`.

    Raises:
        UsageError: `no-lab`, `unknown-release` or `nothing-pushed`.
    """
    from bcd.lab.control import ask_to_push  # noqa: PLC0415

    out.write(ask_to_push(dir, name, by_command=by_command) + "\n")
    return ExitStatus.OK


def releases(*, out: TextIO) -> ExitStatus:
    """List what can be pushed."""
    from bcd.lab.catalogue import AGAIN, OFFERS  # noqa: PLC0415

    width = max(len(offer.name) for offer in OFFERS)
    out.writelines(f"{offer.name:<{width}}  {offer.outcome}\n" for offer in OFFERS)
    out.write(f"{AGAIN:<{width}}  what was pushed last, once more\n")
    return ExitStatus.OK
