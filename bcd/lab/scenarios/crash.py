"""Power cuts: the process dies (SIGKILL) right after each durable step, and the next start makes the best of it.

What SIGKILL cannot show is a cache that never reached the disk; that is for tests on a block device.
"""

from bcd.lab import verify
from bcd.lab.behaviour import WELCOME
from bcd.lab.scenario import Scenario, Stage

_HOUR_SECONDS = 3600
_NULS = bytes(512)


def _cut_and_confirmed(*steps: str) -> Scenario:
    """A scenario in which power fails at each of `steps`, one after the other, and 1.4.1 is confirmed all the same."""

    def play(stage: Stage) -> str:
        stage.start()
        release = stage.publish("1.4.1")
        stage.say(f"power fails at {', '.join(steps)}")
        stage.node.cut_power_at(*steps)
        command = stage.node.command(release)
        stage.node.wait_cut()
        stage.say("on again")
        verify.answered_once(stage, command, "SUCCEEDED")
        verify.confirmed(stage, release, slot="bcd-b")
        stage.check("restarts", len(steps), stage.node.restarts)
        stage.check("runs of the rollback script", 0, stage.node.supervisor.rollbacks)
        verify.downloaded(stage, release, times=2 if steps == ("download-started",) else 1)
        return "on again, 1.4.1 confirmed"

    title, proves = CUTS[steps]
    return Scenario(name=f"cut-at-{steps[0]}", title=title, proves=proves, play=play)


CUTS = {
    ("download-started",): ("cut while downloading", "The download goes on where it was."),
    ("downloaded",): ("cut after the download", "What was fetched is not fetched again."),
    ("adopt-slot-written", "adopt-current-linked", "adopted"): (
        "cut thrice in first adoption",
        "The installed binary becomes slot a, whatever cuts in.",
    ),
    ("staged",): ("cut after staging", "Nothing was switched: the old binary runs, and it is tried again."),
    ("recorded",): ("cut before the switch", "A binary that provably never ran has not failed."),
    ("previous-linked",): ("cut between the two links", "`current` names a whole slot at every instant."),
    ("current-linked",): ("cut after the switch", "The next start is the new binary's."),
    ("launched",): ("cut in the new binary", "One crash is no crash loop."),
    ("floor-raised",): ("cut in the confirm", "A confirm that was begun is finished."),
    ("confirmed",): ("cut after the confirm", "The answer is still given."),
}


ROLLBACK_CUTS = ("rollback-marked", "rollback-linked", "failure-recorded")


def cut_in_rollback(stage: Stage) -> str:
    """Power fails at each step of a rollback."""
    stage.start()
    release = stage.publish("1.4.1")
    command = stage.node.command_until_launched(release)
    stage.node.power_off()
    stage.node.root.age_pending(_HOUR_SECONDS)
    stage.say(f"power fails at {', '.join(ROLLBACK_CUTS)}")
    stage.node.cut_power_at(*ROLLBACK_CUTS)
    stage.node.start()
    stage.node.wait_cut()
    stage.say("on again")
    verify.answered_once(stage, command, "FAILED")
    verify.rolled_back(stage, release, "was not welcomed by a gateway before its deadline")
    return "on again, back on 1.4.0"


def torn_update_record(stage: Stage) -> str:
    """The disk gives back NUL bytes where the floor was."""
    stage.start()
    release, older = stage.publish("1.4.1"), stage.publish("1.4.0")
    stage.say("a section names 1.4.1")
    stage.node.push(release)
    verify.confirmed(stage, release, slot="bcd-b")
    stage.say("update.json is lost")
    stage.node.power_off()
    record = stage.node.root.records / "update.json"
    record.write_bytes(_NULS)
    stage.node.start()
    stage.node.wait_welcome("1.4.1")
    generation = stage.node.push(older)
    verify.section_failed(stage, generation, "below-floor")
    aside = sorted(stage.node.root.records.glob("update.json.corrupt-*"))
    stage.check("records moved aside", 1, len(aside))
    stage.check("what was moved aside", [_NULS], [path.read_bytes() for path in aside])
    return "moved aside, the floor holds"


def torn_pending_record(stage: Stage) -> str:
    """The disk gives back NUL bytes where the pending update was."""
    stage.start()
    release, after = stage.publish("1.4.1"), stage.publish("1.4.2")
    command = stage.node.command_until_launched(release)
    stage.say("upgrade.json is lost")
    stage.node.power_off()
    record = stage.node.root.records / "upgrade.json"
    record.write_bytes(_NULS)
    stage.node.start()
    stage.node.wait_hello("1.4.1")
    aside = sorted(stage.node.root.records.glob("upgrade.json.corrupt-*"))
    stage.check("records moved aside", 1, len(aside))
    stage.check("failed versions", {}, stage.node.root.failed())
    stage.node.behave(WELCOME, to=release)
    verify.answered_once(stage, command, "SUCCEEDED")
    stage.say("a section names 1.4.2")
    generation = stage.node.push(after)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, after, slot="bcd-a")
    return "moved aside, 1.4.2 confirmed"


SCENARIOS = (
    *(_cut_and_confirmed(*steps) for steps in CUTS),
    Scenario(
        name="cut-in-rollback",
        title="cut thrice in a rollback",
        proves="A rollback that was begun is finished, and told once.",
        play=cut_in_rollback,
    ),
    Scenario(
        name="torn-update-record",
        title="update.json comes back empty",
        proves="A lost floor is no open door: the other evidence holds.",
        play=torn_update_record,
    ),
    Scenario(
        name="torn-pending-record",
        title="upgrade.json comes back empty",
        proves="What cannot be read is moved aside, never guessed at.",
        play=torn_pending_record,
    ),
)
