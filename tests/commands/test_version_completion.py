"""`bcd version` and `bcd completion`: what a packager and a shell ask for."""

import shlex
import shutil
from pathlib import Path

import pytest

from bcd.core.build import this_build, this_platform
from tests.commands.documents import document
from tests.commands.running import Runner


def test_version_is_one_line(run: Runner) -> None:
    assert run("version") == (0, f"bcd {this_build().version}\n", "")


def test_version_as_json_is_the_whole_stamp(run: Runner) -> None:
    done = run("version", "--json")
    assert (done.status, done.stderr) == (0, "")
    stamp = this_build()._asdict()
    assert document(done.stdout, "version") == {"format": 1, **stamp, "platform": this_platform()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_for_bcd(shell: str, run: Runner) -> None:
    done = run("completion", shell)
    assert (done.status, done.stderr) == (0, "")
    assert f"_BCD_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is what is asked")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("bcd upd", {"update"}),
        ("bcd update ch", {"check"}),
        ("bcd update --c", {"--config", "--clear-failed", "--color"}),
        ("bcd completion z", {"zsh"}),
    ],
)
def test_bash_is_offered_what_there_is(words: str, offered: set[str], run: Runner, home: Path) -> None:
    """The script is sourced, and its function asks this very bcd."""
    program = home / "bcd"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(run.command())} "$@"\n')
    program.chmod(0o755)
    script = f"""
        eval "$({program} completion bash)"
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _bcd_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run.shell(script)
    assert (done.status, set(done.stdout.split())) == (0, offered)


def test_a_completion_that_is_not_understood_is_no_crash(run: Runner) -> None:
    done = run(env={"_BCD_COMPLETE": "nonsense", "COMP_WORDS": "bcd", "COMP_CWORD": "x"})
    assert (done.status, done.stdout, done.stderr) == (1, "", "")
