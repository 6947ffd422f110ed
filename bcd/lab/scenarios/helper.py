"""What only a node with a helper can meet: a helper that dies, is late or is gone, and a node that was taken over."""

import json
import os
import signal

from bcd.core.exits import ExitStatus
from bcd.lab import verify
from bcd.lab.behaviour import WELCOME
from bcd.lab.labnode import Unmet
from bcd.lab.releases import Release
from bcd.lab.scenario import Scenario, Stage
from bcd.lab.supervisor import Supervisor
from bcd.lab.world import INSTALLED_VERSION

_DEADLINE_SECONDS = 120.0
_LATEST_SECONDS = 180.0
"""The deadline, what the helper leaves to the node, and what it gives it to end."""
_BACKOFF_SECONDS = 30.0
"""What the node waits in all, after as many helpers that hung up."""
_SWAP_STEPS = ("staged", "recorded", "previous-linked", "current-linked")

_SWAP_AND_SETTLE = """
import json, socket, sys
path, section = sys.argv[1:]
client = socket.socket(socket.AF_UNIX)
client.connect(path)
answers = client.makefile()
for method, params in (("swap", {"spec": json.loads(section)}), ("settle", {})):
    client.sendall(json.dumps({"protocol": 1, "method": f"update.{method}", "params": params}).encode() + b"\\n")
    print(answers.readline(), end="")
"""


def killed_in_swap(stage: Stage) -> str:
    """The helper dies at every step of a swap, one after the other."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say(f"the helper dies at {', '.join(_SWAP_STEPS)}")
    stage.node.cut_power_at(*_SWAP_STEPS)
    command = stage.node.command(release)
    stage.node.wait_cut()
    verify.answered_once(stage, command, "SUCCEEDED")
    verify.confirmed(stage, release, slot="bcd-b")
    stage.check("starts of the helper", 1 + len(_SWAP_STEPS), _helper(stage).starts)
    stage.check("starts of the node", 1, stage.node.supervisor.starts)
    return "1.4.1 confirmed, the node ran on"


def late(stage: Stage) -> str:
    """The node starts, and the helper does not for a while."""
    stage.say("the node starts alone")
    stage.node.supervisor.start()
    stage.node.wait_welcome(INSTALLED_VERSION)
    release = stage.publish("1.4.1")
    generation = stage.node.push(release)
    status = stage.node.wait_trouble("io-error")
    stage.check("the section meanwhile", "PROGRESSING", status.get("state"))
    verify.downloaded(stage, release, times=0)
    stage.say("the helper comes")
    stage.node.start()
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, release, slot="bcd-b")
    stage.check("starts of the node", 1, stage.node.supervisor.starts)
    return "waited, 1.4.1 confirmed"


def restarted_while_pending(stage: Stage) -> str:
    """The helper is started anew while 1.4.1 waits for its welcome."""
    stage.start()
    release = stage.publish("1.4.1")
    command = stage.node.command_until_launched(release)
    stage.say("the helper is started anew")
    before = stage.node.root.pending()
    _helper(stage).kill()
    stage.node.wait_root(lambda _: _helper(stage).starts == 2, "a second start of the helper", lambda _: "one")
    stage.node.wait_helper()
    stage.check("upgrade.json", before, stage.node.root.pending())
    stage.node.behave(WELCOME, to=release)
    verify.answered_once(stage, command, "SUCCEEDED")
    verify.confirmed(stage, release, slot="bcd-b")
    stage.check("starts of the node", 1, stage.node.supervisor.starts)
    return "1.4.1 confirmed by the second"


def gone_at_deadline(stage: Stage) -> str:
    """1.4.1 is never welcomed, and when its deadline passes there is no helper to go back."""
    stage.start()
    release = stage.publish("1.4.1")
    command = stage.node.command_until_launched(release)
    _helper(stage).power_off()
    stage.say("no helper, no welcome", seconds=_DEADLINE_SECONDS)
    stage.node.pause(_DEADLINE_SECONDS + 1.0)
    stage.check("current meanwhile", "bcd-b", stage.node.root.link("current"))
    stage.say("the helper comes")
    _helper(stage).start()
    verify.answered_once(stage, command, "FAILED")
    verify.rolled_back(stage, release, "was not welcomed by a gateway before its deadline")
    return "back on 1.4.0 once it came"


def stopped(stage: Stage) -> str:
    """Whoever took 1.4.1 over stops it (SIGSTOP): it neither comes to a gateway nor goes back."""
    stage.start()
    release = stage.publish("1.4.1")
    command = stage.node.command_until_launched(release)
    pid = stage.node.supervisor.pid
    if pid is not None:
        os.kill(pid, signal.SIGSTOP)
    return _sent_back(stage, release, command)


def never_execs(stage: Stage) -> str:
    """Whoever took 1.4.0 over has 1.4.1 swapped in and settled by another process, and runs on."""
    stage.start()
    release = stage.publish("1.4.1")
    staging = stage.node.root.data / "staging"
    staging.mkdir(mode=0o700)
    staged = staging / f"bcd-{release.version}"
    staged.write_bytes(release.body)
    uid = stage.world.node_uid or 0
    for path in (staging, staged):
        os.chown(path, uid, uid)
    socket, section = str(stage.node.root.socket), json.dumps(release.section)
    asked = stage.world.runtime.run_as(uid, _SWAP_AND_SETTLE, socket, section, seconds=30)
    answers = [json.loads(line) for line in asked.stdout.splitlines()]
    if [answer.get("ok") for answer in answers] != [True, True]:
        raise Unmet("the helper's answers to swap and settle", "a pending record each", answers or asked.stderr)
    stage.check("current", "bcd-b", stage.node.root.link("current"))
    return _sent_back(stage, release, None)


def _sent_back(stage: Stage, release: Release, command: str | None) -> str:
    stage.say("the helper's own deadline", seconds=_DEADLINE_SECONDS)
    stage.node.wait_root(
        lambda _: stage.node.supervisor.starts == 2,
        "a second start of the node",
        lambda root: f"{stage.node.supervisor.starts} starts, current {root.link('current')}",
        _LATEST_SECONDS,
    )
    if command is not None:
        verify.answered_once(stage, command, "FAILED")
    verify.rolled_back(stage, release, "before its deadline")
    stage.check("starts of the helper", 1, _helper(stage).starts)
    return "swapped back and started anew"


def asked_by_the_node(stage: Stage) -> str:
    """The node's user asks bcd about its own node, and asks for what is not its to do."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.node.push(release)
    verify.confirmed(stage, release, slot="bcd-b")
    for as_node in (False, True):
        who = "the node's user" if as_node else "root"
        stage.say(f"{who} asks")
        said = stage.node.run("update", "--json", as_node=as_node)
        shown = json.loads(said.stdout) if said.returncode == 0 else {}
        stage.check(
            f"`bcd update` as {who}: version and floor", ("1.4.1", 15), (shown.get("version"), shown.get("floor"))
        )
        report = stage.node.run("doctor", as_node=as_node)
        stage.check_that(
            f"`bcd doctor` as {who}",
            "nothing to find",
            holds=report.returncode == 0,
            seen=report.stdout + report.stderr,
        )
    refused = stage.node.run("update", "--clear-failed", as_node=True)
    stage.check("--clear-failed as the node's user: exit status", int(ExitStatus.NOT_PERMITTED), refused.returncode)
    hint = f"sudo bcd update --clear-failed --config {stage.node.root.config}"
    stage.check_that("its hint", hint, holds=hint in refused.stderr, seen=refused.stderr)
    return "told all, allowed nothing"


def _helper(stage: Stage) -> Supervisor:
    if stage.node.helper is None:
        raise Unmet("the node", "a helper beside it", "none")
    return stage.node.helper


SCENARIOS = (
    Scenario(
        name="helper-killed-in-swap",
        title="the helper dies in the swap",
        proves="A swap that was begun is finished by the next helper; the node runs on.",
        play=killed_in_swap,
        waits_seconds=_BACKOFF_SECONDS,
    ),
    Scenario(
        name="helper-late",
        title="the helper comes late",
        proves="A node without its helper runs, and updates once it is there.",
        play=late,
    ),
    Scenario(
        name="helper-restarted",
        title="the helper anew while pending",
        proves="What is pending stays so, whichever helper confirms it.",
        play=restarted_while_pending,
    ),
    Scenario(
        name="helper-gone",
        title="no helper at the deadline",
        proves="The rollback is made up for as soon as there is one.",
        play=gone_at_deadline,
        waits_seconds=_DEADLINE_SECONDS,
    ),
    Scenario(
        name="node-stopped",
        title="1.4.1 is stopped (SIGSTOP)",
        proves="The helper keeps a deadline of its own, and ends the node that does not.",
        play=stopped,
        waits_seconds=_DEADLINE_SECONDS,
    ),
    Scenario(
        name="node-never-execs",
        title="1.4.0 swaps and runs on",
        proves="A node that was taken over gains a delay, and a failed version on record.",
        play=never_execs,
        waits_seconds=_DEADLINE_SECONDS,
    ),
    Scenario(
        name="asked-by-the-node",
        title="the node's user asks",
        proves="It may look at everything and change nothing.",
        play=asked_by_the_node,
    ),
)
