"""A target that is refused changes nothing on the node: prepare and swap, by each code, and by each retryable one."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES, CODES
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.layout import Layout
from bcd.core.manifest import Artifact
from bcd.core.space import check_room, refuse_unwritable_mount
from bcd.release.keys import generate_key
from tests.core.node_root import NOW, PLATFORM, Node, Release, code_of, make_release, program, quick_node, signing_keys

ONE = make_release("1.1.0", 11)
TWO = make_release("1.2.0", 12)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """On 1.1.0 with a floor of 11, 1.0.0 in the other slot."""
    made = quick_node(tmp_path, monkeypatch)
    made.update(ONE)
    return made


def artifact(**fields: object) -> tuple[Artifact, ...]:
    """One artifact, as given."""
    given: dict[str, object] = {"name": "bcd", "platform": PLATFORM, "sha256": "ab" * 32, "size": 7, **fields}
    return (Artifact(**given),)  # type: ignore[arg-type]  # by name, from the table below


def signed_twice(release: Release) -> Release:
    """The same with its first signature twice, and no other."""
    envelope = json.loads(str(release.section["signature"]))
    envelope["signatures"] = envelope["signatures"][:1] * 2
    return make_release(release.version, release.sequence, section={"signature": json.dumps(envelope)})


REFUSED: dict[str, tuple[str, Release]] = {
    "unknown field": ("bad-section", make_release("1.2.0", 12, section={"sha_256": ""})),
    "version with a path": ("bad-section", make_release("1.2.0", 12, section={"version": "../1.2.0"})),
    "version with a v": ("bad-section", make_release("1.2.0", 12, section={"version": "v1.2.0"})),
    "digest of 63 digits": ("bad-section", make_release("1.2.0", 12, section={"sha256": "a" * 63})),
    "clear text": ("bad-url", make_release("1.2.0", 12, section={"url": "http://releases.example.com/bcd"})),
    "credentials": ("bad-url", make_release("1.2.0", 12, section={"url": "https://me:word@releases.example.com/bcd"})),
    "no manifest": ("manifest-shape", make_release("1.2.0", 12, section={"signature": "{}"})),
    "one signer": ("manifest-signatures", make_release("1.2.0", 12, signers=signing_keys()[:1])),
    "one signer twice": ("manifest-signatures", signed_twice(TWO)),
    "strangers": ("manifest-signatures", make_release("1.2.0", 12, signers=[generate_key("one"), generate_key("two")])),
    "another product": ("wrong-product", make_release("1.2.0", 12, product="bcd-helper")),
    "another version": ("version-mismatch", make_release("1.2.0", 12, section={"version": "1.2.1"})),
    "expired this second": ("expired", make_release("1.2.0", 12, expires_at=NOW)),
    "below the floor": ("below-floor", make_release("1.2.0", 10)),
    "another platform": ("no-artifact", make_release("1.2.0", 12, artifacts=artifact(platform="plan9-vax"))),
    "another file": ("digest-mismatch", make_release("1.2.0", 12, artifacts=artifact())),
    "too large": (
        "too-large",
        make_release("1.2.0", 12, artifacts=artifact(size=ARTIFACT_LIMIT_BYTES + 1), section={"sha256": "ab" * 32}),
    ),
}

ASKED: dict[str, Callable[[Node, Release], object]] = {
    "prepare": lambda node, release: node.manager().prepare(release.section, server_time=None),
    "swap": lambda node, release: node.manager().swap(release.section, server_time=None, command_id=None),
}


def refuse(node: Node, asked: str, release: Release, expected: str) -> BcdError:
    """It is refused so, and nothing on the disk but the history is another."""
    node.stage(release)
    before, told = node.tree(), node.events()
    with pytest.raises(BcdError) as caught:
        ASKED[asked](node, release)
    assert code_of(caught.value) == expected
    assert node.tree() == before
    assert node.runs() == "1.1.0"
    new = node.events()[len(told) :]
    if isinstance(caught.value, Refusal):
        said = {"event": "refused", "code": caught.value.code, "reason": caught.value.message}
        assert new == [{"at": NOW, "version": release.section.get("version"), **said}]
    else:
        assert new == []
    return caught.value


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_target_leaves_the_disk_as_it_is(node: Node, name: str, asked: str) -> None:
    """By the code that says why, and one line of history."""
    code, release = REFUSED[name]
    refuse(node, asked, release, f"Refusal: {code}")


def test_the_table_of_refusals_is_whole() -> None:
    """Each code of section 4 is here, or has a test of its own below."""
    own = {"no-pins", "failed-version", "manifest-canonical", "unsafe-entrypoint"}
    assert {code for code, _ in REFUSED.values()} | own == set(CODES)


@pytest.mark.parametrize("asked", ASKED)
def test_a_target_that_is_no_object_is_refused(node: Node, asked: str) -> None:
    """Whatever the wire brings."""
    before = node.tree()
    for spec in (None, [1], "1.2.0", {"version": 3}, {}):
        with pytest.raises(Refusal) as caught:
            ASKED[asked](node, Release(version="", sequence=0, data=b"", section=cast("dict[str, object]", spec)))
        assert caught.value.code == "bad-section"
    assert node.tree() == before


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("pins", ["", "one"])
def test_without_enough_pins_nothing_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pins: str, asked: str
) -> None:
    """None, or fewer than the threshold."""
    quick_node(tmp_path, monkeypatch).update(ONE)
    listed = f'release_pins = "{signing_keys()[0].pin if pins else ""}"'
    node = Node(tmp_path, update=listed, fresh=False)
    refuse(node, asked, TWO, "Refusal: no-pins")


@pytest.mark.parametrize("asked", ASKED)
def test_a_failed_version_is_refused_until_it_is_cleared(node: Node, asked: str) -> None:
    """For ever, by whatever section names it, with its reason; nothing is written but history (field report 22)."""
    node.fail(TWO)
    for release in (TWO, make_release("1.2.0", 99), make_release("1.2.0", 12, data=b"#!/bin/sh\n")):
        error = refuse_failed(node, asked, release)
        assert "bcd 1.2.0 was not welcomed by a gateway before its deadline" in error.message
    node.clock.passes(366 * 86_400)
    refuse_failed(node, asked, TWO)
    node.manager().clear_failed(("1.2.0",))
    node.update(make_release("1.2.0", 12, expires_at=int(node.clock.now) + 60))
    assert node.runs() == "1.2.0"


def refuse_failed(node: Node, asked: str, release: Release) -> BcdError:
    """It is refused as failed; nothing but the history is another."""
    before = node.tree()
    with pytest.raises(Refusal) as caught:
        ASKED[asked](node, release)
    assert caught.value.code == "failed-version"
    assert node.tree() == before
    return caught.value


def test_a_manifest_that_is_signed_but_not_canonical_is_refused(node: Node) -> None:
    """The body must be what anyone else would have signed, byte for byte."""
    from base64 import b64decode

    from bcd.core.trust import PURPOSE
    from bcd.release.signing import envelope

    body = b64decode(json.loads(str(TWO.section["signature"]))["manifest"]).replace(b'{"', b'{ "', 1)
    signed = envelope(body, [(key.kid, key.sign(PURPOSE + body)) for key in signing_keys()[:2]])
    refuse(node, "swap", make_release("1.2.0", 12, section={"signature": signed}), "Refusal: manifest-canonical")


# What counts as now, and as the floor --------------------------------------------------------------------------------


def test_the_latest_of_three_clocks_expires_a_manifest(node: Node) -> None:
    """A clock at 1970 brings no expired manifest to life where the gateway or the build knows better (report 33)."""
    short = make_release("1.2.0", 12, expires_at=NOW + 10)
    node.clock.now = 60.0
    assert node.manager().prepare(short.section, server_time=None) is not None
    assert node.manager(built_at=NOW + 9).prepare(short.section, server_time=NOW + 9) is not None
    for manager, server_time in ((node.manager(), NOW + 10), (node.manager(built_at=NOW + 10), None)):
        with pytest.raises(Refusal, match="expired"):
            manager.prepare(short.section, server_time=server_time)


def test_the_greatest_of_three_floors_counts(node: Node) -> None:
    """The record's, the configuration's, the build's."""
    refuse(node, "prepare", make_release("1.2.0", 10), "Refusal: below-floor")
    assert node.manager().prepare(make_release("1.2.0", 11).section, server_time=None) is not None
    with pytest.raises(Refusal, match="floor of 20"):
        node.manager(sequence=20).prepare(make_release("1.2.0", 19).section, server_time=None)
    pins = ",".join(key.pin for key in signing_keys())
    configured = Node(node.root, fresh=False, update=f'release_pins = "{pins}"\nrelease_sequence = 30')
    with pytest.raises(Refusal, match="floor of 30"):
        configured.manager(sequence=20).prepare(make_release("1.2.0", 29).section, server_time=None)


def test_versions_are_ordered_by_sequence_alone(node: Node) -> None:
    """`1.0.9` after `1.1.0` is an update when its sequence says so (field report 31)."""
    for version, sequence in (("1.0.9", 12), ("1.4.0-rc.10", 13), ("1.4.0-rc.2", 14), ("1.4.0+build.7", 15)):
        node.update(make_release(version, sequence))
        assert node.runs() == version
    refuse_floor = make_release("9.9.9", 14)
    with pytest.raises(Refusal, match="below this node's floor of 15"):
        node.manager().prepare(refuse_floor.section, server_time=None)


# Retryable -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("launched", [False, True])
def test_a_second_update_waits_for_the_first(node: Node, launched: bool, asked: str) -> None:
    """No file is touched, and the first one still settles (field report 10)."""
    node.swap(TWO)
    if launched:
        node.start()
    three = make_release("1.3.0", 13)
    node.stage(three)
    before = node.tree(history=True)
    for release in (three, TWO, make_release("1.3.0", 1)):
        with pytest.raises(HostError) as caught:
            node.manager("1.1.0").prepare(release.section, server_time=None)
        assert caught.value.code == "update-in-progress"
        assert caught.value.retryable
        with pytest.raises(HostError, match="pending"):
            node.manager("1.1.0").swap(release.section, server_time=None, command_id=None)
    assert node.tree(history=True) == before
    node.start()
    assert node.manager().confirm() is not None
    node.update(three)
    assert node.runs() == "1.3.0"


@pytest.mark.parametrize("flag", ["ST_RDONLY", "ST_NOEXEC"])
def test_a_mount_that_cannot_hold_a_slot_is_named(node: Node, monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    """Before anything moves (field reports 25, 35); mounted well again, it works."""
    node.stage(TWO)
    before = node.tree(history=True)
    real = os.statvfs(node.root)
    mounted = os.statvfs_result((*tuple(real)[:8], real.f_flag | getattr(os, flag), *tuple(real)[9:]))
    with monkeypatch.context() as patched:
        patched.setattr(
            "bcd.core.manager.refuse_unwritable_mount", partial(refuse_unwritable_mount, statvfs=lambda _: mounted)
        )
        with pytest.raises(HostError, match="is mounted ") as caught:
            ASKED["swap"](node, TWO)
    assert caught.value.code == "io-error"
    assert node.tree(history=True) == before
    node.update(TWO)
    assert node.runs() == "1.2.0"


@pytest.mark.parametrize(("blocks", "inodes", "words"), [(1, 10**6, "bytes on /"), (10**9, 7, "8 inodes on /")])
def test_a_disk_without_room_is_named(
    node: Node, monkeypatch: pytest.MonkeyPatch, blocks: int, inodes: int, words: str
) -> None:
    """Before anything moves; with room again, it works (field report 29)."""
    node.stage(TWO)
    before = node.tree(history=True)
    full = os.statvfs_result((4096, 4096, 10**9, blocks, blocks, 10**7, inodes, inodes, 0, 255))
    with monkeypatch.context() as patched:
        patched.setattr("bcd.core.manager.check_room", partial(check_room, statvfs=lambda _: full))
        with pytest.raises(HostError, match=words) as caught:
            ASKED["swap"](node, TWO)
    assert caught.value.code == "no-space"
    assert node.tree(history=True) == before
    node.update(TWO)
    assert node.runs() == "1.2.0"


class OtherUnit:
    """A service that starts something else than the entrypoint, or whose units can't be written."""

    def __init__(self, *, units: bool) -> None:
        self._units = units

    def require_entrypoint(self, layout: Layout) -> None:
        """It starts something else (field report 20)."""
        if not self._units:
            raise Refusal(
                "unsafe-entrypoint", f"bcd.service starts /opt/bcd, but the entrypoint is {layout.entrypoint}"
            )

    def write_rollback_units(self, layout: Layout) -> None:
        """They can't be written."""
        raise HostError("io-error", f"the units for {layout.entrypoint} could not be written")


@pytest.mark.parametrize("asked", ASKED)
def test_a_unit_that_starts_something_else_is_refused(node: Node, asked: str) -> None:
    """What would be switched is not what runs: refused before a byte is written."""
    node.service = OtherUnit(units=False)
    refuse(node, asked, TWO, "Refusal: unsafe-entrypoint")


def test_units_that_cannot_be_written_stop_the_swap(node: Node) -> None:
    """Retryable; nothing was switched (field report 34)."""
    node.service = OtherUnit(units=True)
    refuse(node, "swap", TWO, "HostError: io-error")


def test_a_new_process_prepares_what_an_old_one_did(node: Node) -> None:
    """The history says `prepared` once a process and version, and what is asked between is told too."""
    manager = node.manager()
    told = len(node.events())
    for release in (TWO, TWO, make_release("1.3.0", 13), TWO):
        manager.prepare(release.section, server_time=None)
    assert [event["version"] for event in node.events()[told:]] == ["1.2.0", "1.3.0", "1.2.0"]
    assert program("1.2.0") == TWO.data


def test_a_node_that_asks_and_asks_leaves_the_rest_of_the_history_where_it_is(node: Node) -> None:
    """The attack: refusals, or two good releases in turn, until what happened here has been rotated away."""
    before, manager = node.events(), node.manager()
    below = make_release("1.2.0", 10)
    for n in range(200):
        with pytest.raises(Refusal):
            manager.prepare({**below.section, "version": f"1.2.{n}"}, server_time=None)
        manager.prepare((TWO, make_release("1.3.0", 13))[n % 2].section, server_time=None)
    assert len(node.events()) == len(before) + 60
    node.clock.passes(3600)
    with pytest.raises(Refusal) as caught:
        manager.prepare(below.section, server_time=None)
    assert node.events()[-1]["code"] == caught.value.code
    assert node.events()[: len(before)] == before
