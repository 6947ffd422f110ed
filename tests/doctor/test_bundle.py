"""The bundle: what support needs is in it, secrets are not, and opening one believes nothing."""

import io
import json
import os
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from bcd.core.errors import UsageError
from bcd.doctor.bundle import write_bundle
from bcd.doctor.check import Check, fail
from bcd.doctor.finding import Level, Report
from bcd.doctor.open_bundle import open_bundle
from bcd.doctor.probes import Probes, Ran
from bcd.doctor.run import run_checks

PIN = "sha256/" + "A" * 43 + "="
SECRETS = {
    "gateway": "gwpass-7431",
    "proxy": "proxypass-7432",
    "query": "querytoken-7433",
    "history": "histsecret-7434",
    "journal": "journalsecret-7435",
    "bearer": "bearertoken-7436",
    "pem": "MIIsecretkeymaterial7437",
    "unit": "unitsecret-7438",
    "jwt": "eyJhbGciOiJub25lIn0.eyJzZWNyZXQiOiI3NDM5In0.c2lnbmF0dXJl",
    "reason": "reasonsecret-7440",
    "finding": "findingsecret-7441",
    "comment": "commentsecret-7442",
    "toml": "tomlsecret-7443",
    "cloud": "AKIAABCDEFGHIJKL7444",
}


def _node(home: Path) -> Path:
    records = home / "var" / "update"
    records.mkdir(parents=True)
    slots = home / "lib"
    slots.mkdir()
    (slots / "current").symlink_to("bcd-a")
    config = home / "config.toml"
    config.write_text(
        f"# the old password was {SECRETS['comment']}\n"
        f'[node]\ndata_dir = "{home / "var"}"\n'
        f'gateway = "wss://node:{SECRETS["gateway"]}@gateway.example.com/v1/node?token={SECRETS["query"]}"\n'
        f'[update]\nrelease_pins = "{PIN}"\nrelease_threshold = 1\n'
        f'slots_dir = "{slots}"\nentrypoint = "{home / "bcd"}"\n'
        f'[other]\npassword = "{SECRETS["toml"]}"\n'
    )
    reason = f"the gateway said: Authorization: Bearer {SECRETS['bearer']}, password={SECRETS['reason']}"
    failed = [{"version": "1.4.1", "sequence": 15, "reason": reason, "at": 1}]
    (records / "update.json").write_text(json.dumps({"format": 1, "sequence": 14, "failed": failed}))
    url = f"https://user:{SECRETS['history']}@downloads.example.com/bcd?sig={SECRETS['query']}"
    (records / "history.jsonl").write_text(
        json.dumps({"at": 1, "event": "refused", "reason": url}) + "\ntorn " + SECRETS["history"] + "\n"
    )
    (home / "var" / "outbox.json").write_text("{torn " + SECRETS["history"])
    return config


def _run(command: Sequence[str], _timeout: float) -> Ran:
    if command[0] == "journalctl":
        text = (
            f"Nov 29 bcd[1]: login secret: {SECRETS['journal']}\n"
            f"Nov 29 bcd[1]: -----BEGIN EC PRIVATE KEY-----\n{SECRETS['pem']}\n-----END EC PRIVATE KEY-----\n"
            f"Nov 29 bcd[1]: got {SECRETS['jwt']} and {SECRETS['cloud']}\n"
            "Nov 29 bcd[1]: an ordinary line stays\n"
        )
        return Ran(status=0, stdout=text, stderr="")
    text = f"[Service]\nEnvironment=API_TOKEN={SECRETS['unit']}\nExecStart=/usr/local/bin/bcd node\n"
    return Ran(status=0, stdout=text, stderr="")


def _probes(home: Path) -> Probes:
    (home / "systemd").mkdir()
    return Probes(
        config_path=str(_node(home)),
        environ={
            "HTTPS_PROXY": f"http://me:{SECRETS['proxy']}@proxy.example.com:3128",
            "AWS_SECRET_ACCESS_KEY": SECRETS["cloud"],
            "PATH": "/usr/bin",
        },
        run=_run,
        systemd_directory=str(home / "systemd"),
    )


def _report(probes: Probes) -> Report:
    check = Check(
        id="update.failed-versions",
        summary="",
        why="",
        network=False,
        look=lambda _: fail("broken", f"https://a:{SECRETS['finding']}@b/", hint="mend it"),
    )
    return run_checks([check], probes, timeout_seconds=5)


def _members(path: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(path) as archive:
        for info in archive:
            file = archive.extractfile(info)
            assert file is not None
            found[info.name] = file.read()
    return found


def test_no_secret_that_was_planted_is_in_the_bundle(tmp_path: Path) -> None:
    """Config, environment, URLs, unit, journal, history and findings go in, and no secret of theirs."""
    probes = _probes(tmp_path)
    path = tmp_path / "b.tar.gz"
    write_bundle(str(path), _report(probes), probes)
    members = _members(path)
    everything = b"\n".join(members.values()).decode()
    leaked = {name: secret for name, secret in SECRETS.items() if secret in everything}
    assert leaked == {}
    # And it is not empty for that: what support needs is there.
    assert "an ordinary line stays" in everything
    assert "ExecStart=/usr/local/bin/bcd node" in everything
    assert "gateway.example.com" in everything
    assert "proxy.example.com:3128" in everything
    assert PIN in everything


def test_what_does_not_parse_is_left_out_and_listed(tmp_path: Path) -> None:
    """A torn record is no member, and contents.json says why; a torn history line is dropped and counted."""
    probes = _probes(tmp_path)
    path = tmp_path / "b.tar.gz"
    write_bundle(str(path), _report(probes), probes)
    members = _members(path)
    contents = json.loads(members["bcd-doctor/contents.json"])
    left_out = {entry["name"]: entry["why"] for entry in contents["left_out"]}
    assert "does not parse" in left_out["records/outbox.json"]
    assert "bcd-doctor/records/outbox.json" not in members
    assert json.loads(members["bcd-doctor/records/history.jsonl"].splitlines()[-1]) == {"left_out_lines": 1}
    listed = {f"bcd-doctor/{entry['name']}" for entry in contents["members"]}
    assert listed == set(members) - {"bcd-doctor/contents.json"}


def test_a_bundle_is_its_owners_alone_and_never_overwrites(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask; a file, or a link, at its name is refused and stays as it was."""
    probes = _probes(tmp_path)
    report = _report(probes)
    path = tmp_path / "b.tar.gz"
    before = os.umask(0)
    try:
        write_bundle(str(path), report, probes)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = path.read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        write_bundle(str(path), report, probes)
    assert path.read_bytes() == data
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    with pytest.raises(UsageError):
        write_bundle(str(link), report, probes)
    assert not target.exists()


def test_an_opened_bundle_gives_the_report_that_was_written(tmp_path: Path) -> None:
    """The same findings, with their levels and hints."""
    probes = _probes(tmp_path)
    path = tmp_path / "b.tar.gz"
    write_bundle(str(path), _report(probes), probes)
    opened = open_bundle(str(path))
    (finding,) = opened.report.findings
    assert (finding.id, finding.level, finding.hint) == ("update.failed-versions", Level.FAIL, "mend it")
    assert any(line.startswith("records/outbox.json: ") for line in opened.left_out)


def _archive(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


_GOOD_CONTENTS = json.dumps({"members": [], "left_out": []}).encode()


def test_a_bundle_that_carries_escapes_writes_no_terminal(tmp_path: Path) -> None:
    """Text in a foreign bundle passes the sanitiser on its way in."""
    evil = "\x1b]52;c;ZXZpbA==\x07\u202e\x9b2J"
    finding = {"id": f"a.{evil}", "level": "fail", "message": evil, "evidence": [evil], "hint": evil}
    report = {
        "findings": [finding],
        "complete": True,
        "started_at": 1,
        "seconds": 0.1,
        "looked_as": evil,
        "about": evil,
    }
    path = tmp_path / "evil.tar.gz"
    members = {"bcd-doctor/contents.json": _GOOD_CONTENTS, "bcd-doctor/report.json": json.dumps(report).encode()}
    _archive(path, members)
    opened = open_bundle(str(path)).report
    (shown,) = opened.findings
    for text in (shown.id, shown.message, *shown.evidence, shown.hint, opened.looked_as, opened.about):
        assert text.isprintable()


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"bcd-doctor/contents.json": b"{"},
        {"bcd-doctor/contents.json": _GOOD_CONTENTS},
        {"bcd-doctor/contents.json": _GOOD_CONTENTS, "bcd-doctor/report.json": b"[]"},
        {"bcd-doctor/contents.json": _GOOD_CONTENTS, "bcd-doctor/report.json": b'{"findings": 1}'},
        {"bcd-doctor/contents.json": b"[" * 100_000, "bcd-doctor/report.json": b"{}"},
        {"../../etc/passwd": b"x", "bcd-doctor/contents.json": b"{}"},
    ],
)
def test_an_archive_that_is_no_bundle_is_refused_in_a_sentence(tmp_path: Path, members: dict[str, bytes]) -> None:
    """Whatever is in it, the end is `unreadable-bundle`, and nothing is unpacked."""
    path = tmp_path / "x.tar.gz"
    _archive(path, members)
    with pytest.raises(UsageError) as refused:
        open_bundle(str(path))
    assert refused.value.code == "unreadable-bundle"
    assert sorted(os.listdir(tmp_path)) == ["x.tar.gz"]


def test_a_bomb_in_front_of_the_report_is_not_unpacked(tmp_path: Path) -> None:
    """A member larger than any of ours ends the reading at its header."""
    path = tmp_path / "bomb.tar.gz"
    _archive(path, {"bomb": b"\0" * (9 * 1024 * 1024), "bcd-doctor/contents.json": _GOOD_CONTENTS})
    with pytest.raises(UsageError, match="too large"):
        open_bundle(str(path))


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"\x1f\x8b\x08" + b"x" * 50])
def test_bytes_that_are_no_archive_are_refused_in_a_sentence(tmp_path: Path, data: bytes) -> None:
    """Neither an empty file nor a torn gzip gives a traceback."""
    path = tmp_path / "x.tar.gz"
    path.write_bytes(data)
    with pytest.raises(UsageError):
        open_bundle(str(path))
