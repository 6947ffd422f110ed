"""What doctor says: findings, as values. Who draws them knows nothing of how they were found."""

from dataclasses import dataclass
from enum import Enum

CATEGORIES = ("configuration", "slots", "update", "service", "gateway", "helper", "host")
"""In the order in which they are shown."""


class Level(Enum):
    """How a check ended. Only what was looked at and seen to be right is `OK`."""

    FAIL = "fail"
    """Broken now, or the next update or rollback will be."""
    WARN = "warn"
    """Works, and someone should look."""
    UNKNOWN = "unknown"
    """Could not be told: not permitted, timed out, or the check itself broke. Never read as healthy, nor as absent."""
    NOTE = "note"
    """Worth knowing."""
    OK = "ok"
    SKIPPED = "skipped"
    """Does not apply here, and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that doctor says."""

    id: str
    """`category.name`, stable: what `--only` and `--skip` match, and what alerts may rest on."""
    level: Level
    message: str
    """One sentence: what was seen, and for a problem why it matters."""
    evidence: tuple[str, ...] = ()
    """What it rests on, a line each: `path: what was seen there`."""
    hint: str = ""
    """What to do next: the exact command where there is one."""

    @property
    def category(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]

    @property
    def link(self) -> str:
        """Where the documentation says more."""
        return f"docs/reference/checks.md#{self.id.replace('.', '')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """One run of doctor."""

    findings: tuple[Finding, ...]
    """By category, in the order of the checks."""
    complete: bool
    """Whether every check had its say; False when the run was cut short."""
    started_at: int
    """Unix seconds."""
    seconds: float
    """How long it took."""
    looked_as: str
    """Who looked: `uid 0 (root)`."""
    about: str
    """What it is about: the host and the configuration's path."""
    attempts: int = 1
    """How many runs a wait took."""
    waited_seconds: float = 0.0
    """How long it waited for this report."""

    def count(self, level: Level) -> int:
        """How many findings have this level."""
        return sum(1 for finding in self.findings if finding.level is level)

    def worst(self, check_id: str) -> Level:
        """The worst level among a check's findings."""
        levels = {finding.level for finding in self.findings if finding.id == check_id}
        return next(level for level in Level if level in levels)

    @property
    def verdict(self) -> str:
        """`fail`, `unknown`, `warn` or `ok`: the worst there is, where notes and skipped ones are well."""
        for level in (Level.FAIL, Level.UNKNOWN, Level.WARN):
            if self.count(level):
                return str(level.value)
        return "ok"
