"""The states that a node can be in, as snapshots at one fixed instant, in the values that the readers make."""

from collections.abc import Callable

from bcd.core.build import Build
from bcd.core.config import Config, NodeConfig, UpdateConfig
from bcd.core.deadline import WELCOME_SECONDS, Left
from bcd.core.errors import UsageError
from bcd.core.layout import layout_of
from bcd.core.links import Link, Slot, other_slot, slot_file
from bcd.core.records import (
    Confirmed,
    Failed,
    PendingRecord,
    Reading,
    SlotRecord,
    SlotsRecord,
    UpdateRecord,
)
from bcd.core.status import Problem, Status
from bcd.core.text import Foreign
from bcd.tui.snapshot import Snapshot
from bcd.tui.vitals import Vitals

NOW = 1_790_000_000.0
"""Unix seconds of every snapshot here."""
DAY = 86_400
BUILD = Build("1.4.0", 14, 0, fakehw=False)
PINS = tuple(f"sha256/{letter * 42}A=" for letter in "AB")
REASON = "bcd 1.4.1 was not welcomed by a gateway before its deadline"
CONFIG_PATH = "/etc/bcd/config.toml"
REFUSED = f"clearing needs root here: sudo bcd update --clear-failed --config {CONFIG_PATH}"
LONG = "the gateway said no, and then said it again; " * 40
WIDE = "版本 1.4.1 は歓迎されませんでした"
COMBINING = "e\u0301te\u0301 a\u0308 n\u0303o welcome"
BRACKETS = ("[/foo] not welcomed", "[b", 'a [1, "3"]', "[link=x]y[/]", "$var {x} \\[")
CONTROLS = (
    "\x1b]52;c;Y2xlYXI=\x07",
    "\x1b[2J",
    "\x9b2J",
    "nul\x00nul",
    "a\rb",
    "\u202eevil",
    "\x1b]8;;http://x\x1b\\y",
)
VITALS = Vitals(
    pid=2217,
    started=4 * DAY,
    cpu_percent=0,
    memory_mib=43,
    unit="bcd.service",
    unit_state="active (running)",
)
NO_AGENT = Vitals(unit="bcd.service", unit_state="failed")
Make = Callable[[], Snapshot]
NO_LINK = Link(None, None, present=False)


def config(**node: str) -> Config:
    """A configuration with two pins; `node` is of [node]."""
    values = {"node_id": "node-7", **node}
    return Config(CONFIG_PATH, True, NodeConfig(**values), UpdateConfig(release_pins=PINS), None)  # type: ignore[arg-type]


def slot_record(version: str, sequence: int) -> SlotRecord:
    """What a slot holds; two days old."""
    return SlotRecord(Foreign(version), sequence, "3f9c" * 16, 34_183_577, int(NOW) - 2 * DAY)


def link(slot: Slot) -> Link:
    """A link to a slot."""
    return Link(slot, slot_file(slot), present=True)


def failed_entry(
    version: str = "1.4.1", reason: str = REASON, *, at: int = int(NOW) - DAY, sequence: int = 15
) -> Failed:
    """A version that failed here yesterday."""
    return Failed(Foreign(version), sequence, Foreign(reason), at)


def agent(**more: object) -> dict[str, object]:
    """An agent's live state, at rest and welcomed."""
    return {"version": Foreign("1.4.0"), "phase": "idle", "session": {"state": "welcomed", "error": None}, **more}


def status(
    *,
    failed: tuple[Failed, ...] = (),
    confirmed: Confirmed | None = None,
    current: Slot = "b",
    versions: tuple[str, str] = ("1.3.2", "1.4.0"),
) -> Status:
    """A node with `versions` in its slots a and b, whose updates have all ended."""
    settings = config()
    slots = SlotsRecord(slot_record(versions[0], 13), slot_record(versions[1], 14))
    return Status(
        build=BUILD,
        config=settings,
        layout=layout_of(settings),
        current=link(current),
        previous=link(other_slot(current)),
        slots=Reading("good", slots, ""),
        update=Reading("good", UpdateRecord(14, confirmed, failed), ""),
        pending=Reading[PendingRecord]("absent", None, ""),
        left=None,
        problems=(),
        aside=(),
    )


def _snapshot(shown: Status | None, live: dict[str, object] | None) -> Snapshot:
    return Snapshot(
        status=shown,
        agent=live,
        trouble=None,
        taken_at=NOW,
        entrypoint_leads="→ current",
        vitals=VITALS,
        boottime=7.0 * DAY,
    )


def changed(snapshot: Snapshot, **changes: object) -> Snapshot:
    """The same with other fields. `dataclasses.replace` is not typed for this."""
    values = {name: getattr(snapshot, name) for name in Snapshot.__slots__}
    return Snapshot(**{**values, **changes})


def never_updated() -> Snapshot:
    """Installed, and no update ever ran: no slots, no records."""
    fresh = status()._replace(
        current=NO_LINK,
        previous=NO_LINK,
        slots=Reading[SlotsRecord]("absent", None, ""),
        update=Reading[UpdateRecord]("absent", None, ""),
    )
    return changed(_snapshot(fresh, agent()), entrypoint_leads="(a file)")


def at_rest() -> Snapshot:
    """1.4.0 was welcomed two days ago."""
    confirmed = Confirmed(Foreign("1.4.0"), 14, int(NOW) - 2 * DAY, "5a" * 16)
    return _snapshot(status(confirmed=confirmed), agent())


def downloading(done: int = 17_091_788, rate: float = 2_097_152.0) -> Snapshot:
    """1.4.2 is half here."""
    live = agent(phase="downloading", target=Foreign("1.4.2"), bytes_done=done, bytes_total=34_183_577, rate=rate)
    return changed(at_rest(), agent=live)


def pending(
    seconds: float = 87.5, *, wall: float | None = None, same_boot: bool = True, current: Slot | None = "a"
) -> Snapshot:
    """1.4.2 runs from slot a in place of 1.4.0 and waits for its welcome; 1.4.1 failed yesterday."""
    swapped_at = int(NOW - (WELCOME_SECONDS - seconds))
    record = PendingRecord(
        swap_id="6b" * 16,
        from_version=Foreign("1.4.0"),
        to_version=Foreign("1.4.2"),
        from_slot="b",
        to_slot="a",
        sequence=16,
        command_id=None,
        launched=True,
        swapped_at=swapped_at,
        deadline=swapped_at + WELCOME_SECONDS,
        boot_id="boot",
        swapped_boottime=1000.0,
    )
    base = status(failed=(failed_entry(),), current=current or "a", versions=("1.4.2", "1.4.0"))
    waiting = base._replace(
        pending=Reading("good", record, ""),
        left=Left(seconds, seconds if wall is None else wall, same_boot=same_boot),
        current=base.current if current is not None else Link(None, "somewhere/else", present=True),
    )
    live = agent(session={"state": "refused", "error": Foreign("not today")})
    return changed(_snapshot(waiting, live), crash_loop_rollback=True)


def overdue() -> Snapshot:
    """1.4.2 had to be welcomed 14 seconds ago, and nobody has swapped back."""
    return changed(pending(-14.0), agent=None, vitals=NO_AGENT)


def swapped_back() -> Snapshot:
    """The crash loop's unit swapped 1.4.2 back; the agent has not settled that yet."""
    return changed(pending(40.0, current="b"), agent=None, vitals=NO_AGENT)


def current_malformed() -> Snapshot:
    """1.4.2 is pending, and `current` names neither slot."""
    return pending(40.0, current=None)


def rolled_back() -> Snapshot:
    """1.4.1 was rolled back yesterday, after 1.4.0 was confirmed."""
    confirmed = Confirmed(Foreign("1.4.0"), 14, int(NOW) - 2 * DAY, "5a" * 16)
    return _snapshot(status(failed=(failed_entry(),), confirmed=confirmed), agent())


def with_failed(*entries: Failed) -> Snapshot:
    """These failed here, oldest first."""
    return _snapshot(status(failed=entries), agent())


def many_failed(count: int = 32) -> Snapshot:
    """1.5.0 to 1.5.31 failed, an hour apart."""
    return with_failed(
        *(
            failed_entry(f"1.5.{n}", f"reason number {n}", at=int(NOW) - DAY + 3600 * n, sequence=20 + n)
            for n in range(count)
        )
    )


def odd_failed() -> Snapshot:
    """Reasons that are long, wide, combining, in brackets, and full of controls."""
    texts = (LONG, WIDE, COMBINING, *BRACKETS, *CONTROLS)
    return with_failed(*(failed_entry(f"1.6.{n}", text, sequence=40 + n) for n, text in enumerate(texts)))


def config_broken() -> Snapshot:
    """The configuration does not parse."""
    trouble = UsageError("bad-config", f"{CONFIG_PATH}: [update] relase_pins is no key", "did you mean release_pins?")
    return Snapshot(status=None, agent=None, trouble=trouble, taken_at=NOW)


def records_unreadable() -> Snapshot:
    """This user may not read the records."""
    calm = at_rest().status
    assert calm is not None
    why = "this user may not read it"
    shown = calm._replace(
        update=Reading[UpdateRecord]("unreadable", None, why),
        problems=(Problem(calm.layout.update_record, "unreadable", why),),
    )
    return changed(_snapshot(shown, agent()), clear_refused=REFUSED)


def agent_down() -> Snapshot:
    """At rest, and no agent answers."""
    return changed(at_rest(), agent=None, vitals=NO_AGENT)


def record_broken() -> Snapshot:
    """The update record did not parse, was moved aside, and nothing is known of before."""
    calm = at_rest().status
    assert calm is not None
    shown = calm._replace(
        update=Reading[UpdateRecord]("corrupt", None, "it is no JSON"),
        problems=(Problem(calm.layout.update_record, "corrupt", "it is no JSON"),),
        aside=(f"{calm.layout.update_record}.broken-1",),
    )
    return _snapshot(shown, agent())


def old_binary() -> Snapshot:
    """`current` moved since this console started."""
    return changed(at_rest(), running_slot_moved=True)


def clear_not_permitted() -> Snapshot:
    """1.4.1 failed, and this user may not clear it."""
    return changed(rolled_back(), clear_refused=REFUSED)


EVERY = {
    "never-updated": never_updated,
    "at-rest": at_rest,
    "downloading": downloading,
    "pending": pending,
    "overdue": overdue,
    "swapped-back": swapped_back,
    "current-malformed": current_malformed,
    "rolled-back": rolled_back,
    "many-failed": many_failed,
    "odd-failed": odd_failed,
    "config-broken": config_broken,
    "records-unreadable": records_unreadable,
    "record-broken": record_broken,
    "agent-down": agent_down,
    "old-binary": old_binary,
    "clear-not-permitted": clear_not_permitted,
}
"""Every state, by name."""
