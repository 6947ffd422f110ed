"""What a check is, and the list of them all. Adding a check is adding one decorated function in `checks/`.

A check is a small function over `Probes` that returns a `Result`, several, or none where `skipped` says it better.
It looks, and never changes anything. It need not catch: what it can't look at becomes `unknown` in `run`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bcd.core.text import clean
from bcd.doctor.finding import Finding, Level
from bcd.doctor.probes import Probes


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """How a check ended; with the check's id it is a `Finding`."""

    level: Level
    message: str
    evidence: tuple[str, ...] = ()
    hint: str = ""


def ok(message: str, *evidence: str) -> Result:
    """Looked at, and right."""
    return Result(level=Level.OK, message=message, evidence=evidence)


def note(message: str, *evidence: str, hint: str = "") -> Result:
    """Worth knowing."""
    return Result(level=Level.NOTE, message=message, evidence=evidence, hint=hint)


def warn(message: str, *evidence: str, hint: str) -> Result:
    """Works, and someone should look; `hint` says what to do."""
    return Result(level=Level.WARN, message=message, evidence=evidence, hint=hint)


def fail(message: str, *evidence: str, hint: str) -> Result:
    """Broken; `hint` has the exact command that mends it."""
    return Result(level=Level.FAIL, message=message, evidence=evidence, hint=hint)


def skipped(why: str) -> Result:
    """Does not apply here."""
    return Result(level=Level.SKIPPED, message=why)


def unknown(message: str, *evidence: str, hint: str = "") -> Result:
    """Could not be told."""
    return Result(level=Level.UNKNOWN, message=message, evidence=evidence, hint=hint)


Look = Callable[[Probes], Result | Iterable[Result]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check."""

    id: str
    summary: str
    """What is true when it is ok, as a short clause."""
    why: str
    """Why it matters, in a sentence or two; for docs/reference/checks.md."""
    network: bool
    """Whether it needs the network; `--offline` skips it."""
    look: Look

    def finding(self, result: Result) -> Finding:
        """A result of this check as a finding, made safe to show: records, servers and systemd had a say in it."""
        return Finding(
            id=self.id,
            level=result.level,
            message=clean(result.message),
            evidence=tuple(clean(line) for line in result.evidence),
            hint=clean(result.hint),
        )


class Registry:
    """The checks of one file, in the order they are written."""

    def __init__(self, category: str) -> None:
        self.category = category
        self.checks: list[Check] = []

    def check(self, name: str, summary: str, *, why: str, network: bool = False) -> Callable[[Look], Look]:
        """Register the decorated function as `category.name`."""

        def register(look: Look) -> Look:
            self.checks.append(
                Check(id=f"{self.category}.{name}", summary=summary, why=why, network=network, look=look)
            )
            return look

        return register
