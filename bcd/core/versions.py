"""What a version is: Semantic Versioning 2.0.0, ASCII, at most 64 characters, no leading `v`.

Versions are never ordered: releases are, by their manifest's sequence (field report 31). And a version becomes part
of a file name only after it passed here. The pattern is our own because the usual ones accept a newline at the end
and digits of other scripts.
"""

import re

VERSION_LIMIT = 64

_NUMBER = "(?:0|[1-9][0-9]*)"
_PRE = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = "[0-9A-Za-z-]+"
_SEMVER = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?")


def is_version(text: str) -> bool:
    """Whether `text` is a version that a manifest or a section may carry."""
    return len(text) <= VERSION_LIMIT and _SEMVER.fullmatch(text) is not None
