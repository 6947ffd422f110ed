"""Becoming the entrypoint's program: through the entrypoint, with what this process was started with (field report 18)."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bcd

SOURCE = str(Path(bcd.__file__).parent.parent)


@pytest.fixture
def entrypoint(tmp_path: Path) -> Path:
    """An installed program that writes down how it was started."""
    return program(
        tmp_path / "bcd",
        "import json,os\njson.dump([sys.argv,dict(os.environ),os.getpid()],open({out!r},'w'))",
        tmp_path,
    )


def program(path: Path, body: str, directory: Path) -> Path:
    """A Python program at `path`; `{out}` in its body is the file for what it has to tell."""
    text = body.format(out=str(directory / "out.json"))
    path.write_text(f"#!{sys.executable} -S\nimport sys\n{text}\n")
    path.chmod(0o755)
    return path


def told(directory: Path) -> tuple[list[str], dict[str, str], int]:
    """What the program wrote down."""
    argv, environ, pid = json.loads((directory / "out.json").read_bytes())
    return argv, environ, pid


def start(
    code: str, *arguments: object, cwd: Path | None = None, stdout: int | None = None, stderr: int | None = None
) -> "subprocess.Popen[bytes]":
    """A child that runs `code` with bcd's source on its path."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "KEPT": "as it is"}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env=environment,
        cwd=cwd,
        stdout=stdout,
        stderr=stderr,
    )


BECOME = """
    import sys
    from bcd.node.restart import exec_entrypoint
    exec_entrypoint(sys.argv.pop(1))
"""


def test_the_next_program_has_the_same_arguments_environment_and_pid(entrypoint: Path, tmp_path: Path) -> None:
    """Its own name is the entrypoint, which is what the service started too."""
    child = start(BECOME, entrypoint, "node", "--config", "/etc/with space.toml", "")
    assert child.wait(20) == 0
    argv, environ, pid = told(tmp_path)
    assert argv == [str(entrypoint), "node", "--config", "/etc/with space.toml", ""]
    assert pid == child.pid
    assert environ["KEPT"] == "as it is"


def test_a_working_directory_that_is_gone_does_not_matter(entrypoint: Path, tmp_path: Path) -> None:
    """The exec names an absolute path and looks at nothing else."""
    (tmp_path / "gone").mkdir()
    code = "import os; os.rmdir(os.getcwd())\n" + textwrap.dedent(BECOME)
    assert start(code, entrypoint, cwd=tmp_path / "gone").wait(20) == 0
    assert told(tmp_path)[0][0] == str(entrypoint)


def test_a_running_file_that_was_replaced_is_not_what_is_started(tmp_path: Path) -> None:
    """What runs was started through the links, its file was unlinked since, and `current` leads elsewhere now."""
    old = """
import os
sys.path.insert(0, {source!r})
os.unlink("bcd-a")
open("bcd-a", "w").write("not a program")
os.symlink("bcd-b", "new")
os.rename("new", "current")
from bcd.node.restart import exec_entrypoint
exec_entrypoint(os.path.abspath("bcd"))
"""
    program(tmp_path / "bcd-a", old.replace("{source!r}", repr(SOURCE)), tmp_path)
    program(tmp_path / "bcd-b", "import json,os\njson.dump([sys.argv,{{}},os.getpid()],open({out!r},'w'))", tmp_path)
    (tmp_path / "current").symlink_to("bcd-a")
    (tmp_path / "bcd").symlink_to(tmp_path / "current")
    ran = subprocess.run([tmp_path / "bcd", "node"], cwd=tmp_path, timeout=20, check=False)
    assert ran.returncode == 0
    assert told(tmp_path)[0] == [str(tmp_path / "bcd"), "node"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_log_that_nobody_reads_any_more_is_no_failed_start(entrypoint: Path, tmp_path: Path, stream: str) -> None:
    """What could not be flushed is lost; taken for a failed exec it would fail a good release for good."""
    read, write = os.pipe()
    os.close(read)
    code = f"import sys; sys.{stream}.write('the last words')\n" + textwrap.dedent(BECOME)
    child = start(
        code, entrypoint, stdout=write if stream == "stdout" else None, stderr=write if stream == "stderr" else None
    )
    os.close(write)
    assert child.wait(20) == 0
    assert told(tmp_path)[0][0] == str(entrypoint)


def test_streams_that_were_never_open_are_no_failed_start(entrypoint: Path, tmp_path: Path) -> None:
    """Python has None for them."""
    code = "import sys; sys.stdout = sys.stderr = None\n" + textwrap.dedent(BECOME)
    assert start(code, entrypoint).wait(20) == 0
    assert told(tmp_path)[0][0] == str(entrypoint)


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"#!/bin/sh\n", 0o644, "Permission denied"),
        (b"\0\1\2 no program", 0o755, "Exec format error"),
        (b"#!/no/such/interpreter\n", 0o755, "No such file or directory"),
        (None, 0, "No such file or directory"),
    ],
    ids=["not-executable", "no-program", "no-interpreter", "missing"],
)
def test_a_program_that_cannot_be_started_is_an_oserror(
    tmp_path: Path, content: bytes | None, mode: int, said: str
) -> None:
    """The old process lives on and can roll back."""
    path = tmp_path / "bcd"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    code = """
        import sys
        from bcd.node.restart import exec_entrypoint
        try:
            exec_entrypoint(sys.argv[1])
        except OSError as error:
            print(error.strerror)
    """
    child = start(code, path, stdout=subprocess.PIPE)
    assert child.communicate(timeout=20)[0].decode().strip() == said
    assert child.returncode == 0
