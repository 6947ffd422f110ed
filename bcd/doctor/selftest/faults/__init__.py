"""Every fault, in the order of the checks: what the self-test plants, and what tests/doctor/test_matrix.py does."""

from bcd.doctor.selftest.fault import Faults
from bcd.doctor.selftest.faults.configuration import CONFIGURATION_FAULTS
from bcd.doctor.selftest.faults.gateway import GATEWAY_FAULTS
from bcd.doctor.selftest.faults.machine import MACHINE_FAULTS
from bcd.doctor.selftest.faults.places import PLACE_FAULTS
from bcd.doctor.selftest.faults.service import SERVICE_FAULTS
from bcd.doctor.selftest.faults.slots import SLOT_FAULTS
from bcd.doctor.selftest.faults.update import UPDATE_FAULTS

FAULTS: Faults = (
    *CONFIGURATION_FAULTS,
    *SLOT_FAULTS,
    *PLACE_FAULTS,
    *UPDATE_FAULTS,
    *SERVICE_FAULTS,
    *GATEWAY_FAULTS,
    *MACHINE_FAULTS,
)
