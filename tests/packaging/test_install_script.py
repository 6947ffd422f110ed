"""The installer's own logic, without changing this machine: usage, what a dry run would do, and how it edits a file."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bcd.lab.packing import Packer, Stamp

PACKAGING = Path(__file__).parent.parent.parent / "packaging"
PINS = [f"sha256/{letter * 42}A=" for letter in "ABC"]
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bcd 1.4.0, sequence 14."""
    file = tmp_path_factory.mktemp("binary") / "bcd"
    file.write_bytes(Packer().pack(Stamp(version="1.4.0", sequence=14, built_at=1, fakehw=False)))
    file.chmod(0o755)
    return file


class Script:
    """The script with its places below a directory; it only ever runs dry."""

    def __init__(self, root: Path) -> None:
        self.root = root
        text = (PACKAGING / "install.sh").read_text()
        for line in (
            "entrypoint=/usr/local/bin/bcd",
            "slots=/usr/local/lib/bcd",
            "data=/var/lib/bcd",
            "units=/etc/systemd/system",
        ):
            assert f"\n{line}\n" in text
            text = text.replace(f"\n{line}\n", f"\n{line.replace('=', f'={root}', 1)}\n")
        text = text.replace("\nconfig=/etc/bcd/config.toml\n", f"\nconfig={root}/config.toml\n")
        self.file = root / "install.sh"
        self.file.write_text(text)
        (root / "systemd").symlink_to(PACKAGING / "systemd")

    def run(self, *words: str | Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
        command = [shell, *(["sh"] if shell == "busybox" else []), str(self.file), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def config(self, before: str, *words: str | Path) -> str:
        """What a configuration would become; empty where it would stay."""
        file = self.root / "config.toml"
        file.write_text(before)
        ran = self.run("--dry-run", *words)
        assert ran.returncode == 0, ran.stderr
        assert file.read_text() == before
        _, _, shown = ran.stdout.partition(f"would: write {file}:\n")
        return "".join(line[4:] + "\n" for line in shown.splitlines() if line.startswith("    "))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which bcd"),
        (("--binary",), "--binary wants a value"),
        (("--binary", ""), "--binary wants a value"),
        (("--binry", "x"), "no option '--binry'"),
        (("--purge", "--binary", "x"), "--purge goes with --uninstall"),
        (("--uninstall", "--binary", "x"), "--uninstall goes with"),
        (("--uninstall", "--split"), "--uninstall goes with"),
        (("--binary", "x", "--threshold", "0"), "--threshold is a number"),
        (("--binary", "x", "--threshold", "two"), "--threshold is a number"),
        (("--binary", "x", "--sha256", "abc"), "64 hex digits"),
        (("--binary", "x", "--gateway", "ws://clear.example"), "no wss:// address"),
        (("--binary", "x", "--gateway", 'wss://a"b'), "no address has"),
        (("--binary", "x", "--pins", "sha256/short="), "is no pin"),
        (("--binary", "x", "--pins", "sha256/" + "$" * 43 + "="), "is no pin"),
        (("--binary", "x", "--pins", PINS[0]), "can't reach a threshold of 2"),
        (("--dry-run", "--binary", "/nonexistent"), "is no file"),
        (("--dry-run", "--binary", "/dev/null"), "is no file"),
    ],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_wrong_usage_is_a_sentence_and_what_to_do(
    script: Script, shell: str, words: tuple[str, ...], said: str
) -> None:
    ran = script.run(*words, shell=shell)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 2
    assert ran.stderr.splitlines()[1].startswith("  ")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_only_root_may_install(script: Script, binary: Path) -> None:
    command = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-s", "--", "--binary", "x"]
    ran = subprocess.run(command, input=script.file.read_text(), capture_output=True, text=True)
    assert ran.returncode == 2
    assert "only root can install bcd" in ran.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_dry_run_says_everything_and_changes_nothing(script: Script, binary: Path, shell: str) -> None:
    before = sorted(script.root.iterdir())
    ran = script.run("--dry-run", "--split", "--binary", binary, "--pins", ",".join(PINS), shell=shell)
    assert ran.returncode == 0, ran.stderr
    assert f"would: put bcd 1.4.0 at {script.root}/usr/local/bin/bcd" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "nothing was changed"
    assert sorted(script.root.iterdir()) == before


def test_a_key_is_replaced_where_it_stands_and_all_else_stays(script: Script, binary: Path) -> None:
    before = (
        "# ours\n[update]   # the trust\n  release_threshold = 2   # two people\n"
        f'release_pins = "{PINS[0]},{PINS[1]}" # the old ones\n\n[node]\n# nothing yet\n[other]\nrelease_threshold = 9\n'
    )
    after = script.config(
        before, "--binary", binary, "--threshold", "3", "--pins", ",".join(PINS), "--gateway", "wss://g.example/v1"
    )
    assert after == (
        "# ours\n[update]   # the trust\nrelease_threshold = 3   # two people\n"
        f'release_pins = "{",".join(PINS)}" # the old ones\n\n[node]\ngateway = "wss://g.example/v1"\n# nothing yet\n'
        "[other]\nrelease_threshold = 9\n"
    )


def test_what_is_so_already_is_not_written_again(script: Script, binary: Path) -> None:
    """Pins as a list over several lines, in another order, with comments in between."""
    before = (
        f'[update]\nrelease_pins = [\n  "{PINS[1]}",  # b\n  # spare\n  "{PINS[0]}",\n]\nrelease_threshold = 2 # two\n'
        '[node]\ngateway = "wss://g.example/v1"  # near\n'
    )
    words = ("--binary", binary, "--pins", ",".join(PINS[:2]), "--threshold", "2", "--gateway", "wss://g.example/v1")
    assert script.config(before, *words) == ""


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (f'[update]\nrelease_pins = [\n  "{PINS[0]}",\n]\n', "in a form that this installer does not change"),
        (f'update.release_pins = "{PINS[0]}"\n', "would not be right"),
        ("[update]\nrelease_pinss = 1\n", "would not be right"),
        ("[update\n", "would not be right"),
        ('[update]\nslots_dir = "/opt/bcd"\n', "this installer knows"),
        ('[helper]\nnode_user = "bcd"\n', "has a table [helper]"),
    ],
)
def test_a_file_that_it_does_not_understand_is_left(script: Script, binary: Path, before: str, said: str) -> None:
    """Whatever it makes of a file is read by bcd itself before it takes the file's place."""
    (script.root / "config.toml").write_text(before)
    ran = script.run("--dry-run", "--binary", binary, "--pins", ",".join(PINS[:2]))
    assert (ran.returncode, said in ran.stderr) == (2, True), ran.stderr
    assert (script.root / "config.toml").read_text() == before


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_the_script_is_plain_posix() -> None:
    ran = subprocess.run(["shellcheck", PACKAGING / "install.sh"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
