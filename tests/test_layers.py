"""The run-time twin of import-linter's contracts: what each command loads, asked of a fresh interpreter.

The static graph cannot tell an import inside a function that runs from one that does not.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

HEAVY = (
    "asyncio",
    "click",
    "cryptography",
    "dataclasses",
    "msgspec",
    "psutil",
    "rfc8785",
    "rich",
    "rich_click",
    "ssl",
    "textual",
    "tomlkit",
    "truststore",
    "urllib3",
    "websockets",
)
"""Each costs more than `bcd update` as a whole may (ADR 0002)."""

DRAWS = ("click", "rich", "rich_click", "textual")


def loaded_by(code: str, *arguments: str) -> frozenset[str]:
    """Run `code` in a fresh interpreter; every module that it has loaded at its end."""
    report = "\nimport json, sys\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}{report}", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return frozenset(json.loads(done.stderr.splitlines()[-1]))


def top_level(modules: frozenset[str], names: tuple[str, ...]) -> list[str]:
    return sorted({module.partition(".")[0] for module in modules} & set(names))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(
        f'[node]\ndata_dir = "{tmp_path}/data"\n'
        f'[update]\nslots_dir = "{tmp_path}/slots"\nentrypoint = "{tmp_path}/bin/bcd"\n'
    )
    return path


@pytest.mark.parametrize(
    "arguments", [["update"], ["update", "--json"], ["version"], ["version", "--json"]], ids=" ".join
)
def test_the_commands_that_scripts_call_load_nothing_heavy(arguments: list[str], config: Path) -> None:
    where = ["--config", str(config)] if arguments[0] == "update" else []
    modules = loaded_by("from bcd.cli import main\nmain(sys.argv[1:])", *arguments, *where)
    assert "bcd.commands.show" in modules
    assert top_level(modules, HEAVY) == []


def test_help_loads_click_and_neither_a_screen_nor_a_session(config: Path) -> None:
    modules = loaded_by("from bcd.cli import main\nmain(sys.argv[1:])", "update", "--help")
    assert "click" in modules
    assert top_level(modules, ("cryptography", "textual", "urllib3", "websockets")) == []


@pytest.mark.parametrize("command", ["keygen", "sign", "verify", "inspect"])
def test_help_for_releases_loads_no_key(command: str) -> None:
    modules = loaded_by("from bcd.cli import main\nmain(sys.argv[1:])", "release", command, "--help")
    assert top_level(modules, ("cryptography", "rfc8785", "textual", "urllib3", "websockets")) == []
    assert not [module for module in modules if module.startswith("bcd.release")]


def test_the_agent_loads_nothing_that_draws() -> None:
    modules = loaded_by("import bcd.node.main")
    assert "websockets" in modules
    assert top_level(modules, DRAWS) == []


def test_the_update_manager_loads_nothing_that_draws_and_no_session() -> None:
    modules = loaded_by("import bcd.core.manager")
    assert top_level(modules, (*DRAWS, "websockets")) == []
    assert not [module for module in modules if module.startswith(("bcd.node", "bcd.lab", "bcd.release"))]


def test_signing_a_release_loads_nothing_that_draws_or_talks() -> None:
    modules = loaded_by("import bcd.release.keyfile, bcd.release.manifestfile, bcd.release.signer, bcd.release.signing")
    assert top_level(modules, (*DRAWS, "urllib3", "websockets")) == []


@pytest.mark.parametrize("form", ["json", "plain", "junit", "prometheus"])
def test_the_doctors_report_for_programs_loads_nothing_that_draws_and_no_frames(form: str, config: Path) -> None:
    """Half a second is all that a whole run may take (benchmarks/doctor.py)."""
    modules = loaded_by(
        "from bcd.cli import main\nmain(sys.argv[1:])", "doctor", "--format", form, "--config", str(config)
    )
    assert "bcd.doctor.checks" in modules
    assert top_level(modules, (*DRAWS, "asyncio", "cryptography", "msgspec", "urllib3")) == []


def test_the_doctor_looks_without_drawing_and_without_a_manager() -> None:
    modules = loaded_by("import bcd.doctor.checks, bcd.doctor.run, bcd.doctor.report.machine, bcd.doctor.report.plain")
    assert top_level(modules, DRAWS) == []
    assert "bcd.core.manager" not in modules
    assert not [
        module for module in modules if module.startswith(("bcd.node.agent", "bcd.node.updater", "bcd.release"))
    ]


def test_the_consoles_first_frame_waits_for_no_check_no_key_and_no_session(config: Path) -> None:
    modules = loaded_by(
        """
import asyncio
from bcd.commands.console import Asked, open_on_this_machine
app, _ = open_on_this_machine(Asked(config_path=sys.argv[1]), None)
async def first_frame():
    async with app.run_test() as pilot:
        await pilot.pause()
asyncio.run(first_frame())
""",
        str(config),
    )
    assert "bcd.tui.screens.overview" in modules
    assert (
        top_level(modules, ("cryptography", "msgspec", "psutil", "rfc8785", "tomlkit", "urllib3", "websockets")) == []
    )
    assert not [module for module in modules if module.startswith(("bcd.doctor.check", "bcd.doctor.probes", "bcd.lab"))]
