"""What the console shows at one instant: the disk's state, and the agent's beside it where one answers. A value."""

from dataclasses import dataclass

from bcd.core.errors import BcdError
from bcd.core.status import Status
from bcd.core.strict import MAX_INTEGER
from bcd.core.text import Foreign
from bcd.tui.vitals import Vitals


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One reading."""

    status: Status | None
    """None where the configuration can't be read; `trouble` says why."""
    agent: dict[str, object] | None
    """The agent's live state; None where none answers."""
    trouble: BcdError | None
    taken_at: float
    """Unix seconds, by the injected clock."""
    running_slot_moved: bool = False
    """Whether `current` no longer names the binary that this console runs from."""
    crash_loop_rollback: bool = False
    """Whether a unit here brings a crash-looping release back."""
    clear_refused: str | None = None
    """Why this user may not clear failed versions, with the command that may; None where they may."""

    entrypoint_leads: str = ""
    """What the entrypoint is: `→ current`, `→ elsewhere`, `(a file)`, `(missing)`; empty where that may not be seen."""
    vitals: Vitals = Vitals()  # noqa: RUF009  # a value that never changes
    """The agent's process, and its unit."""
    boottime: float = 0.0
    """When it was taken, in seconds of the boot clock, for what nobody's change of the wall clock may touch."""

    origin: str = ""
    """What this is a picture of, where it is not this machine as it is now: a bundle, its host and its time."""

    @property
    def running(self) -> str | None:
        """The version that runs: what the current slot holds, else what the agent says that it is; None where unknown.

        Never this console's own build: on a node that never updated, that is another file than the one that runs.
        """
        status = self.status
        record = None if status is None else status.record(status.current.slot)
        if record is not None:
            return record.version
        return (None if self.agent is None else _text(self.agent.get("version"))) or None

    @property
    def runs(self) -> str:
        """What runs and from where, as people say it, or what of it is not known."""
        slot = None if self.status is None else self.status.current.slot
        where = "no slot in use" if slot is None else f"from slot {slot}"
        if self.running is None:
            return f"what runs is not known, {where}"
        return f"{self.running} runs{'' if slot else ','} {where}"

    @property
    def session(self) -> tuple[str, str]:
        """The gateway session's state, and its last error."""
        session = {} if self.agent is None else self.agent.get("session")
        if not isinstance(session, dict):
            return "unknown", ""
        return _text(session.get("state")) or "unknown", _text(session.get("error"))

    @property
    def agent_phase(self) -> str:
        """What the agent says that it is at; empty where none answers."""
        return "" if self.agent is None else _text(self.agent.get("phase"))

    @property
    def agent_target(self) -> str:
        """The version that the agent works on; empty where there is none."""
        return "" if self.agent is None else _text(self.agent.get("target"))

    @property
    def agent_error(self) -> str:
        """The agent's last trouble; empty where there is none."""
        return "" if self.agent is None else _text(self.agent.get("error"))

    @property
    def transfer(self) -> tuple[int, int, float] | None:
        """Bytes done, bytes in all, bytes a second; None where nothing is downloaded."""
        if self.agent is None:
            return None
        done, total, rate = (self.agent.get(key) for key in ("bytes_done", "bytes_total", "rate"))
        if not isinstance(done, int) or not isinstance(total, int) or not 0 < total <= MAX_INTEGER:
            return None
        # NaN and what is larger than any rate are none.
        known = isinstance(rate, int | float) and 1 <= rate <= MAX_INTEGER
        return min(max(done, 0), total), total, float(rate) if known else 0.0  # type: ignore[arg-type]


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, Foreign) else Foreign(str(value))
