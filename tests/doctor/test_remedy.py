"""What is copied out of a hint is a command, whole, and nothing but a command: it is pasted into a root shell."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from bcd.doctor.remedy import command_in
from tests.doctor.test_hints import ODD, findings, odd

__all__ = ["odd"]  # a fixture


FORMS = re.compile(
    r"(bcd (doctor|update) |cat '|chmod (0755|go-w) '|chown (-h )?root:root '|df -h '|getent hosts |journalctl -u |less '|"
    r"ln -sfn |ls -l '|mv '|nc -vz |openssl s_client |ps aux |(sudo )?systemctl [a-z-]+( |$)|timedatectl [a-z-]+( |$))"
)
"""What commands of hints begin with: a sentence that begins with a program's name is none."""


@pytest.mark.parametrize(
    ("hint", "command"),
    [
        ("systemctl restart bcd.service", "systemctl restart bcd.service"),
        ("systemctl restart bcd.service: its start settles it", "systemctl restart bcd.service"),
        ("systemctl restart bcd-helper.service, which makes it anew", "systemctl restart bcd-helper.service"),
        ("when its cause is mended: /opt/bcd update --clear-failed 1.4.2", "/opt/bcd update --clear-failed 1.4.2"),
        ("the next update writes it anew; what is there now: cat '/a; b: c, d/x'", "cat '/a; b: c, d/x'"),
        ("chown root:root /a && chmod 0755 /a", "chown root:root /a && chmod 0755 /a"),
        ("less /a; compare it with bcd update; then rm /a", "less /a"),
        ("install the package ca-certificates, or set [update] ca_file in /etc/x", ""),
        ("mount it exec (mount -o remount,exec /srv) or move the directory", ""),
        ("set [update] release_pins to your release keys' pins", ""),
        ("wait", ""),
        ("", ""),
        ("rm /a\nrm /b", ""),
        ("look again: '/opt/a b/bcd' update", "'/opt/a b/bcd' update"),
        ("systemctl cat the operator's unit", ""),
    ],
)
def test_the_first_command_of_a_hint_is_taken_whole(hint: str, command: str) -> None:
    assert command_in(hint) == command


def test_every_command_of_every_state_is_one_that_a_shell_reads_with_its_paths_whole(odd: Path) -> None:
    """On a node whose every path has blanks, quotes, separators and a command in it."""
    told, paths = set(), 0
    for state, finding in findings():
        command = command_in(finding.hint)
        if not command:
            continue
        told.add(command)
        assert FORMS.match(re.sub(r"^'.*/bcd'", "bcd", command)), f"{state}: {command}"
        read = subprocess.run(["sh", "-n", "-c", command], capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, ""), f"{state}: {command}"
        words = shlex.split(command)
        assert not [word for word in words if "touch" in word and ODD not in word], f"{state}: {command}"
        paths += any(ODD in word for word in words)
    assert len(told) > 50
    assert paths > 30
