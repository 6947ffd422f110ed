"""What the node may ask for at the wrong time, again, or in the wrong order."""

from collections.abc import Callable
from typing import Any

from bcd.helper import wire
from tests.helper.attack import Attack
from tests.helper.attacker import Attacker, outcome
from tests.helper.world import ONE, TWO

Answer = dict[str, Any] | str

_DEADLINE: dict[str, object] = {"way": "deadline", "said": None, "refused": None}
_EXEC: dict[str, object] = {"way": "exec", "said": "Exec format error", "refused": None}


def do(node: Attacker, what: str) -> Answer:
    """One request by its word; what a good answer says, or the code."""
    match what:
        case "swap":
            node.stage(TWO)
            answer = node.swap(TWO)
        case "settle":
            answer = node.ask(wire.SETTLE)
        case "confirm":
            answer = node.ask(wire.CONFIRM)
        case "deadline":
            answer = node.ask(wire.ROLLBACK, _DEADLINE)
        case "exec":
            answer = node.ask(wire.ROLLBACK, _EXEC)
        case _:
            answer = node.ask(wire.PREPARE, {"spec": TWO.section, "server_time": None})
    if outcome(answer) != "ok":
        return outcome(answer)
    result = answer["result"]
    if what == "settle":
        return str(result["outcome"])
    if what in ("deadline", "exec"):
        return "moved" if result["moved"] else "nothing"
    return "nothing" if result is None else "done"


def inorder(*requests: str) -> Callable[[Attacker], Answer]:
    """One after the other; all that was said."""
    return lambda node: " ".join(str(do(node, one)) for one in requests)


def talk(**changes: object) -> Callable[[Attacker], Answer]:
    """A rollback with other parameters."""
    return lambda node: node.ask(wire.ROLLBACK, {**_EXEC, **changes})


def swap_what_runs(node: Attacker) -> Answer:
    """The slot that a rollback would need would be gone, for nothing."""
    node.stage(ONE)
    return node.swap(ONE)


RULES: dict[str, dict[str, tuple[str, str]]] = {
    "swapped": {
        "confirm": ("done", "confirmed"),
        "swap": ("update-in-progress", "swapped"),
        "deadline": ("update-in-progress", "swapped"),
        "exec": ("moved", "back"),
        "settle": ("pending", "swapped"),
    },
    "confirmed": {
        "confirm": ("nothing", "confirmed"),
        "swap": ("io-error", "confirmed"),
        "deadline": ("nothing", "confirmed"),
        "exec": ("nothing", "confirmed"),
        "settle": ("settled", "confirmed"),
    },
    "back": {
        "confirm": ("nothing", "back"),
        "swap": ("update-in-progress", "back"),
        "deadline": ("update-in-progress", "back"),
        "exec": ("nothing", "back"),
        "settle": ("rolled-back", "failed"),
    },
    "failed": {
        "confirm": ("nothing", "failed"),
        "swap": ("failed-version", "failed"),
        "deadline": ("nothing", "failed"),
        "exec": ("nothing", "failed"),
        "settle": ("settled", "failed"),
    },
}
"""State -> request -> what is said, and the state after it."""


_BAD_WAY: dict[str, object] = {"way": "crash-loop"}

ATTACKS = (
    Attack("a confirm without a swap", inorder("confirm"), "nothing"),
    Attack("a confirm a hundred times", inorder(*["confirm"] * 100), " ".join(["nothing"] * 100)),
    Attack("a rollback without a swap", inorder("deadline", "exec"), "nothing nothing"),
    Attack("a settle without a swap", inorder("settle", "settle"), "settled settled"),
    Attack("a swap to what runs", swap_what_runs, "io-error"),
    Attack("a swap twice", inorder("swap", "swap"), "done update-in-progress", ends="swapped"),
    Attack("a prepare of what is pending", inorder("swap", "prepare"), "done nothing", ends="swapped"),
    Attack(
        "a swap, never started", inorder("swap", "settle", "swap"), "done pending update-in-progress", ends="swapped"
    ),
    Attack(
        "a swap, confirmed and confirmed again",
        inorder("swap", "confirm", "confirm"),
        "done done nothing",
        ends="confirmed",
    ),
    Attack("a rollback before the deadline", inorder("deadline"), "update-in-progress", start="swapped"),
    Attack(
        "a rollback before the deadline, after a settle",
        inorder("settle", "deadline"),
        "pending update-in-progress",
        start="swapped",
        ends="swapped",
    ),
    Attack("a rollback after the deadline", inorder("deadline"), "moved", start="late", ends="back"),
    Attack("a rollback by exec before the deadline", inorder("exec"), "moved", start="swapped", ends="back"),
    Attack("a rollback twice", inorder("exec", "exec"), "moved nothing", start="swapped", ends="back"),
    Attack(
        "a confirm after the deadline, before root acts", inorder("confirm"), "done", start="late", ends="confirmed"
    ),
    Attack(
        "a confirm while current is elsewhere",
        inorder("exec", "confirm"),
        "moved nothing",
        start="swapped",
        ends="back",
    ),
    Attack(
        "a confirm after the failure was settled",
        inorder("exec", "settle", "confirm"),
        "moved rolled-back nothing",
        start="swapped",
        ends="failed",
    ),
    Attack(
        "a swap of what failed",
        inorder("exec", "settle", "swap"),
        "moved rolled-back failed-version",
        start="swapped",
        ends="failed",
    ),
    Attack(
        "a swap between rollback and settle",
        inorder("exec", "swap"),
        "moved update-in-progress",
        start="swapped",
        ends="back",
    ),
    Attack(
        "a rollback after the confirm",
        inorder("confirm", "exec", "deadline", "settle"),
        "done nothing nothing settled",
        start="swapped",
        ends="confirmed",
    ),
    Attack(
        "a settle after the deadline", inorder("settle", "settle"), "roll-back rolled-back", start="late", ends="failed"
    ),
    Attack("a rollback by an unknown way", talk(**_BAD_WAY), "bad-request", start="swapped"),
    Attack("a rollback by no way", talk(way=None), "bad-request", start="swapped"),
    Attack("a rollback's words of 3 MB", talk(said="x" * 3_000_000), "ok", start="swapped", ends="back"),
    Attack(
        "a rollback's words with controls",
        talk(said="\x1b[2J\u202e\0", refused="\x07\n"),
        "ok",
        start="swapped",
        ends="back",
    ),
    Attack("a rollback's words that are a number", talk(said=7), "bad-request", start="swapped"),
)
