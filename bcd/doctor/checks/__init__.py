"""Every check, one file a category, in the order in which they are shown."""

from bcd.doctor.check import Check
from bcd.doctor.checks.slots import SLOT_CHECKS

CHECKS: tuple[Check, ...] = (*SLOT_CHECKS.checks,)
