"""What this node accepts: the checks of spec/self-update.md section 4, in their order, as one pure run.

`judge` explains: each check passed, failed, skipped or not reached. Everything that it must know of the node comes
in as `NodeFacts`; it reads no disk and no clock, so the same facts give the same answer in the agent, under the
helper and in `bcd update check`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bcd.core.build import PRODUCT
from bcd.core.clock import utc_text
from bcd.core.errors import Refusal
from bcd.core.manifest import Artifact, Manifest
from bcd.core.records import SlotRecord
from bcd.core.section import DaemonSection, check_url, parse_section
from bcd.core.text import clean
from bcd.core.trust import Verification, verify_manifest

ARTIFACT_LIMIT_BYTES = 512 * 1024 * 1024

CODES = (
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
)

State = Literal["passed", "failed", "skipped", "not-reached"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """What the checks must know of the node."""

    pins: tuple[str, ...]
    """Distinct."""
    threshold: int
    failed: Mapping[str, str]
    """Failed version -> why."""
    floor: int
    now: int
    """Unix seconds: the latest of the node's clock, the gateway's server time and the build time."""
    platform: str
    clear_text: bool
    entrypoint: Refusal | None
    """Why the entrypoint can't be switched; None where it can."""
    reusable: SlotRecord | None = None
    """The other slot's record, where its file still hashes to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check's end."""

    code: str
    """One of `CODES`."""
    state: State
    message: str


@dataclass(kw_only=True, slots=True)
class Acceptance:
    """The answer, explained."""

    checks: list[Check] = field(default_factory=list)
    """One for each of `CODES`, in order."""
    refusal: Refusal | None = None
    section: DaemonSection | None = None
    manifest: Manifest | None = None
    artifact: Artifact | None = None
    """What is to be fetched; None where refused or reused."""
    reused: SlotRecord | None = None
    """What the other slot holds already; None where it has to be fetched."""
    verification: Verification | None = None
    """Who signed; None where that was not reached."""


def judge(spec: object, facts: NodeFacts, *, skip: Mapping[str, str] | None = None) -> Acceptance:
    """Run the checks over a section.

    Args:
        spec: the section, in whatever shape it came.
        facts: the node.
        skip: code -> why, of checks that do not apply (`bcd update check` without a URL).
    """
    run = _Run(spec, facts)
    skipped = dict(skip or {})
    for code in CODES:
        if run.answer.refusal is not None:
            run.answer.checks.append(Check(code=code, state="not-reached", message="an earlier check refused"))
        elif code in skipped or (run.answer.reused is not None and code in _NEEDLESS_FOR_REUSE):
            why = skipped.get(code, "the other slot holds this very binary; nothing is fetched")
            run.answer.checks.append(Check(code=code, state="skipped", message=why))
        else:
            run.check(code)
    return run.answer


_NEEDLESS_FOR_REUSE = frozenset(CODES[CODES.index("manifest-shape") : CODES.index("unsafe-entrypoint")])


class _Run:
    """One run: what earlier checks found out is there for later ones."""

    def __init__(self, spec: object, facts: NodeFacts) -> None:
        self.spec = spec
        self.facts = facts
        self.answer = Acceptance()

    def check(self, code: str) -> None:
        try:
            message = _CHECKS[code](self)
            state: State = "passed"
        except Refusal as refusal:
            self.answer.refusal = refusal
            message, state = refusal.message, "failed"
        self.answer.checks.append(Check(code=code, state=state, message=message))

    @property
    def section(self) -> DaemonSection:
        assert self.answer.section is not None  # noqa: S101  # bad-section comes before whatever asks
        return self.answer.section

    @property
    def manifest(self) -> Manifest:
        assert self.answer.manifest is not None  # noqa: S101  # the manifest's checks come before whatever asks
        return self.answer.manifest

    def no_pins(self) -> str:
        pins, threshold = len(self.facts.pins), self.facts.threshold
        if pins == 0:
            raise Refusal(
                "no-pins", "this node pins no release keys, so it takes no release", "set [update] release_pins"
            )
        if pins < threshold:
            raise Refusal(
                "no-pins",
                f"this node pins {pins} release keys, fewer than its threshold of {threshold}",
                "add pins to [update] release_pins, or lower release_threshold",
            )
        return f"{pins} release pins, threshold {threshold}"

    def bad_section(self) -> str:
        self.answer.section = parse_section(self.spec)
        return f"names version {self.section.version}"

    def bad_url(self) -> str:
        check_url(self.section.url, clear_text=self.facts.clear_text)
        return f"{clean(self.section.url, 200)}"

    def failed_version(self) -> str:
        why = self.facts.failed.get(self.section.version)
        if why is not None:
            raise Refusal(
                "failed-version",
                f"version {self.section.version} failed here before: {why}",
                f"`bcd update --clear-failed {self.section.version}` lets a rollout try it here again",
            )
        other = self.facts.reusable
        if (
            other is not None
            and other.version == self.section.version
            and other.sha256 == self.section.sha256
            and other.sequence >= max(1, self.facts.floor)
        ):
            self.answer.reused = other
        return f"{self.section.version} has not failed here"

    def _verify(self) -> Verification:
        if self.answer.verification is None:
            verification = verify_manifest(self.section.manifest, self.facts.pins, self.facts.threshold)
            self.answer.verification = verification
        return self.answer.verification

    def _stage(self, stage: str, passed: Callable[[Verification], str]) -> str:
        verification = self._verify()
        if verification.refused_at == stage:
            raise Refusal(
                f"manifest-{stage}",
                f"the release manifest is refused: {verification.why}",
                "`bcd update check FILE` shows why, signature by signature; publish one that is signed as the rules say",
            )
        return passed(verification)

    def manifest_shape(self) -> str:
        return self._stage("shape", lambda _: "well formed")

    def manifest_signatures(self) -> str:
        return self._stage("signatures", lambda v: f"{v.counted} pinned keys signed it, {v.threshold} needed")

    def manifest_canonical(self) -> str:
        message = self._stage("canonical", lambda _: "in canonical form")
        # Only now, past the last stage, is what it says believed.
        self.answer.manifest = self._verify().parsed
        return message

    def wrong_product(self) -> str:
        if self.manifest.product != PRODUCT:
            raise Refusal(
                "wrong-product",
                f"the manifest is of {self.manifest.product}, not of {PRODUCT}",
                "correct the section in the control plane",
            )
        return f"a release of {PRODUCT}"

    def version_mismatch(self) -> str:
        if self.manifest.version != self.section.version:
            raise Refusal(
                "version-mismatch",
                f"the section names {self.section.version}, its manifest is of {self.manifest.version}",
                "correct the section in the control plane",
            )
        return f"section and manifest name {self.manifest.version}"

    def expired(self) -> str:
        if self.manifest.expires_at <= self.facts.now:
            raise Refusal(
                "expired",
                f"the manifest expired at {utc_text(self.manifest.expires_at)}",
                "sign the release anew with a later expiresAt",
            )
        return f"expires in {self.manifest.expires_at - self.facts.now} s"

    def below_floor(self) -> str:
        if self.manifest.sequence < self.facts.floor:
            raise Refusal(
                "below-floor",
                f"release sequence {self.manifest.sequence} is below this node's floor of {self.facts.floor}",
                "sign the release anew with a higher sequence and roll it forward",
            )
        return f"sequence {self.manifest.sequence}, floor {self.facts.floor}"

    def _of_this_platform(self) -> list[Artifact]:
        return [artifact for artifact in self.manifest.artifacts if artifact.platform == self.facts.platform]

    def no_artifact(self) -> str:
        if not self._of_this_platform():
            offered = ", ".join(sorted({artifact.platform for artifact in self.manifest.artifacts}))
            raise Refusal(
                "no-artifact",
                f"the release has no file for {self.facts.platform}, only for {offered}",
                "publish a release with a file for this platform",
            )
        return f"has a file for {self.facts.platform}"

    def digest_mismatch(self) -> str:
        for artifact in self._of_this_platform():
            if artifact.sha256 == self.section.sha256:
                self.answer.artifact = artifact
                return f"{artifact.name} has the section's digest"
        raise Refusal(
            "digest-mismatch",
            f"no file of the release for {self.facts.platform} has the section's sha256",
            "correct the section in the control plane",
        )

    def too_large(self) -> str:
        artifact = self.answer.artifact
        size = 0 if artifact is None else artifact.size
        if size > ARTIFACT_LIMIT_BYTES:
            self.answer.artifact = None
            raise Refusal(
                "too-large",
                f"the file has {size} bytes, more than the {ARTIFACT_LIMIT_BYTES} allowed",
                "publish a smaller file",
            )
        return f"{size} bytes"

    def unsafe_entrypoint(self) -> str:
        if self.facts.entrypoint is not None:
            self.answer.artifact = self.answer.reused = None
            raise self.facts.entrypoint
        return "the entrypoint can be switched"


_CHECKS: dict[str, Callable[[_Run], str]] = {
    "no-pins": _Run.no_pins,
    "bad-section": _Run.bad_section,
    "bad-url": _Run.bad_url,
    "failed-version": _Run.failed_version,
    "manifest-shape": _Run.manifest_shape,
    "manifest-signatures": _Run.manifest_signatures,
    "manifest-canonical": _Run.manifest_canonical,
    "wrong-product": _Run.wrong_product,
    "version-mismatch": _Run.version_mismatch,
    "expired": _Run.expired,
    "below-floor": _Run.below_floor,
    "no-artifact": _Run.no_artifact,
    "digest-mismatch": _Run.digest_mismatch,
    "too-large": _Run.too_large,
    "unsafe-entrypoint": _Run.unsafe_entrypoint,
}
