"""What the rules say of a node at rest, looked up on its disk and in the gateway's book.

Each function holds one kind of end against everything that can be seen of it, and notes what is not so.
"""

import json
import os

from bcd.lab.book import Json
from bcd.lab.labnode import Unmet
from bcd.lab.releases import Release
from bcd.lab.scenario import Stage
from bcd.lab.world import INSTALLED_SEQUENCE, INSTALLED_VERSION


def confirmed(stage: Stage, release: Release, *, slot: str) -> None:
    """`release` runs from `slot` (`bcd-a`, `bcd-b`), was welcomed, and nothing older is accepted any more."""
    root = stage.node.root
    stage.node.wait_welcome(release.version)
    # The floor is raised by the welcome, a moment after it.
    stage.node.wait_root(
        lambda root: root.pending() is None and root.update_record().get("sequence") == release.sequence,
        f"no pending update and the floor {release.sequence}",
        lambda root: f"pending {root.pending()}, {root.update_record()}",
    )
    _runs(stage, version=release.version, sequence=release.sequence, digest=release.digest, slot=slot)
    stage.check("update.json: confirmed", release.version, (root.update_record().get("confirmed") or {}).get("version"))
    stage.check_that(
        "update.json: failed",
        f"without {release.version}",
        holds=release.version not in root.failed(),
        seen=root.failed(),
    )


def untouched(stage: Stage) -> None:
    """Nothing was changed: the installed file is still a plain one, and its process was never replaced."""
    root, page = stage.node.root, stage.node.page()
    stage.check("the entrypoint is a symlink", expected=False, seen=root.entrypoint.is_symlink())
    stage.check("current", None, root.link("current"))
    stage.check("the slots", (None, None), (root.slot_digest("bcd-a"), root.slot_digest("bcd-b")))
    stage.check("upgrade.json", None, root.pending())
    stage.check("failed versions", {}, root.failed())
    stage.check("starts", 1, stage.node.supervisor.starts)
    stage.check("versions that said hello", [INSTALLED_VERSION], page.versions())


def rolled_back(stage: Stage, release: Release, *reason: str) -> None:
    """The installed version runs again from slot a, and remembers why `release` failed; `reason` are parts of it."""
    root = stage.node.root
    stage.node.wait_welcome(INSTALLED_VERSION)
    stage.node.wait_root(
        lambda root: root.pending() is None and release.version in root.failed(),
        f"no pending update and {release.version} failed",
        lambda root: f"pending {root.pending()}, {root.update_record()}",
    )
    _runs(stage, version=INSTALLED_VERSION, sequence=None, digest=None, slot="bcd-a")
    stage.check("previous", "bcd-a", root.link("previous"))
    said = root.failed()[release.version]
    for part in (f"bcd {release.version} ", *reason):
        stage.check_that("the reason of the failure", f"has {part!r}", holds=part in said, seen=said)
    floor = root.update_record().get("sequence", 0)
    stage.check_that("the floor", f"at most {INSTALLED_SEQUENCE}", holds=floor <= INSTALLED_SEQUENCE, seen=floor)


def section_failed(stage: Stage, generation: int, code: str) -> Json:
    """The section ends FAILED with `code`, for this generation; returns its status."""
    status = stage.node.wait_section(generation, "FAILED")
    stage.check("section status: reason", "UpdateFailed", status.get("reason"))
    stage.check("section status: code", code, status.get("code"))
    stage.check_that(
        "section status: message", "a sentence", holds=" " in str(status.get("message", "")), seen=status.get("message")
    )
    return status


def answered_once(stage: Stage, command: str, state: str, *, code: str | None = None) -> None:
    """The command ended with `state`, and the gateway was given one answer, however often it was told.

    It may be told twice: after a welcome for want of an ack, and to a command that is replayed after that welcome.
    """
    answer = stage.node.wait_answer(command)
    page = stage.node.page()
    stage.check("the command's end", state, answer.get("state"))
    if state == "FAILED":
        stage.check("the command's reason", "update-failed", answer.get("reason"))
    if code is not None:
        stage.check("the command's code", code, answer.get("code"))
    stage.check("different answers", 1, len({json.dumps(body, sort_keys=True) for body in page.answers(command)}))
    stage.check("the answer is kept by the gateway", expected=True, seen=page.commands[command].finished)


def downloaded(stage: Stage, release: Release, times: int = 1) -> None:
    """The file of `release` was asked for so often."""
    requests = stage.node.downloads(release)
    stage.check(f"requests for {release.version}", times, len(requests))


def _runs(stage: Stage, *, version: str, sequence: int | None, digest: str | None, slot: str) -> None:
    """What holds for whatever runs from a slot after everything is settled; `digest` None for the installed file."""
    root = stage.node.root
    stage.check("the entrypoint", str(root.slots / "current"), _read_link(stage))
    stage.check("current", slot, root.link("current"))
    record = root.slots_record().get(slot.removeprefix("bcd-")) or {}
    stage.check(f"slots.json: {slot}'s version", version, record.get("version"))
    stage.check(f"slots.json: {slot}'s digest", record.get("sha256"), root.slot_digest(slot))
    if digest is not None:
        stage.check(f"{slot}'s bytes", digest, root.slot_digest(slot))
    if sequence is not None:
        stage.check(f"slots.json: {slot}'s sequence", sequence, record.get("sequence"))
    stage.check("upgrade.json", None, root.pending())
    stage.check("a rolled-back marker", expected=False, seen=(root.records / "rolled-back").exists())


def _read_link(stage: Stage) -> str:
    try:
        return os.readlink(stage.node.root.entrypoint)
    except OSError as error:
        raise Unmet("the entrypoint", "a symlink to current", error.strerror) from error
