"""What the other slot holds already is taken without a manifest, and under no fewer other checks (section 4)."""

import json

import pytest

from bcd.core.records import SlotRecord
from tests.core.manifests import NOW, SHA256, VERSION
from tests.core.test_acceptance import ORDER, SPOIL, UNSAFE, Case, refused, spoil_entrypoint, states

HELD = SlotRecord(version=VERSION, sequence=15, sha256=SHA256, size=1000, written_at=NOW - 3600)
NEEDLESS = ORDER[4:14]


def reusing(record: SlotRecord | None = HELD) -> Case:
    """A node whose other slot holds something, and a section with no manifest at all."""
    case = Case()
    case.section["signature"] = ""
    case.facts["reusable"] = record
    return case


def test_what_the_other_slot_holds_needs_no_manifest() -> None:
    """Nothing is fetched and nobody has to sign; what does not apply says so."""
    answer = reusing().judge()
    assert answer.refusal is None
    assert (answer.reused, answer.artifact, answer.manifest, answer.verification) == (HELD, None, None, None)
    assert [check.code for check in answer.checks] == ORDER
    assert states(answer) == {code: "skipped" if code in NEEDLESS else "passed" for code in ORDER}


@pytest.mark.parametrize(
    "record",
    [
        None,
        HELD._replace(sequence=0),
        HELD._replace(sequence=14),
        HELD._replace(sha256="cd" * 32),
        HELD._replace(sha256=SHA256.upper()),
        HELD._replace(version="1.4.0"),
        HELD._replace(version="1.4.1+build"),
    ],
    ids=[
        "none",
        "sequence unknown",
        "below the floor",
        "other bytes",
        "digest spelled otherwise",
        "other version",
        "build",
    ],
)
def test_what_is_not_the_very_release_is_not_reused(record: SlotRecord | None) -> None:
    """Then a manifest is needed, and without one it is refused; with one, it is fetched."""
    refused(reusing(record).judge(), "manifest-shape")
    case = reusing(record)
    del case.section["signature"]
    answer = case.judge()
    assert answer.refusal is None
    assert answer.reused is None
    assert answer.artifact is not None


@pytest.mark.parametrize("floor", [0, 1])
def test_an_adopted_install_is_not_reused_at_any_floor(floor: int) -> None:
    """Its sequence is unknown (0), which is not the same as low."""
    case = reusing(HELD._replace(sequence=0))
    case.facts["floor"] = floor
    refused(case.judge(), "manifest-shape")


def test_the_floor_holds_for_what_is_reused() -> None:
    """At the floor it is taken; once the floor has risen, no more."""
    case = reusing()
    case.facts["floor"] = 15
    assert case.judge().reused == HELD
    case.facts["floor"] = 16
    refused(case.judge(), "manifest-shape")


@pytest.mark.parametrize("code", ["no-pins", "bad-section", "bad-url", "failed-version"])
def test_reuse_skips_none_of_the_checks_before_the_manifest(code: str) -> None:
    """A node without pins takes nothing, a failed version stays failed."""
    case = reusing()
    SPOIL[code](case)
    refused(case.judge(), code)


def test_reuse_does_not_skip_the_entrypoint() -> None:
    """What can't be switched can't be switched back to either."""
    case = reusing()
    spoil_entrypoint(case)
    answer = case.judge()
    assert answer.refusal is UNSAFE
    assert (answer.reused, answer.artifact) == (None, None)
    assert states(answer)["unsafe-entrypoint"] == "failed"


def test_a_digest_in_upper_case_is_reused_too() -> None:
    """The section's spelling is no difference."""
    case = reusing()
    case.section["sha256"] = SHA256.upper()
    assert case.judge().reused == HELD


@pytest.mark.parametrize("signature", ["", "not base64", "{}", json.dumps({"manifest": "", "signatures": []})])
def test_what_comes_as_manifest_beside_a_reuse_is_not_looked_at(signature: str) -> None:
    """No manifest is needed, so none can spoil it."""
    case = reusing()
    case.section["signature"] = signature
    assert case.judge().reused == HELD
