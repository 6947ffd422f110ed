"""A report with a finding of every level, for the tests of the formats; and one made of a node with several faults."""

from functools import cache

from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Finding, Level, Report
from bcd.doctor.run import run_checks
from bcd.doctor.selftest.root import Root

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

FINDINGS = (
    Finding(id="configuration.parses", level=Level.OK, message="/etc/bcd/config.toml reads"),
    Finding(
        id="slots.digests",
        level=Level.FAIL,
        message="slot b does not hold the bytes that its record names (1.4.1), which nobody can have wanted, "
        "and so the sentence is long enough to be wrapped on a terminal of eighty columns and of a hundred and forty",
        evidence=(
            f"/usr/local/lib/bcd/bcd-b: 12345678 bytes, sha256 {DIGEST}",
            "[/usr/local] [bold]is no markup[/bold]",
        ),
        hint="ln -sfn bcd-a /usr/local/lib/bcd/current && systemctl restart bcd.service",
    ),
    Finding(id="slots.digests", level=Level.OK, message="slot a holds 1.4.0, as recorded"),
    Finding(
        id="update.failed-versions",
        level=Level.WARN,
        message="1.4.2 failed here and is refused: [/foo] it said so",
        evidence=("/var/lib/bcd/update/update.json: 1.4.2",),
        hint="bcd update --clear-failed 1.4.2",
    ),
    Finding(
        id="update.lock", level=Level.UNKNOWN, message="could not be told: the disk is dead", hint="sudo bcd doctor"
    ),
    Finding(
        id="update.agent", level=Level.UNKNOWN, message="could not be told: the disk is dead", hint="sudo bcd doctor"
    ),
    Finding(id="service.manager", level=Level.NOTE, message="no systemd here", evidence=("/run/systemd: missing",)),
    Finding(id="helper.socket", level=Level.SKIPPED, message="the node runs as root alone"),
)


def report(*findings: Finding, complete: bool = True, **more: float) -> Report:
    """A report of these findings, or of one of each level."""
    return Report(
        findings=findings or FINDINGS,
        complete=complete,
        started_at=1_800_000_000,
        seconds=0.1234,
        looked_as="uid 0 (root)",
        about="node-17, /etc/bcd/config.toml",
        **more,  # type: ignore[arg-type]
    )


@cache
def of_a_sick_node() -> Report:
    """A real run over a node with faults in several places."""
    with Root() as root:
        root.fail_version("1.4.2", "[/foo] not welcomed")
        root.write("lib/bcd-a", b"torn", 0o755)
        root.machine.time_out("systemctl")
        root.configure(release_threshold=4)
        root.machine.live = None
        return run_checks(CHECKS, root.probes(), timeout_seconds=20)
