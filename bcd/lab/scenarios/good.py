"""Updates that work: by section, by command, in a row, and over hindrances that are no verdict on the release."""

from bcd.lab import verify
from bcd.lab.behaviour import CUT, WELCOME, busy
from bcd.lab.labnode import status_of
from bcd.lab.scenario import Scenario, Stage

_BUSY_SECONDS = 8.0
_QUIET_SECONDS = 1.5
"""How long nothing must come where nothing is to come any more."""


def by_section(stage: Stage) -> str:
    """The plain case."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("a section names 1.4.1")
    generation = stage.node.push(release)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, release, slot="bcd-b")
    verify.downloaded(stage, release)
    stage.check("starts", 1, stage.node.supervisor.starts)
    said = status_of(stage.node)
    told = {key: said.get(key) for key in ("version", "floor", "links", "pending", "failed")}
    links = {"current": "b", "previous": "a"}
    shown = {"version": "1.4.1", "floor": 15, "links": links, "pending": None, "failed": []}
    stage.check("`bcd update --json`", shown, told)
    return "1.4.1 confirmed, floor 15"


def by_command(stage: Stage) -> str:
    """The old process takes the command, the new one answers it."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("a command asks for 1.4.1")
    command = stage.node.command(release)
    verify.answered_once(stage, command, "SUCCEEDED")
    verify.confirmed(stage, release, slot="bcd-b")
    page = stage.node.page()
    answered_by = {
        page.sessions[frame.session].version
        for frame in page.frames
        if frame.body.get("id") == command and frame.body.get("state") == "SUCCEEDED"
    }
    stage.check("versions that answered", {"1.4.1"}, answered_by)
    return "1.4.1 confirmed, SUCCEEDED"


def two_in_a_row(stage: Stage) -> str:
    """The slots take turns."""
    stage.start()
    first, second = stage.publish("1.4.1"), stage.publish("1.4.2")
    stage.say("a section names 1.4.1")
    stage.node.push(first)
    verify.confirmed(stage, first, slot="bcd-b")
    stage.say("a section names 1.4.2")
    generation = stage.node.push(second)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, second, slot="bcd-a")
    stage.check("previous", "bcd-b", stage.node.root.link("previous"))
    return "1.4.2 in slot a, floor 16"


def already_runs(stage: Stage) -> str:
    """A target that is met is nothing to do."""
    stage.start()
    release = stage.publish("1.4.0")
    stage.say("section and command name 1.4.0")
    generation = stage.node.push(release)
    stage.node.wait_section(generation, "READY")
    verify.answered_once(stage, stage.node.command(release), "SUCCEEDED")
    verify.downloaded(stage, release, times=0)
    verify.untouched(stage)
    return "nothing to do, SUCCEEDED"


def command_twice(stage: Stage) -> str:
    """The network delivers a command twice, and again when it has long ended."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("a command comes twice")
    command = stage.node.command(release)
    stage.node.repeat(command)
    stage.node.wait_answer(command)
    verify.confirmed(stage, release, slot="bcd-b")
    before = len(stage.node.page().answers(command))
    stage.say("and once more")
    stage.node.repeat(command)
    stage.node.wait(
        lambda page: len(page.answers(command)) > before, "the same answer again", lambda page: page.answers(command)
    )
    answers = stage.node.page().answers(command)
    stage.check("different answers", 1, len({str(sorted(answer.items())) for answer in answers}))
    verify.downloaded(stage, release)
    swaps = [event for event in stage.node.root.events() if event.get("event") == "swapped"]
    stage.check("swaps", 1, len(swaps))
    return "one update, the same answer"


def answer_lost(stage: Stage) -> str:
    """The gateway loses the command's end before it kept it, and does not ask again: the node tells it by itself."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.node.set_memory(acks=False, replays=False)
    stage.say("the gateway acks nothing")
    command = stage.node.command(release)
    stage.node.wait_answer(command)
    stage.node.set_memory(acks=True, replays=False)
    stage.say("the session breaks")
    stage.node.drop_session()
    stage.node.wait(
        lambda page: len({frame.session for frame in page.frames if _answers(frame.body, command)}) > 1,
        "the answer again in the next session",
        lambda page: page.answers(command),
    )
    before = len(stage.node.page().answers(command))
    stage.say("acked; the session breaks again")
    sessions = len(stage.node.page().sessions)
    stage.node.drop_session()
    stage.node.wait(
        lambda page: len(page.sessions) > sessions and page.welcomed() is not None,
        "another session",
        lambda page: page.versions(),
    )
    stage.node.pause(_QUIET_SECONDS)
    answers = stage.node.page().answers(command)
    stage.check("answers after the ack", before, len(answers))
    stage.check("ends", {"SUCCEEDED"}, {str(answer.get("state")) for answer in answers})
    verify.confirmed(stage, release, slot="bcd-b")
    return "answered until it was acked"


def busy_gateway(stage: Stage) -> str:
    """The new binary comes to a gateway that has no time for it."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("1.4.1 comes, the gateway is busy")
    stage.node.behave(busy(429))
    command = stage.node.command(release)
    stage.node.wait(lambda page: page.turned_away > 0, "a try", lambda page: page.turned_away)
    stage.say("429 Too Many Requests", seconds=_BUSY_SECONDS)
    stage.node.pause(_BUSY_SECONDS)
    stage.check_that("tries", "at least 2", holds=stage.node.page().turned_away > 1, seen=stage.node.page().turned_away)
    stage.check("failed versions meanwhile", {}, stage.node.root.failed())
    stage.node.behave(WELCOME)
    verify.answered_once(stage, command, "SUCCEEDED")
    verify.confirmed(stage, release, slot="bcd-b")
    return f"{stage.node.page().turned_away + 1} tries, 1.4.1 confirmed"


def network_late(stage: Stage) -> str:
    """The network needs longer than the new binary to be there."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("1.4.1 comes, the network is down")
    stage.node.behave(CUT)
    stage.node.push(release)
    stage.node.wait(lambda page: page.turned_away > 0, "a try", lambda page: page.turned_away)
    stage.say("no connection holds", seconds=_BUSY_SECONDS)
    stage.node.pause(_BUSY_SECONDS)
    stage.node.behave(WELCOME)
    verify.confirmed(stage, release, slot="bcd-b")
    return "waited, 1.4.1 confirmed"


def installed_by_hand(stage: Stage) -> str:
    """Between two updates an operator installs a version with an install script."""
    stage.start()
    first, third = stage.publish("1.4.1"), stage.publish("1.4.3")
    stage.say("a section names 1.4.1")
    stage.node.push(first)
    verify.confirmed(stage, first, slot="bcd-b")
    stage.say("an operator installs 1.4.2")
    by_hand = stage.world.publisher.binary("1.4.2", 16)
    stage.node.stop()
    stage.node.root.install(by_hand)
    stage.node.start()
    stage.node.wait_welcome("1.4.2")
    stage.say("a section names 1.4.3")
    generation = stage.node.push(third)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, third, slot="bcd-a")
    stage.check("previous", "bcd-b", stage.node.root.link("previous"))
    stage.check("slot b's version", "1.4.2", (stage.node.root.slots_record().get("b") or {}).get("version"))
    stage.check("slot b holds what was installed", by_hand, (stage.node.root.slots / "bcd-b").read_bytes())
    return "1.4.3 confirmed, 1.4.2 at hand"


def _answers(body: dict[str, object], command: str) -> bool:
    return body.get("type") == "command_status" and body.get("id") == command and body.get("state") == "SUCCEEDED"


SCENARIOS = (
    Scenario(
        name="by-section",
        title="a section names 1.4.1",
        proves="It is fetched, checked, swapped in and welcomed; only then the floor rises.",
        play=by_section,
    ),
    Scenario(
        name="by-command",
        title="a command asks for 1.4.1",
        proves="The new binary answers what the old one was told.",
        play=by_command,
    ),
    Scenario(
        name="two-in-a-row",
        title="1.4.1, then 1.4.2",
        proves="The slots take turns; what ran before stays at hand.",
        play=two_in_a_row,
    ),
    Scenario(
        name="already-runs",
        title="the running version is named",
        proves="A target that is met plans nothing, and its command succeeds at once.",
        play=already_runs,
    ),
    Scenario(
        name="command-twice",
        title="a command comes three times",
        proves="It runs once and gets the same answer each time.",
        play=command_twice,
    ),
    Scenario(
        name="answer-lost",
        title="the answer gets lost",
        proves="A command's end is told until the gateway has kept it, and not any more then.",
        play=answer_lost,
    ),
    Scenario(
        name="busy-gateway",
        title="the gateway is busy (429)",
        proves="A busy gateway is no verdict on the release: the new binary keeps trying.",
        play=busy_gateway,
        waits_seconds=_BUSY_SECONDS,
    ),
    Scenario(
        name="network-late",
        title="the network comes late",
        proves="Neither is a network that is not there yet.",
        play=network_late,
        waits_seconds=_BUSY_SECONDS,
    ),
    Scenario(
        name="installed-by-hand",
        title="1.4.2 is installed by hand",
        proves="What an operator installed is never replaced by an older slot.",
        play=installed_by_hand,
    ),
)
