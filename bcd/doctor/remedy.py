"""The command in a hint, for whoever pastes it: a hint is a sentence, and a shell takes no sentences."""

import os
import re
import shlex

_PROGRAMS = re.compile(
    r"(bcd|cat|chmod|chown|df|getent|journalctl|less|ln|ls|mv|nc|openssl|ps|rm|sudo|systemctl|timedatectl)"
)
_QUOTED_OR_END = re.compile(r"'[^']*'|\"[^\"]*\"|(?P<end>[;:,] )")
"""Hints quote as `shlex.quote` does: what ends a clause within quotes is part of a path."""


def command_in(hint: str) -> str:
    """The first command of a hint, on one line; empty where there is none."""
    return next((clause for clause in _clauses(hint) if _is_command(clause)), "")


def _clauses(hint: str) -> list[str]:
    ends = [found for found in _QUOTED_OR_END.finditer(hint) if found["end"]]
    starts = [0, *(found.end() for found in ends)]
    return [hint[start:end].strip() for start, end in zip(starts, [*(f.start() for f in ends), None], strict=True)]


def _is_command(clause: str) -> bool:
    try:
        words = shlex.split(clause)
    except ValueError:  # an apostrophe of the sentence
        return False
    return len(words) > 1 and _PROGRAMS.fullmatch(os.path.basename(words[0])) is not None and "\n" not in clause
