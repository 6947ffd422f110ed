"""`bcd doctor bundle` and `bcd doctor open`."""

from bcd.commands.doctor import draw, exit_status, select_checks
from bcd.commands.streams import print_lines
from bcd.core.exits import ExitStatus
from bcd.core.text import clean
from bcd.doctor.bundle import write_bundle
from bcd.doctor.open_bundle import open_bundle
from bcd.doctor.probes import Probes
from bcd.doctor.run import run_checks


def make_bundle(file: str, config_path: str, *, offline: bool, timeout_seconds: float) -> ExitStatus:
    """Run the checks, write the bundle and say what is in it. Raises what `write_bundle` does."""
    probes = Probes(config_path=config_path, timeout_seconds=timeout_seconds * 0.8)
    report = run_checks(select_checks((), (), offline=offline), probes, timeout_seconds=timeout_seconds)
    members = write_bundle(file, report, probes)
    width = max(len(member.name) for member in members)
    lines = [f"{clean(file)} is written, secrets taken out; look through it before you send it"]
    for member in members:
        told = f"left out: {member.left_out}" if member.data is None else f"{len(member.data)} bytes"
        lines.append(f"  {member.name:<{width}}  {told}")
    print_lines(lines)
    return ExitStatus.OK


def show_bundle(file: str, *, form: str, verbose: bool, color: bool) -> ExitStatus:
    """Show a bundle's report. Raises what `open_bundle` does."""
    opened = open_bundle(file)
    draw(opened.report, form=form, strict=False, verbose=verbose, color=color)
    if form in ("rich", "plain") and verbose:
        print_lines(["", "in the bundle:", *(f"  {line}" for line in opened.members)])
    if form in ("rich", "plain") and opened.left_out:
        print_lines(["left out of the bundle:", *(f"  {line}" for line in opened.left_out)])
    return exit_status(opened.report, strict=False)
