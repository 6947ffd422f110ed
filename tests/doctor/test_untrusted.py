"""Text from outside: shown in every format, and nowhere does it act. And what an operator pastes is quoted.

The attack (field reports C05, C06): whoever can make a release fail, name a version, answer as a gateway or write a
unit has text on an operator's terminal, and in the command that the report tells the operator to run.
"""

import io
import json
import os
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from bcd.core.units import NODE_UNIT
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Level, Report
from bcd.doctor.probes import Ran
from bcd.doctor.report.machine import json_text, junit_text, prometheus_text
from bcd.doctor.report.plain import plain_lines
from bcd.doctor.report.rich_report import rich_report
from bcd.doctor.run import run_checks
from bcd.doctor.selftest.faults import FAULTS
from bcd.doctor.selftest.root import Root
from bcd.doctor.session import SessionProbe

ESCAPES = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\r\x00\u202e\u2066\u200b\x08[/foo]"
SHOWN = "\\x1b]52;c;ZXZpbA==\\x07\\x1b[2J\\x9b2J\\x0d\\x00\\u202e\\u2066\\u200b\\x08[/foo]"
FORMATS = ("plain", "rich", "rich in colour", "json", "junit", "prometheus")


def _rich(report: Report, *, color: bool) -> str:
    console = Console(
        file=io.StringIO(),
        width=100,
        force_terminal=color,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as drawn:
        console.print(rich_report(report, verbose=True))
    return drawn.get()


def _drawn(report: Report, form: str) -> str:
    match form:
        case "plain":
            return "\n".join(plain_lines(report, verbose=True))
        case "rich":
            return _rich(report, color=False)
        case "rich in colour":
            return _rich(report, color=True)
        case "json":
            return json_text(report)
        case "junit":
            return junit_text(report, strict=True)
    return prometheus_text(report)


def _acting(text: str) -> set[str]:
    """What a terminal may act on or hide behind; newlines and rich's own colours apart."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return {character for character in plain if character != "\n" and not character.isprintable()}


def _reason(root: Root) -> None:
    root.fail_version("1.4.2", f"{ESCAPES} not welcomed")


def _version(root: Root) -> None:
    root.fail_version(f"1.4.2-{ESCAPES}", "not welcomed")


def _record(root: Root) -> None:
    root.fill_slot("b", b"#!/bin/sh\n", f"1.4.1{ESCAPES}", 15)


def _program(root: Root) -> None:
    document = json.dumps({"version": ESCAPES})
    root.fill_slot("b", f"#!/bin/sh\ncat <<'E'\n{document}\nE\n".encode(), "1.4.1", 15)


def _programs_words(root: Root) -> None:
    root.machine.said["bcd-b"] = Ran(status=1, stdout=ESCAPES, stderr=ESCAPES)


def _agent(root: Root) -> None:
    root.machine.live = {"version": ESCAPES, "phase": ESCAPES, "error": ESCAPES, "pid": ESCAPES}


def _agents_trouble(root: Root) -> None:
    root.machine.live = {**(root.machine.live or {}), "error": ESCAPES, "phase": ESCAPES}


def _gateway(root: Root) -> None:
    root.machine.session = SessionProbe(host=ESCAPES, port=1, failed="tls", error=ESCAPES, addresses=[ESCAPES])


def _unit(root: Root) -> None:
    changes = dict.fromkeys(("ActiveState", "SubState", "Result", "NRestarts", "OnFailure", "StartLimitBurst"), ESCAPES)
    root.machine.units[NODE_UNIT].update(changes, ExecStart=f"{{ path={ESCAPES} ; argv[]={ESCAPES} }}")


def _systemctl(root: Root) -> None:
    root.machine.said["systemctl"] = Ran(status=1, stdout="", stderr=ESCAPES)


def _timedatectl(root: Root) -> None:
    root.machine.said["timedatectl"] = Ran(status=0, stdout=ESCAPES, stderr=ESCAPES)


def _link(root: Root) -> None:
    name = ESCAPES.replace("\x00", "").replace("/", "")
    root.link("lib/previous", name)
    root.link("bin/bcd", name)


def _file_names(root: Root) -> None:
    name = ESCAPES.replace("\x00", "").replace("/", "")
    root.write(f"lib/slots.json.corrupt-{name}", "torn")
    root.write(f"lib/bcd-{name}.tmp", "half")


def _edited_unit(root: Root) -> None:
    path = root.home / f"units/{NODE_UNIT}.d/50-bcd-rollback.conf"
    path.write_text(path.read_text().replace("Restart=always", f"Restart={ESCAPES}"))


def _proxy(root: Root) -> None:
    root.machine.environ["https_proxy"] = f"http://me:pass@{ESCAPES}"


def _configuration(root: Root) -> None:
    root.write("etc/config.toml", f"[update]\n{json.dumps(ESCAPES)} = 1\n")


SOURCES = {
    "a failure's reason": _reason,
    "a failed version's name": _version,
    "a version in slots.json": _record,
    "what a slot's program says its version is": _program,
    "what a slot's program says instead": _programs_words,
    "the agent": _agent,
    "the agent's last trouble": _agents_trouble,
    "the gateway": _gateway,
    "a unit's properties": _unit,
    "systemctl's complaint": _systemctl,
    "timedatectl's answer": _timedatectl,
    "a link's target": _link,
    "a file's name": _file_names,
    "an edited unit": _edited_unit,
    "a proxy variable": _proxy,
    "a key of the configuration": _configuration,
}


@pytest.mark.parametrize("source", SOURCES)
def test_it_is_shown_in_every_format_and_acts_in_none(root: Root, source: str) -> None:
    """No control, C1 or bidi-override character leaves by any way; what is shown are visible escapes."""
    SOURCES[source](root)
    report = run_checks(CHECKS, root.probes(), timeout_seconds=20)
    for form in FORMATS:
        text = _drawn(report, form)
        assert _acting(text) == set(), form
    # It was there to be shown: a test in which nothing arrives would prove nothing.
    assert any(part in _drawn(report, "plain") for part in ("\\x1b]52;", "\\u202e\\u2066"))
    json.loads(_drawn(report, "json"))
    ET.fromstring(_drawn(report, "junit"))


def test_brackets_and_the_whole_reason_are_there_to_be_read(root: Root) -> None:
    """Shown literally, escapes and all."""
    _reason(root)
    report = run_checks(CHECKS, root.probes(), timeout_seconds=20)
    said = next(f.message for f in report.findings if f.id == "update.failed-versions")
    assert said == f"1.4.2 failed here and is refused: {SHOWN} not welcomed"


def test_a_reason_of_ten_thousand_characters_scrolls_nothing_away(root: Root) -> None:
    """It is cut, and the remedy below it stays in sight."""
    root.fail_version("1.4.2", "x" * 10_000)
    report = run_checks(CHECKS, root.probes(), timeout_seconds=20)
    (finding,) = [f for f in report.findings if f.id == "update.failed-versions"]
    assert len(finding.message) <= 2_000
    assert finding.hint.endswith("etc/config.toml")


@pytest.mark.parametrize("version", ["1.4.2; reboot", "$(reboot)", "`reboot`", "1.4.2' '&& reboot", "--all", "a\nb"])
def test_a_version_cannot_add_a_command_to_the_one_that_clears_it(root: Root, version: str) -> None:
    """Whoever names a version writes what an operator pastes into a root shell."""
    root.fail_version(version, "not welcomed")
    report = run_checks(CHECKS, root.probes(), timeout_seconds=20)
    (finding,) = [f for f in report.findings if f.id == "update.failed-versions"]
    words = shlex.split(finding.hint.partition(": ")[2])
    at = words.index("--clear-failed")
    assert words[at - 1] == "update"
    assert words[at + 2 :] == ["--config", f"{root.home}/etc/config.toml"]


def test_paths_in_remedies_are_quoted_for_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node below a directory with blanks and worse: each command names the path, and nothing else."""
    odd = tmp_path / "a b;$(reboot)"
    odd.mkdir()
    monkeypatch.setenv("TMPDIR", str(odd))
    monkeypatch.setattr("tempfile.tempdir", None)
    seen = 0
    for fault in FAULTS:
        # What the mount's own error advises is core's.
        if fault.level not in (Level.FAIL, Level.WARN) or fault.needs_root or fault.check == "slots.mount":
            continue
        if fault.check.startswith(("gateway", "host")) or fault.timeout_seconds < 5:
            continue
        with Root() as root:
            fault.plant(root)
            checks = [check for check in CHECKS if check.id == fault.check]
            for finding in run_checks(checks, root.probes(), timeout_seconds=20).findings:
                seen += str(root.home) in finding.hint
                _assert_quoted(finding.hint, str(root.home))
    assert seen > 20


def _assert_quoted(hint: str, home: str) -> None:
    # Every mention stands between single quotes: an odd number of them is open before it.
    start = hint.find(home)
    while start >= 0:
        prose = hint[:start].endswith((" in ", "(")) or hint.startswith("in ")
        assert prose or hint[:start].count("'") % 2 == 1, hint
        start = hint.find(home, start + 1)


def test_no_password_of_a_url_is_shown(root: Root) -> None:
    """Neither a proxy's nor the gateway's, nor a token in its query, however they are spelt."""
    root.configure("node", gateway="wss://node:gwpass@gateway.example.com/v1/node?token=gwtoken")
    root.run_agent(f"{root.home}/etc/config.toml", "https_proxy=http://me:agent/pass@proxy:1\nall_proxy=me:s3://x@p")
    root.machine.environ.update(HTTPS_PROXY="http://me:our@pass@proxy:3128", no_proxy="a,b")
    report = run_checks(CHECKS, root.probes(), timeout_seconds=20)
    text = "".join(_drawn(report, form) for form in FORMATS)
    assert [secret for secret in ("gwpass", "gwtoken", "agent/pass", "our@pass", "s3://x") if secret in text] == []
    assert "gateway.example.com" in text
    assert "@proxy:3128" in text


def test_a_slot_that_others_may_write_is_never_started(root: Root) -> None:
    """Doctor is run as root: it must not be the way in."""
    marker = root.home / "was-run"
    root.fill_slot("b", f"#!/bin/sh\ntouch {shlex.quote(str(marker))}\n".encode(), "1.4.1", 15)
    os.chmod(root.home / "lib" / "bcd-b", 0o757)
    report = run_checks(CHECKS, root.probes(), timeout_seconds=20)
    assert not marker.exists()
    assert {f.level for f in report.findings if f.id == "slots.runs"} == {Level.UNKNOWN}
