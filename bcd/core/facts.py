"""What the checks must know of this node, gathered from what was read of it. Reads slots and entrypoint, writes nothing."""

import os

from bcd.core.acceptance import NodeFacts
from bcd.core.build import Build
from bcd.core.config import Config
from bcd.core.entrypoint import inspect_entrypoint
from bcd.core.errors import Refusal
from bcd.core.floor import release_floor
from bcd.core.layout import Layout
from bcd.core.links import CURRENT, other_slot, read_link
from bcd.core.records import SlotRecord, SlotsRecord, UpdateRecord
from bcd.core.section import named_version
from bcd.core.slotfile import is_program, is_whole
from bcd.core.text import raw


def node_facts(
    *,
    config: Config,
    build: Build,
    layout: Layout,
    update: UpdateRecord,
    slots: SlotsRecord,
    spec: object,
    now: int,
    platform: str,
) -> NodeFacts:
    """Gather the facts for one section.

    Args:
        config: what is in force.
        build: the running binary's stamp.
        layout: the node's paths.
        update: `update.json`, or what stands for it where it is lost.
        slots: `slots.json`.
        spec: the section: its version decides whether the other slot is worth hashing.
        now: Unix seconds, the latest of the node's clock and the gateway's.
        platform: this machine's.

    Raises:
        OSError: the slots can't be looked at.
    """
    try:
        inspect_entrypoint(layout, as_root=os.geteuid() == 0)
        entrypoint = None
    except Refusal as refusal:
        entrypoint = refusal
    return NodeFacts(
        pins=config.update.release_pins,
        threshold=config.update.release_threshold,
        failed={raw(failed.version): failed.reason for failed in update.failed},
        floor=release_floor(update, None, config.update.release_sequence, build.sequence),
        # No clock can truly read less than the time at which what runs was built (field report 33: 1970).
        now=max(now, build.built_at),
        platform=platform,
        clear_text=build.fakehw or config.node.dev_insecure_h2c,
        entrypoint=entrypoint,
        reusable=_reusable(layout, slots, spec),
    )


def _reusable(layout: Layout, slots: SlotsRecord, spec: object) -> SlotRecord | None:
    current = read_link(layout.slots_dir, CURRENT).slot
    if current is None:
        return None
    other = other_slot(current)
    record = slots.of(other)
    # Hashing 512 MiB for a section that names another version would be work for nothing.
    if record is None or record.version != named_version(spec):
        return None
    # The right bytes without the right to run would be switched to, could not be started, and be held against it.
    return record if is_program(layout.slots_dir, other) and is_whole(layout.slots_dir, other, record) else None
