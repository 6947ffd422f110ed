"""What the self-test says: a line a check and a tally for people, one document for programs."""

from collections.abc import Sequence
from typing import TypedDict

from bcd.doctor.selftest.run import Proof

FORMAT = 1


class StateJson(TypedDict):
    """One state that a check was seen in."""

    name: str
    level: str
    """What was expected of it."""
    wrong: list[str]
    """What was not as expected; empty where all was."""
    skipped: str
    """Why it was not tried; empty where it was."""


class ProofJson(TypedDict):
    """One check."""

    id: str
    passed: bool
    proved: list[str]
    """The levels that it was rightly seen at."""
    wrong: list[str]
    states: list[StateJson]


class SelfTestJson(TypedDict):
    """`bcd doctor --self-test --json`."""

    format: int
    complete: bool
    passed: bool
    seconds: float
    checks: list[ProofJson]


def proof_lines(proof: Proof, width: int) -> list[str]:
    """One check's line, and one for each thing that is wrong with it. `width` is the longest id's."""
    levels = ", ".join(level.value for level in proof.levels)
    tried = len(proof.states) - len(proof.skipped)
    mark = "FAIL" if proof.wrong else "ok  "
    line = f"{mark}  {proof.check:<{width}}  {tried:>2} state{' ' if tried == 1 else 's'}: {levels or 'none'}"
    return [line, *(f"      {sentence}" for sentence in proof.wrong)]


def closing_lines(proofs: Sequence[Proof], *, complete: bool, seconds: float) -> list[str]:
    """The tally, and what was not tried and why."""
    proved = sum(1 for proof in proofs if not proof.wrong)
    states = sum(len(proof.states) - len(proof.skipped) for proof in proofs)
    cut = "" if complete else ", cut short"
    lines = [f"{proved} of {len(proofs)} checks proved in {states} states, {seconds:.1f} s{cut}"]
    reasons: dict[str, int] = {}
    for proof in proofs:
        for state in proof.skipped:
            reasons[state.skipped] = reasons.get(state.skipped, 0) + 1
    return lines + [f"{count} not tried: {reason}" for reason, count in reasons.items()]


def self_test_json(proofs: Sequence[Proof], *, complete: bool, seconds: float) -> SelfTestJson:
    """All of it as JSON's values."""
    return {
        "format": FORMAT,
        "complete": complete,
        "passed": complete and not any(proof.wrong for proof in proofs),
        "seconds": round(seconds, 3),
        "checks": [
            {
                "id": proof.check,
                "passed": not proof.wrong,
                "proved": [level.value for level in proof.levels],
                "wrong": list(proof.wrong),
                "states": [
                    {
                        "name": state.name,
                        "level": state.level.value,
                        "wrong": list(state.wrong),
                        "skipped": state.skipped,
                    }
                    for state in proof.states
                ],
            }
            for proof in proofs
        ],
    }
