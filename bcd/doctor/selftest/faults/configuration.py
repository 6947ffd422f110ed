"""Configurations that do not read, trust the wrong people, or are not the service's."""

import os
import shutil

from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Level
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.root import Root

STRANGER = 12345
"""A uid that is neither root's nor ours."""

_READ_NO_CONFIGURATION = (
    "service.manager",
    "service.exec-start",
    "service.active",
    "service.restarts",
    "gateway.proxies",
)
WITHOUT_CONFIGURATION = frozenset(
    check.id
    for check in CHECKS
    if check.id not in ("configuration.parses", *_READ_NO_CONFIGURATION)
    and (check.id == "host.disk" or not check.id.startswith("host."))
) | {"service.exec-start"}
"""Who can't say anything without a configuration."""


def _data_dir_around_slots(root: Root) -> None:
    shutil.copytree(root.home / "var" / "update", root.home / "lib" / "update")
    root.configure("node", data_dir=f"{root.home}/lib")
    root.write_units()


def _entrypoint_in_data_dir(root: Root) -> None:
    root.use_helper()
    root.link("var/bcd", f"{root.home}/lib/current")
    root.configure(entrypoint=f"{root.home}/var/bcd")
    root.write_units()


def _stopped_agent_of(root: Root, config: str) -> None:
    root.machine.live = None
    start = f"{{ path={root.home}/bin/bcd ; argv[]={root.home}/bin/bcd node --config {config} ; pid=0 }}"
    root.machine.units["bcd.service"]["ExecStart"] = start


def _nothing_to_compare_with(root: Root) -> None:
    root.machine.live = None
    (root.home / "systemd").rmdir()


def _another_configurations_agent(root: Root) -> None:
    root.run_agent("/etc/bcd/other.toml")


CONFIGURATION_FAULTS: Faults = (
    Fault(
        check="configuration.parses",
        name="an unknown key",
        plant=lambda root: root.configure(release_pin="x"),
        level=Level.FAIL,
        says="no key 'release_pin'",
        also=WITHOUT_CONFIGURATION,
    ),
    Fault(
        check="configuration.parses",
        name="a pin that is none",
        plant=lambda root: root.configure(release_pins=["sha256/AAAA"]),
        level=Level.FAIL,
        says="sha256/<base64 of 32 bytes>",
        also=WITHOUT_CONFIGURATION,
    ),
    Fault(
        check="configuration.parses",
        name="a torn file",
        plant=lambda root: root.write("etc/config.toml", "[update]\nrelease_pins = ["),
        level=Level.FAIL,
        says="is no TOML",
        also=WITHOUT_CONFIGURATION,
    ),
    Fault(
        check="configuration.parses",
        name="a FIFO in its place",
        plant=lambda root: root.fifo("etc/config.toml"),
        level=Level.FAIL,
        says="no regular file",
        also=WITHOUT_CONFIGURATION,
    ),
    Fault(
        check="configuration.parses",
        name="this user may not read it",
        plant=lambda root: root.forbid("etc/config.toml"),
        level=Level.UNKNOWN,
        says="this user may not read it",
        also=WITHOUT_CONFIGURATION,
        as_nobody=True,
    ),
    Fault(
        check="configuration.parses",
        name="no file at the name that was given",
        plant=lambda root: root.remove("etc/config.toml"),
        level=Level.WARN,
        says="this report is about the defaults",
        alone=True,
    ),
    Fault(
        check="configuration.release-pins",
        name="no pins",
        plant=lambda root: root.configure(release_pins=[]),
        level=Level.WARN,
        says="no release keys are pinned",
    ),
    Fault(
        check="configuration.release-pins",
        name="fewer pins than must sign",
        plant=lambda root: root.configure(release_threshold=4),
        level=Level.FAIL,
        says="3 release keys are pinned and 4 must sign",
    ),
    Fault(
        check="configuration.release-pins",
        name="one signature is enough",
        plant=lambda root: root.configure(release_threshold=1),
        level=Level.NOTE,
        says="one signature is enough",
    ),
    Fault(
        check="configuration.permissions",
        name="the file may be written by its group",
        plant=lambda root: (root.home / "etc" / "config.toml").chmod(0o664),
        level=Level.FAIL,
        says="config.toml may be written by others",
    ),
    Fault(
        check="configuration.permissions",
        name="its directory may be written by all",
        plant=lambda root: (root.home / "etc").chmod(0o777),
        level=Level.FAIL,
        says="/etc may be written by others",
    ),
    Fault(
        check="configuration.permissions",
        name="its directory is sticky, as /tmp is",
        plant=lambda root: (root.home / "etc").chmod(0o1777),
        level=Level.OK,
        says="only its owner may change it",
    ),
    Fault(
        check="configuration.permissions",
        name="the file is a stranger's",
        plant=lambda root: os.chown(root.home / "etc" / "config.toml", STRANGER, -1),
        level=Level.FAIL,
        says="uid 12345, who may pin keys of their own",
        needs_root=True,
    ),
    Fault(
        check="configuration.permissions",
        name="no file",
        plant=lambda root: root.remove("etc/config.toml"),
        level=Level.SKIPPED,
        says="there is no configuration file",
        alone=True,
    ),
    Fault(
        check="configuration.placement",
        name="the slots lie in data_dir",
        plant=_data_dir_around_slots,
        level=Level.WARN,
        says="slots_dir inside data_dir",
    ),
    Fault(
        check="configuration.placement",
        name="the entrypoint lies in data_dir, under the helper",
        plant=_entrypoint_in_data_dir,
        level=Level.FAIL,
        says="the helper does not start",
        needs_root=True,
    ),
    Fault(
        check="configuration.service-paths",
        name="the agent runs with another file",
        plant=_another_configurations_agent,
        level=Level.WARN,
        says="the service runs with /etc/bcd/other.toml",
    ),
    Fault(
        check="configuration.service-paths",
        name="the unit would start the agent with another file",
        plant=lambda root: _stopped_agent_of(root, "/etc/bcd/other.toml"),
        level=Level.WARN,
        says="the service runs with /etc/bcd/other.toml",
        also=frozenset({"update.agent"}),
    ),
    Fault(
        check="configuration.service-paths",
        name="neither an agent nor a unit",
        plant=_nothing_to_compare_with,
        level=Level.SKIPPED,
        says="nothing to compare with",
        also=frozenset({"update.agent", "service.manager"}),
    ),
)
