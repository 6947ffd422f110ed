"""The release floor: the lowest sequence that this node still accepts. It never falls."""

from bcd.core.records import SlotsRecord, UpdateRecord


def release_floor(update: UpdateRecord | None, slots: SlotsRecord | None, configured: int, built_in: int) -> int:
    """The greatest of `update.json`'s sequence, `[update] release_sequence` and the running binary's own.

    Without `update.json` (`update` None: lost, or not written yet) the slots' records are evidence too: a lost
    record must not let an older release in (field report 24; spec/self-update.md section 5).
    """
    known = [configured, built_in]
    if update is not None:
        known.append(update.sequence)
    elif slots is not None:
        known.extend(record.sequence for record in (slots.a, slots.b) if record is not None)
    return max(known)
