"""What a node accepts: fifteen codes, each reachable, in their order; what is reused; and every check explained."""

import copy
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bcd.core.acceptance import ARTIFACT_LIMIT_BYTES, Acceptance, NodeFacts, judge
from bcd.core.errors import Refusal
from tests.core.manifests import NOW, SHA256, VERSION, artifact, canonical, document, keys, pins, signed

ORDER = [
    "no-pins",
    "bad-section",
    "bad-url",
    "failed-version",
    "manifest-shape",
    "manifest-signatures",
    "manifest-canonical",
    "wrong-product",
    "version-mismatch",
    "expired",
    "below-floor",
    "no-artifact",
    "digest-mismatch",
    "too-large",
    "unsafe-entrypoint",
]
"""As spec/self-update.md section 4 has them, copied by hand."""

UNSAFE = Refusal("unsafe-entrypoint", "the entrypoint can't be switched: it is a link to somewhere else", "mend it")


@dataclass(kw_only=True)
class Case:
    """A section and a node that takes it, to be spoilt field by field."""

    section: dict[str, Any] = field(
        default_factory=lambda: {"version": VERSION, "url": "https://releases.example.com/bcd", "sha256": SHA256}
    )
    body: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(document()))
    facts: dict[str, Any] = field(
        default_factory=lambda: {
            "pins": pins(),
            "threshold": 2,
            "failed": {},
            "floor": 15,
            "now": NOW,
            "platform": "linux-amd64",
            "clear_text": False,
            "entrypoint": None,
            "reusable": None,
        }
    )
    signers: int = 2
    spaced: bool = False
    """The body is not in its canonical form."""
    manifest: bytes | None = None
    """What is published, where it is not the body's."""

    def spec(self) -> dict[str, Any]:
        """The section."""
        body = canonical(self.body) + (b"\n" if self.spaced else b"")
        published = signed(body, keys()[: self.signers]) if self.manifest is None else self.manifest
        return {"signature": published.decode(), **self.section}

    def judge(self, skip: dict[str, str] | None = None) -> Acceptance:
        """Run the checks."""
        return judge(self.spec(), NodeFacts(**self.facts), skip=skip)


def spoil_pins(case: Case) -> None:
    """Nothing is pinned."""
    case.facts["pins"] = ()


def spoil_section(case: Case) -> None:
    """A field that nobody knows."""
    case.section["force"] = True


def spoil_url(case: Case) -> None:
    """Clear text."""
    case.section["url"] = "http://releases.example.com/bcd"


def spoil_version(case: Case) -> None:
    """It failed here before."""
    case.facts["failed"] = {VERSION: "bcd 1.4.1 was not welcomed by a gateway before its deadline"}


def spoil_shape(case: Case) -> None:
    """No manifest at all."""
    case.manifest = b"{}"


def spoil_signatures(case: Case) -> None:
    """One signer."""
    case.signers = 1


def spoil_canonical(case: Case) -> None:
    """A newline at the body's end."""
    case.spaced = True


def spoil_product(case: Case) -> None:
    """Another program's release."""
    case.body["product"] = "bcd-gateway"


def spoil_manifest_version(case: Case) -> None:
    """Another version's manifest."""
    case.body["version"] = "1.4.0"


def spoil_time(case: Case) -> None:
    """It expired a second ago."""
    case.facts["now"] = case.body["expiresAt"] + 1


def spoil_sequence(case: Case) -> None:
    """One below the floor."""
    case.facts["floor"] = case.body["sequence"] + 1


def spoil_platform(case: Case) -> None:
    """Another machine."""
    case.facts["platform"] = "linux-arm64"


def spoil_digest(case: Case) -> None:
    """Another file."""
    case.section["sha256"] = "cd" * 32


def spoil_size(case: Case) -> None:
    """One byte too many."""
    case.body["artifacts"][0]["size"] = 536_870_913


def spoil_entrypoint(case: Case) -> None:
    """A link to somewhere else."""
    case.facts["entrypoint"] = UNSAFE


SPOILERS: list[Callable[[Case], None]] = [
    spoil_pins,
    spoil_section,
    spoil_url,
    spoil_version,
    spoil_shape,
    spoil_signatures,
    spoil_canonical,
    spoil_product,
    spoil_manifest_version,
    spoil_time,
    spoil_sequence,
    spoil_platform,
    spoil_digest,
    spoil_size,
    spoil_entrypoint,
]
SPOIL = dict(zip(ORDER, SPOILERS, strict=True))


def states(answer: Acceptance) -> dict[str, str]:
    """Each check's end, by its code."""
    return {check.code: check.state for check in answer.checks}


def refused(answer: Acceptance, code: str) -> None:
    """By this code: all before it passed, none after it was reached, and nothing is to be fetched."""
    at = ORDER.index(code)
    assert answer.refusal is not None
    assert answer.refusal.code == code
    assert [check.code for check in answer.checks] == ORDER
    assert list(states(answer).values()) == ["passed"] * at + ["failed"] + ["not-reached"] * (len(ORDER) - at - 1)
    assert answer.checks[at].message == answer.refusal.message
    assert (answer.artifact, answer.reused) == (None, None)


# The order ------------------------------------------------------------------------------------------------------------


def test_a_good_release_passes_every_check() -> None:
    """Fifteen checks, each with a message; the file to fetch is known, and who signed."""
    answer = Case().judge()
    assert answer.refusal is None
    assert [check.code for check in answer.checks] == ORDER
    assert set(states(answer).values()) == {"passed"}
    assert all(check.message and check.message.isprintable() for check in answer.checks)
    assert answer.section is not None
    assert answer.section.version == VERSION
    assert answer.manifest is not None
    assert answer.manifest.sequence == 15
    assert answer.artifact == answer.manifest.artifacts[0]
    assert answer.reused is None
    assert answer.verification is not None
    assert answer.verification.counted == 2


@pytest.mark.parametrize("code", ORDER)
def test_each_code_is_reached(code: str) -> None:
    """By one fault alone; the checks after it are not reached."""
    case = Case()
    SPOIL[code](case)
    refused(case.judge(), code)


@pytest.mark.parametrize("first", ORDER[:-1])
def test_of_two_faults_the_earlier_one_is_told(first: str) -> None:
    """For each later code, whichever fault came first into the world."""
    for second in ORDER[ORDER.index(first) + 1 :]:
        for order in ((first, second), (second, first)):
            case = Case()
            for code in order:
                SPOIL[code](case)
            refused(case.judge(), first)


def test_with_every_fault_at_once_the_first_is_told_and_then_the_next() -> None:
    """Mended one by one from the front, each code in its turn."""
    for at, code in enumerate(ORDER):
        case = Case()
        for later in ORDER[at:]:
            SPOIL[later](case)
        refused(case.judge(), code)


def test_the_same_facts_give_the_same_answer() -> None:
    """Judging reads no clock and no disk, and leaves what it was given as it was."""
    case = Case()
    spec, facts = case.spec(), NodeFacts(**case.facts)
    before = copy.deepcopy(spec)
    one, two = judge(spec, facts), judge(spec, facts)
    assert (one.checks, one.artifact, one.refusal) == (two.checks, two.artifact, two.refusal)
    assert spec == before


# Code by code ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "threshold", "accepted"),
    [
        (0, 2, False),
        (1, 2, False),
        (2, 2, True),
        (3, 2, True),
        (3, 3, True),
        (3, 4, False),
        (1, 1, True),
        (0, 0, False),
    ],
)
def test_fewer_pins_than_the_threshold_are_no_pins(count: int, threshold: int, accepted: bool) -> None:
    """As many as the threshold are enough, where those sign."""
    case = Case(signers=3)
    case.facts.update(pins=pins()[:count], threshold=threshold)
    answer = case.judge()
    if accepted:
        assert answer.refusal is None
    else:
        refused(answer, "no-pins")


def test_a_threshold_of_zero_accepts_nothing_unsigned() -> None:
    """Were configuration to let one through, a signature is still needed."""
    case = Case(signers=0)
    case.facts["threshold"] = 0
    refused(case.judge(), "manifest-signatures")


@pytest.mark.parametrize("spec", [None, [], "x", 1, {}])
def test_what_is_no_section_is_refused_as_one(spec: object) -> None:
    """And nothing after it stumbles over what is missing."""
    refused(judge(spec, NodeFacts(**Case().facts)), "bad-section")


def test_clear_text_passes_where_the_node_lets_it() -> None:
    """A fakehw build, or `dev_insecure_h2c`."""
    case = Case()
    spoil_url(case)
    case.facts["clear_text"] = True
    assert case.judge().refusal is None


def test_a_failed_version_says_why_and_how_to_forget_it() -> None:
    """The reason is the record's; the hint is the command; another version's failure is no matter."""
    case = Case()
    spoil_version(case)
    refusal = case.judge().refusal
    assert refusal is not None
    assert "was not welcomed by a gateway before its deadline" in refusal.message
    assert f"--clear-failed {VERSION}" in refusal.hint
    case.facts["failed"] = {"1.4.10": "x", "1.4.1+1": "x", "1.4": "x"}
    assert case.judge().refusal is None


def test_a_manifest_in_base64_is_the_same_manifest() -> None:
    """Strict standard base64 of the same bytes; with a newline in it, it is none."""
    case = Case()
    text = b64encode(case.spec()["signature"].encode()).decode()
    case.section["signature"] = text
    assert case.judge().refusal is None
    case.section["signature"] = text[:76] + "\n" + text[76:]
    refused(case.judge(), "manifest-shape")


def test_nothing_that_a_refused_manifest_says_is_believed() -> None:
    """Until the third stage has passed there is no manifest, only an explanation."""
    for code in ("manifest-shape", "manifest-signatures", "manifest-canonical"):
        case = Case()
        SPOIL[code](case)
        answer = case.judge()
        assert answer.manifest is None
        assert answer.verification is not None
        assert answer.verification.refused_at == code.removeprefix("manifest-")


@pytest.mark.parametrize("product", ["bc", "bcdd", "bcd-", "b-cd"])
def test_a_product_of_nearly_the_name_is_another(product: str) -> None:
    """Only `bcd` is bcd."""
    case = Case()
    case.body["product"] = product
    refused(case.judge(), "wrong-product")


@pytest.mark.parametrize("version", ["1.4.1+build", "1.4.1-rc.1", "1.4.10", "1.4.0"])
def test_versions_are_compared_as_they_are_spelled(version: str) -> None:
    """1.4.1+build is another release than 1.4.1, whatever order says (field report 31)."""
    case = Case()
    case.body["version"] = version
    refused(case.judge(), "version-mismatch")


@pytest.mark.parametrize(("seconds", "accepted"), [(-1, True), (0, False), (1, False)])
def test_a_manifest_expires_in_the_second_that_it_names(seconds: int, accepted: bool) -> None:
    """Exactly now is too late (field report 33)."""
    case = Case()
    case.facts["now"] = case.body["expiresAt"] + seconds
    if accepted:
        assert case.judge().refusal is None
    else:
        refused(case.judge(), "expired")


def test_a_manifest_that_is_not_issued_yet_is_good() -> None:
    """The rules name no other end: a node whose clock is late must still be updated."""
    case = Case()
    case.facts["now"] = case.body["issuedAt"] - 10**9
    assert case.judge().refusal is None


@pytest.mark.parametrize(("floor", "accepted"), [(0, True), (14, True), (15, True), (16, False), (2**53 - 1, False)])
def test_the_floor_itself_is_accepted(floor: int, accepted: bool) -> None:
    """What is below it is not."""
    case = Case()
    case.facts["floor"] = floor
    if accepted:
        assert case.judge().refusal is None
    else:
        refused(case.judge(), "below-floor")


def test_an_order_of_versions_decides_nothing() -> None:
    """A lower version with a higher sequence rolls a fleet back on purpose."""
    case = Case()
    case.body["version"] = case.section["version"] = "0.0.1-rc.2"
    assert case.judge().refusal is None


@pytest.mark.parametrize(
    "platform", ["linux-arm64", "linux-amd6", "linux-amd644", "inux-amd64", "darwin-amd64", "amd64", ""]
)
def test_a_platform_is_matched_whole(platform: str) -> None:
    """No part of a name is a machine (field report 32)."""
    case = Case()
    case.facts["platform"] = platform
    refused(case.judge(), "no-artifact")


def test_another_machines_file_that_is_listed_first_is_passed_over() -> None:
    """arm64 before amd64; each machine gets its own (field report 32)."""
    case = Case()
    arm = artifact(name="bcd-linux-arm64", platform="linux-arm64", sha256="12" * 32)
    case.body["artifacts"] = [arm, artifact()]
    answer = case.judge()
    assert answer.artifact is not None
    assert answer.artifact.name == "bcd-linux-amd64"
    case.section["sha256"] = arm["sha256"]
    refused(case.judge(), "digest-mismatch")
    case.facts["platform"] = "linux-arm64"
    answer = case.judge()
    assert answer.artifact is not None
    assert answer.artifact.name == "bcd-linux-arm64"


def test_of_two_files_for_one_platform_the_section_names_one() -> None:
    """By digest; with neither's, it is refused."""
    case = Case()
    case.body["artifacts"] = [artifact(), artifact(name="bcd-musl", sha256="12" * 32, size=7)]
    for digest, name in ((SHA256, "bcd-linux-amd64"), ("12" * 32, "bcd-musl")):
        case.section["sha256"] = digest
        answer = case.judge()
        assert answer.artifact is not None
        assert answer.artifact.name == name
    case.section["sha256"] = "34" * 32
    refused(case.judge(), "digest-mismatch")


def test_only_the_size_of_the_file_that_is_fetched_counts() -> None:
    """A huge one beside it is another's."""
    case = Case()
    huge = artifact(name="huge", sha256="12" * 32, size=2**40)
    case.body["artifacts"] = [huge, artifact()]
    assert case.judge().refusal is None
    case.section["sha256"] = huge["sha256"]
    refused(case.judge(), "too-large")


def test_512_mib_are_the_most() -> None:
    """The limit itself is accepted."""
    assert ARTIFACT_LIMIT_BYTES == 536_870_912
    case = Case()
    case.body["artifacts"][0]["size"] = ARTIFACT_LIMIT_BYTES
    assert case.judge().refusal is None
    case.body["artifacts"][0]["size"] = ARTIFACT_LIMIT_BYTES + 1
    refused(case.judge(), "too-large")


def test_a_digest_in_upper_case_finds_its_file() -> None:
    """The section's either case, the manifest's lower one."""
    case = Case()
    case.section["sha256"] = SHA256.upper()
    answer = case.judge()
    assert answer.refusal is None
    assert answer.artifact is not None
    assert answer.artifact.sha256 == SHA256


def test_an_unsafe_entrypoint_keeps_its_own_words() -> None:
    """What it is, and the command that mends it."""
    case = Case()
    spoil_entrypoint(case)
    assert case.judge().refusal is UNSAFE


# Skipping -------------------------------------------------------------------------------------------------------------


def test_a_check_that_does_not_apply_is_skipped_with_its_reason() -> None:
    """It is there, in its place, and what comes after it runs."""
    case = Case()
    spoil_url(case)
    answer = case.judge(skip={"bad-url": "no --url was given"})
    assert answer.refusal is None
    assert [check.code for check in answer.checks] == ORDER
    assert states(answer) == {code: "skipped" if code == "bad-url" else "passed" for code in ORDER}
    assert answer.checks[2].message == "no --url was given"


def test_a_skipped_check_after_a_refusal_is_not_reached() -> None:
    """The refusal is what there is to say."""
    case = Case()
    spoil_pins(case)
    refused(case.judge(skip={"bad-url": "no --url was given"}), "no-pins")
