"""The forecast of a pending update: its three futures, each with its clock and who would act. Pure.

Where this node lacks one of them, it is struck out with the reason: without systemd nobody brings a crash-looping
release back.
"""

from dataclasses import dataclass
from datetime import datetime

from bcd.tui.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Future:
    """One way that it may go."""

    when: str
    """Its clock or its condition, short."""
    what: str
    """What then happens, and who does it."""
    struck: str = ""
    """Why this node lacks it; empty where it does not."""


def futures(snapshot: Snapshot, *, crash_loop_rollback: bool) -> tuple[Future, ...]:
    """The futures of what is pending; none where nothing is."""
    status = snapshot.status
    pending = None if status is None else status.pending.value
    if status is None or pending is None or status.left is None:
        return ()
    due = datetime.fromtimestamp(snapshot.taken_at + status.left.seconds).astimezone()
    raised = f"floor {status.floor} → {max(status.floor, pending.sequence)}"
    agent_gone = "" if snapshot.agent is not None else "no agent answers: its next start would"
    return (
        Future(when="if welcomed", what=f"{pending.to_version} stays for good, {raised}"),
        Future(when=f"at {due:%H:%M:%S}", what=f"bcd itself swaps back to {pending.from_version}", struck=agent_gone),
        Future(
            when="5 crashes",
            what=f"systemd swaps back to {pending.from_version}",
            struck="" if crash_loop_rollback else "no systemd unit here does",
        ),
    )
