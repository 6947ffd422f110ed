"""Everything that the lab plays, by what becomes of it."""

from bcd.lab.scenario import Group
from bcd.lab.scenarios import broken, crash, download, good, helper, refused

GROUPS: tuple[Group, ...] = (
    Group(title="Updates that work", scenarios=good.SCENARIOS),
    Group(title="Downloads that go wrong and are mended", scenarios=download.SCENARIOS),
    Group(title="Releases that are refused", scenarios=refused.SCENARIOS),
    Group(title="Releases that are rolled back", scenarios=broken.SCENARIOS),
    Group(title="Power cuts", scenarios=crash.SCENARIOS),
)
"""In the order in which a newcomer should read them."""

SPLIT_GROUPS = (*GROUPS, Group(title="The privileged half", scenarios=helper.SCENARIOS))
"""What a split lab plays."""
