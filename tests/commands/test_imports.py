"""What `bcd update` loads, asked of a fresh interpreter: a thousand machines run it in a loop (ADR 0002)."""

import json
import subprocess
import sys

import pytest

from tests.commands.node_dir import Node
from tests.commands.running import Runner
from tests.commands.test_live_state import DOWNLOADING, agent, says

HEAVY = {
    "asyncio",
    "click",
    "cryptography",
    "dataclasses",
    "inspect",
    "logging",
    "msgspec",
    "rich",
    "rich_click",
    "subprocess",
    "urllib3",
    "websockets",
}
_REPORT = "import sys; from bcd.cli import main; main(sys.argv[1:]); print(*sorted(sys.modules), file=sys.stderr)"


def loaded(run: Runner, *args: str) -> set[str]:
    """The top-level modules that `bcd` has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _REPORT, *args], check=True, capture_output=True, text=True, env=run.environ()
    )
    assert done.stdout
    return {module.partition(".")[0] for module in done.stderr.split()}


@pytest.mark.parametrize("options", [[], ["--json"], ["--color", "always"]], ids=str)
def test_the_state_loads_nothing_heavy(options: list[str], run: Runner, node: Node) -> None:
    modules = loaded(run, "update", *options, "--config", str(node.config))
    assert "bcd" in modules
    assert modules & HEAVY == set()


def test_nor_does_it_where_there_is_most_to_say(run: Runner, node: Node) -> None:
    """A pending update, a broken record and an agent at a download."""
    node.write_pending()
    node.update_json.write_text("{")
    with agent(node, says(DOWNLOADING)):
        assert loaded(run, "update", "--config", str(node.config)) & HEAVY == set()


def test_nor_does_a_configuration_that_is_refused(run: Runner, node: Node) -> None:
    node.config.write_text(json.dumps("no toml"))
    done = subprocess.run(
        [sys.executable, "-S", "-c", _REPORT, "update", "--config", str(node.config)],
        check=True,
        capture_output=True,
        text=True,
        env=run.environ(),
    )
    assert "(bad-config)" in done.stderr
    assert {module.partition(".")[0] for module in done.stderr.split()} & HEAVY == set()


def test_the_version_loads_nothing_heavy(run: Runner) -> None:
    assert loaded(run, "version") & HEAVY == set()
