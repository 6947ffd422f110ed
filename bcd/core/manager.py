"""The manager: prepare, swap, settle, confirm, roll back, clear. The rules' hands.

Disk is the truth: each operation re-reads it, takes the lock, is safe to repeat, and leaves one of the states that
Settle knows wherever it is cut off. It draws nothing, downloads nothing and restarts nothing: the node does, told by
what is returned here. One interface for both ways of running (spec/self-update.md sections 6 to 10).
"""

import logging
import os
from pathlib import Path

from bcd.core import steps
from bcd.core.acceptance import Acceptance, judge
from bcd.core.adopt import AskVersion, adopt, ask_version
from bcd.core.answers import Fetch, Prepared, Settled, Way
from bcd.core.build import Build, this_platform
from bcd.core.clock import Clock
from bcd.core.config import Config
from bcd.core.deadline import WELCOME_SECONDS, time_left
from bcd.core.durable import as_host_error, make_directories, sync_directory
from bcd.core.entrypoint import EntrypointKind, inspect_entrypoint
from bcd.core.errors import HostError, Refusal
from bcd.core.facts import node_facts
from bcd.core.history import Ration, append_event
from bcd.core.layout import layout_of
from bcd.core.leftovers import remove_stale, remove_stale_downloads
from bcd.core.links import CURRENT, PREVIOUS, Slot, other_slot, read_link, slot_file, switch_link
from bcd.core.lock import locked
from bcd.core.look import Look
from bcd.core.records import Confirmed, Failed, PendingRecord, SlotRecord, read_update
from bcd.core.section import DaemonSection, named_version
from bcd.core.service import ServiceManager
from bcd.core.settle import Outcome, Situation, decide, failure_reason
from bcd.core.slotfile import is_program, is_whole
from bcd.core.space import check_room, refuse_unwritable_mount
from bcd.core.stage import stage
from bcd.core.store import Store
from bcd.core.text import raw

_log = logging.getLogger(__name__)

_LOCK_SECONDS = 10.0
"""How long an operation that must not be refused waits; a swap or a clear does not take longer."""


class Manager:
    """Self-update on one node."""

    def __init__(
        self,
        *,
        config: Config,
        build: Build,
        clock: Clock,
        service: ServiceManager,
        staging_owner: int | None = None,
        ask: AskVersion = ask_version,
        platform: str | None = None,
    ) -> None:
        self._config = config
        self._build = build
        self._clock = clock
        self._service = service
        self._staging_owner = staging_owner
        self._ask = ask
        self._platform = platform or this_platform()
        self._layout = layout_of(config)
        self._store = Store(self._layout, clock)
        self.look = Look(self._layout, clock)
        self._prepared: str | None = None
        self._asked = Ration()

    def running_version(self) -> str:
        """The version that runs here: this process's own, or under the helper the current slot's (section 10)."""
        if not self._under_helper:
            return self._build.version
        return self.look.current_version() or self._build.version

    @property
    def _under_helper(self) -> bool:
        return self._staging_owner is not None

    # -- prepare ------------------------------------------------------------------------------------------------

    def prepare(self, spec: object, *, server_time: int | None) -> Prepared | None:
        """Run every check over a section, before anything is downloaded.

        Args:
            spec: the section, in whatever shape it came.
            server_time: the gateway's, Unix seconds; can only make the expiry stricter.

        Returns:
            What to do; None where the section names the running version.

        Raises:
            Refusal: by a code of section 4.
            HostError: `update-in-progress`, a swap is pending; `io-error`.
        """
        if named_version(spec) == self.running_version():
            return None
        with as_host_error("look at this node's slots and records"):
            self._require_none_pending()
            answer = self._judge(spec, server_time)
        section = self._accepted(spec, answer)
        if self._prepared != section.version:
            self._prepared = section.version
            self._note_asked("prepared", version=section.version)
        if answer.artifact is None or answer.manifest is None:
            return Prepared(version=section.version, fetch=None)
        fetch = Fetch(
            version=section.version,
            sequence=answer.manifest.sequence,
            url=section.url,
            sha256=answer.artifact.sha256,
            size=answer.artifact.size,
        )
        return Prepared(version=section.version, fetch=fetch)

    # -- swap ---------------------------------------------------------------------------------------------------

    def swap(self, spec: object, *, server_time: int | None, command_id: str | None) -> PendingRecord:
        """Put the target into the other slot and switch to it. The caller then execs the entrypoint.

        Raises:
            Refusal: by a code of section 4, or `wrong-platform-binary`.
            HostError: `update-in-progress`, `no-space`, `io-error`; what ran before is current.
        """
        with as_host_error("swap"):
            make_directories(self._layout.records_dir)
            with locked(self._layout.records_dir, 0.0):
                self._require_none_pending()
                answer = self._judge(spec, server_time)
                section = self._accepted(spec, answer)
                if section.version == self.running_version():
                    # A node that lies: the slot that ran before, and that a rollback wants, would be gone for nothing.
                    raise HostError("io-error", f"bcd {section.version} is what runs here", "there is nothing to swap")
                try:
                    from_slot, record = self._fill_other_slot(answer)
                except Refusal as refusal:
                    self._note_refused(section.version, refusal)
                    raise
                pending = self._pending(from_slot, record, command_id)
                self._switch(pending)
                self._note("swapped", version=record.version, sequence=record.sequence, slot=pending.to_slot)
                return pending

    def _fill_other_slot(self, answer: Acceptance) -> tuple[Slot, SlotRecord]:
        layout = self._layout
        make_directories(layout.slots_dir)
        slots_dir = Path(layout.slots_dir)
        refuse_unwritable_mount(slots_dir, executable=True)
        if answer.artifact is not None:
            # Under the helper staging is the node's, who may put there what hangs whoever asks its file system; the
            # download is on the disk already, so that only the slot needs room.
            staging = slots_dir if self._under_helper else Path(layout.staging)
            check_room(staging, slots_dir, answer.artifact.size, already=answer.artifact.size)
        kind = inspect_entrypoint(layout, as_root=os.geteuid() == 0)
        # The floor is on record before the first slot is: from then on an absent record is a lost one.
        if not os.path.exists(layout.update_record):
            self._store.save_update(self._store.update())
        current = adopt(
            layout,
            self._store,
            self._clock,
            kind=kind,
            platform=self._platform,
            running_version=self.running_version(),
            ask=self._ask,
        )
        if kind is EntrypointKind.ADOPTABLE:
            adopted = self._store.slots().of(current)
            self._note("adopted", version=None if adopted is None else raw(adopted.version), slot=current)
        self._service.write_rollback_units(layout)
        if answer.reused is not None:
            return current, answer.reused
        assert answer.manifest is not None and answer.artifact is not None  # noqa: S101, PT018  # accepted, not reused
        record = stage(
            layout,
            self._store,
            self._clock,
            slot=other_slot(current),
            manifest=answer.manifest,
            artifact=answer.artifact,
            owner=self._staging_owner,
            platform=self._platform,
        )
        self._note("downloaded", version=record.version, sequence=record.sequence, size=record.size)
        steps.reached("staged")
        return current, record

    def _pending(self, from_slot: Slot, record: SlotRecord, command_id: str | None) -> PendingRecord:
        before = self._store.slots().of(from_slot)
        now = int(self._clock.wall())
        return PendingRecord(
            swap_id=os.urandom(16).hex(),
            from_version=self.running_version() if before is None else before.version,
            to_version=record.version,
            from_slot=from_slot,
            to_slot=other_slot(from_slot),
            sequence=record.sequence,
            command_id=command_id,
            launched=False,
            swapped_at=now,
            deadline=now + WELCOME_SECONDS,
            boot_id=self._clock.boot_id(),
            swapped_boottime=self._clock.boottime(),
        )

    def _switch(self, pending: PendingRecord) -> None:
        slots_dir = self._layout.slots_dir
        self._store.remove_pending()
        try:
            self._store.save_pending(pending)
            steps.reached("recorded")
            switch_link(os.path.join(slots_dir, PREVIOUS), slot_file(pending.from_slot))
            steps.reached("previous-linked")
            switch_link(self._layout.current, slot_file(pending.to_slot))
            steps.reached("current-linked")
        except OSError:
            self._undo_switch(pending)
            raise

    def _undo_switch(self, pending: PendingRecord) -> None:
        # Record and link may be there although their fsync failed. Where even this fails the record stays, and where
        # the link is decides (field report 05: an undone link with a stale record deleted a live install).
        if read_link(self._layout.slots_dir, CURRENT).slot == pending.to_slot:
            switch_link(self._layout.current, slot_file(pending.from_slot))
        self._store.remove_pending()

    # -- settle -------------------------------------------------------------------------------------------------

    def settle(self) -> Settled:
        """Decide what this start is, and make it so. Every start of the agent calls it.

        Raises:
            HostError: `slots-broken`, neither slot can be trusted and nothing was touched; `io-error`,
                `update-in-progress`, the records can't be worked on.
        """
        with as_host_error("settle"):
            make_directories(self._layout.records_dir)
            with locked(self._layout.records_dir, _LOCK_SECONDS):
                return self._settle()

    def _settle(self) -> Settled:
        pending = self._store.pending()
        if pending is None:
            self._store.remove_pending()
            remove_stale(self._layout)
            if not self._under_helper:
                remove_stale_downloads(self._layout, self._clock)
            return Settled(outcome=Outcome.SETTLED, pending=None)
        outcome = decide(self._situation(pending))
        _log.info("settle: swap to %s is %s", pending.to_version, outcome.value)
        match outcome:
            case Outcome.PENDING:
                if not pending.launched:
                    pending = pending._replace(launched=True)
                    self._store.save_pending(pending)
                    steps.reached("launched")
                self.look.time_left()  # from here on there is never more
                return Settled(outcome=outcome, pending=pending)
            case Outcome.ROLL_BACK:
                return self._roll_back_late(pending)
            case Outcome.FINISH_CONFIRM | Outcome.INTERRUPTED:
                self._store.remove_pending()
                steps.reached("settled")
                if outcome is Outcome.FINISH_CONFIRM:  # whoever confirmed was cut off before it came to its own line
                    self._note("confirmed", version=raw(pending.to_version), sequence=pending.sequence)
                return Settled(outcome=outcome, pending=pending)
            case Outcome.RESTORE:
                pending = pending._replace(way=pending.way or "restored")
                self._store.save_pending(pending)
                self._store.leave_marker()
                switch_link(self._layout.current, slot_file(pending.from_slot))
                return Settled(outcome=outcome, pending=pending, failed=self._record_failure(pending), restart=True)
            case Outcome.ROLLED_BACK:
                return Settled(outcome=outcome, pending=pending, failed=self._record_failure(pending))
            case _:
                raise HostError(
                    "slots-broken",
                    f"{self._layout.current} names neither slot of the pending update, and slot {pending.from_slot} "
                    "does not hold what ran before",
                    f"install bcd at {self._layout.entrypoint} anew, then start the service",
                )

    def _situation(self, pending: PendingRecord) -> Situation:
        link = read_link(self._layout.slots_dir, CURRENT)
        there = link.slot if os.path.isfile(self._layout.current) else None
        return Situation(
            pending=pending,
            current=there,
            confirmed_swap_id=self._store.update().confirmed_swap,
            marker=self._store.marker,
            seconds_left=time_left(pending, self._clock).seconds,
            old_slot_whole=lambda: self._old_slot_whole(pending),
        )

    def _old_slot_whole(self, pending: PendingRecord) -> bool:
        slots_dir, slot = self._layout.slots_dir, pending.from_slot
        return is_program(slots_dir, slot) and is_whole(slots_dir, slot, self._store.slots().of(slot))

    def _roll_back_late(self, pending: PendingRecord) -> Settled:
        try:
            self._go_back(pending, way="late-start", said=None)
        except HostError as error:
            _log.error("the rollback did not happen: %s", error.message)  # no traceback for people
            return Settled(outcome=Outcome.ROLL_BACK, pending=pending, stayed=error)
        return Settled(outcome=Outcome.ROLL_BACK, pending=pending, restart=True)

    def _record_failure(self, pending: PendingRecord) -> Failed:
        # Whoever moved the link may have been killed before its fsync: without the record a lost rename would start
        # the failed release again, and nothing would be left to roll it back.
        sync_directory(self._layout.slots_dir)
        reason = failure_reason(pending, marker=self._store.marker)
        now = int(self._clock.wall())
        failed = Failed(raw(pending.to_version), pending.sequence, reason, now)
        self._store.save_update(self._store.update().with_failed(failed))
        steps.reached("failure-recorded")
        self._store.remove_pending()
        steps.reached("settled")
        self._note("settled-failed", version=raw(pending.to_version), sequence=pending.sequence, reason=reason)
        return failed

    # -- confirm ------------------------------------------------------------------------------------------------

    def confirm(self) -> PendingRecord | None:
        """A gateway welcomed what runs: raise the floor for good.

        Returns:
            The swap that is now confirmed; None where none is pending for what is current.

        Raises:
            HostError: it could not be written, so it is not confirmed; try again.
        """
        with as_host_error("confirm the update"), locked(self._layout.records_dir, _LOCK_SECONDS):
            pending = self._store.pending()
            if pending is None or read_link(self._layout.slots_dir, CURRENT).slot != pending.to_slot:
                return None
            update = self._store.update()
            if update.confirmed_swap != pending.swap_id:
                confirmed = Confirmed(
                    raw(pending.to_version), pending.sequence, int(self._clock.wall()), raw(pending.swap_id)
                )
                floor = max(update.sequence, pending.sequence)
                self._store.save_update(update._replace(sequence=floor, confirmed=confirmed))
            steps.reached("floor-raised")
            self._store.remove_pending()
            steps.reached("confirmed")
            self._note("confirmed", version=raw(pending.to_version), sequence=pending.sequence)
            return pending

    # -- rollback -----------------------------------------------------------------------------------------------

    def rollback(self, *, way: Way, said: str | None = None) -> bool:
        """Go back to the slot that ran before. The caller then execs the entrypoint, and that start settles it.

        Args:
            way: `deadline`, or `exec` when the new binary could not be started.
            said: the failed exec's error.

        Returns:
            Whether `current` moved; False where there is nothing to go back from.

        Raises:
            HostError: the old slot does not hold what ran before, or it could not be written: `current` is untouched.
        """
        with as_host_error("roll back"), locked(self._layout.records_dir, _LOCK_SECONDS):
            pending = self._store.pending()
            if pending is None or read_link(self._layout.slots_dir, CURRENT).slot != pending.to_slot:
                return False
            confirmed = read_update(self._layout.update_record).value
            if confirmed is not None and confirmed.confirmed_swap == pending.swap_id:
                # It was welcomed, and that is on disk: only the pending record's removal is owed yet, as Settle says too.
                return False
            self._go_back(pending, way=way, said=said)
            return True

    def _go_back(self, pending: PendingRecord, *, way: str, said: str | None) -> None:
        slots_dir, slot = self._layout.slots_dir, pending.from_slot
        record = self._store.slots().of(slot)
        whole = is_program(slots_dir, slot) if record is None else is_whole(slots_dir, slot, record)
        if not whole or not is_program(slots_dir, slot):
            raise HostError(
                "io-error",
                f"slot {slot} does not hold what ran before ({pending.from_version}), so bcd stays on {pending.to_version}",
                f"install bcd at {self._layout.entrypoint} anew, then start the service",
            )
        try:
            self._store.save_pending(pending._replace(way=way, said=said))
        except OSError as error:
            # Only for the failure's reason. A bad release that filled the disk must not stay because of that.
            _log.warning("the rollback could not be noted: %s", error)
        self._store.leave_marker()
        steps.reached("rollback-marked")
        try:
            switch_link(self._layout.current, slot_file(slot))
        except OSError as error:
            # Moved all the same, when only the fsync failed: whoever said that it was not would stay on a binary
            # that nobody starts again.
            if read_link(slots_dir, CURRENT).slot != slot:
                raise
            _log.warning("the rollback's link is not known to be on disk yet: %s", error)
        steps.reached("rollback-linked")
        self._note("rolled-back", version=raw(pending.to_version), sequence=pending.sequence, way=way)

    def note_gateway_refused(self, said: str) -> None:
        """Keep what a gateway said that answered and refused, for the failure's reason (section 7).

        Raises:
            HostError: it could not be written.
        """
        with as_host_error("note the gateway's refusal"), locked(self._layout.records_dir, _LOCK_SECONDS):
            pending = self._store.pending()
            if pending is not None and (pending.refused is None or raw(pending.refused) != said):
                self._store.save_pending(pending._replace(refused=said))

    # -- clear --------------------------------------------------------------------------------------------------

    def clear_failed(self, versions: tuple[str, ...] = ()) -> tuple[Failed, ...]:
        """Forget failed versions, so that a rollout may try them here again: all, or those named.

        Returns:
            What was forgotten.

        Raises:
            HostError: `io-error`, `update-in-progress`.
        """
        with as_host_error("clear the failed versions"), locked(self._layout.records_dir, _LOCK_SECONDS):
            update = self._store.update()
            forgotten = tuple(f for f in update.failed if not versions or raw(f.version) in versions)
            if forgotten:
                kept = tuple(failed for failed in update.failed if failed not in forgotten)
                self._store.save_update(update._replace(failed=kept))
                self._note("cleared", versions=[raw(failed.version) for failed in forgotten])
            return forgotten

    # -- shared -------------------------------------------------------------------------------------------------

    def _require_none_pending(self) -> None:
        pending = self._store.pending()
        # A swap that failed before its link moved, on a disk that took not even its record back, is in nobody's way:
        # the next one replaces it, under the lock. Otherwise a full disk would end updates until the next start.
        if pending is not None and decide(self._situation(pending)) is not Outcome.INTERRUPTED:
            raise HostError(
                "update-in-progress",
                "an update is pending here: it was swapped in and waits for its welcome",
                "it is confirmed or rolled back within two minutes; `bcd update` shows where it is",
            )

    def _judge(self, spec: object, server_time: int | None) -> Acceptance:
        facts = node_facts(
            config=self._config,
            build=self._build,
            layout=self._layout,
            update=self._store.update(),
            slots=self._store.slots(),
            spec=spec,
            now=max(int(self._clock.wall()), server_time or 0),
            platform=self._platform,
        )
        return judge(spec, facts)

    def _accepted(self, spec: object, answer: Acceptance) -> DaemonSection:
        try:
            if answer.refusal is not None:
                raise answer.refusal
            # A rule of step 2, asked before the download too: what no service would start is not worth fetching.
            self._service.require_entrypoint(self._layout)
        except Refusal as refusal:
            self._note_refused(named_version(spec), refusal)
            raise
        assert answer.section is not None  # noqa: S101  # not refused
        return answer.section

    def _note_refused(self, version: str | None, refusal: Refusal) -> None:
        self._note_asked("refused", version=version, code=refusal.code, reason=refusal.message)

    def _note_asked(self, event: str, **fields: object) -> None:
        if self._asked.take(self._clock.boottime()):
            self._note(event, **fields)

    def _note(self, event: str, **fields: object) -> None:
        append_event(self._layout.history, event, int(self._clock.wall()), **fields)
