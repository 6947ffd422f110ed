"""The reference page of the attacks, made from their tables: `python -m tests.helper.page` writes it."""

from pathlib import Path

from tests.helper import attacks_crowds, attacks_orders, attacks_staging, attacks_words
from tests.helper.attack import Attack

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "attacks.md"

_PARTS: tuple[tuple[str, tuple[Attack, ...]], ...] = (
    ("Where root looks for the download", attacks_staging.ATTACKS),
    ("What is said", attacks_words.ATTACKS),
    ("In which order", attacks_orders.ATTACKS),
    ("By how many, and how slowly", attacks_crowds.ATTACKS),
)
_LONGEST = 60


def page() -> str:
    """Its text."""
    count = sum(len(attacks) for _, attacks in _PARTS)
    lines = [
        "# Attacks on the helper",
        "",
        f"Made from the tables in `tests/helper`: {count} attacks by a node that was taken over, each played by a process of",
        "the node's user against a real `bcd helper`. After each one, links, records, floor, slots, owners and modes are",
        "looked at byte by byte, no secret of root's is in an answer or the log, and the helper answers within a second.",
        "",
        "*Answer* is the code, or what was said in turn; *then* is what root's half is in: `-` not a byte has changed,",
        "`swapped` the signed release is pending, `confirmed`, `back` rolled back, `failed` settled as failed.",
    ]
    for title, attacks in _PARTS:
        lines += ["", f"## {title}", "", "| attack | answer | then |", "| --- | --- | --- |"]
        lines += [f"| {one.name} | {_words(one.outcome)} | {_words(one.ends or '-')} |" for one in attacks]
    return "\n".join(lines) + "\n"


def _words(text: str) -> str:
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return " or ".join(f"`{word}`" for word in short.split("|"))


if __name__ == "__main__":
    PAGE.write_text(page())
