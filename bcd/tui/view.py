"""Where in the console somebody is: what a console that starts anew has to keep. A value."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One place."""

    screen: str = "overview"
    filter: str = ""
    """What the screen's field holds."""
    cursor: str = ""
    """What the cursor is on, by what it is (a version, a finding's id) and not by where it stands."""
