"""Every check, one file a category, in the order in which they are shown."""

from bcd.doctor.check import Check
from bcd.doctor.checks.configuration import CONFIGURATION_CHECKS
from bcd.doctor.checks.gateway import GATEWAY_CHECKS
from bcd.doctor.checks.helper import HELPER_CHECKS
from bcd.doctor.checks.host import HOST_CHECKS
from bcd.doctor.checks.proxies import PROXY_CHECKS
from bcd.doctor.checks.service import SERVICE_CHECKS
from bcd.doctor.checks.slot_places import PLACE_CHECKS
from bcd.doctor.checks.slots import SLOT_CHECKS
from bcd.doctor.checks.update import UPDATE_CHECKS

CHECKS: tuple[Check, ...] = (
    *CONFIGURATION_CHECKS.checks,
    *SLOT_CHECKS.checks,
    *PLACE_CHECKS.checks,
    *UPDATE_CHECKS.checks,
    *SERVICE_CHECKS.checks,
    *GATEWAY_CHECKS.checks,
    *PROXY_CHECKS.checks,
    *HELPER_CHECKS.checks,
    *HOST_CHECKS.checks,
)
