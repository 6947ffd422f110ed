"""Releases that are well signed and no good: each is rolled back, and never tried again until a person says so."""

from bcd.lab import verify
from bcd.lab.behaviour import SILENT, WELCOME, refuse
from bcd.lab.packing import EXITS_AT_ONCE, NOT_A_PROGRAM
from bcd.lab.releases import Recipe, Release
from bcd.lab.scenario import Scenario, Stage
from bcd.lab.world import INSTALLED_VERSION

_DEADLINE_SECONDS = 120.0
_HOUR_SECONDS = 3600


def never_welcomed(stage: Stage) -> str:
    """The gateway takes the new binary's connection and says nothing."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.node.behave(SILENT, to=release)
    command = stage.node.command(release)
    ended = _past_the_deadline(stage, release, "was not welcomed by a gateway before its deadline")
    verify.answered_once(stage, command, "FAILED")
    return ended


def turned_away(stage: Stage) -> str:
    """The gateway answers the new binary, but with a no."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.node.behave(refuse("1.4.1 speaks no dialect of mine"), to=release)
    generation = stage.node.push(release)
    ended = _past_the_deadline(stage, release, "refused", "1.4.1 speaks no dialect of mine")
    status = verify.section_failed(stage, generation, "failed-version")
    told = "1.4.1 speaks no dialect of mine" in str(status.get("message"))
    stage.check_that("the section's message", "what the gateway said", holds=told, seen=status)
    return ended


def _past_the_deadline(stage: Stage, release: Release, *reason: str) -> str:
    node = stage.node
    node.wait_hello(release.version)
    stage.say("waits for a welcome in vain", seconds=_DEADLINE_SECONDS)
    node.wait_welcome(INSTALLED_VERSION, _DEADLINE_SECONDS + 30.0)
    verify.rolled_back(stage, release, *reason)
    waited = _waited(stage, release)
    stage.check_that(
        "from swap to rollback", "120 s and at most 10 more", holds=119.0 <= waited <= 130.0, seen=f"{waited:.1f} s"
    )
    stage.check("starts", 1, node.supervisor.starts)
    return f"back on 1.4.0 after {waited:.0f} s"


def _waited(stage: Stage, release: Release) -> float:
    """Seconds from the end of the old binary's session, which the swap ends, to its next hello."""
    sessions = stage.node.page().sessions
    began = next(index for index, session in enumerate(sessions) if session.version == release.version)
    ended = next(session for session in sessions[began:] if session.version != release.version)
    return ended.opened_at - (sessions[began - 1].closed_at or 0.0)


def exits_at_once(stage: Stage) -> str:
    """The new binary ends before any of its code runs, again and again."""
    stage.start()
    release = stage.publish("1.4.1", Recipe(program=EXITS_AT_ONCE))
    command = stage.node.command(release)
    stage.say("1.4.1 crashes at every start")
    verify.answered_once(stage, command, "FAILED")
    verify.rolled_back(stage, release, "did not run")
    supervisor = stage.node.supervisor
    stage.check("runs of the rollback script", 1, supervisor.rollbacks)
    stage.check("starts: 5 in the window, and one after the rollback", 6, supervisor.starts)
    return "5 starts, then back on 1.4.0"


def not_a_program(stage: Stage) -> str:
    """The kernel refuses the new file: there is not even a process to crash."""
    stage.start()
    release = stage.publish("1.4.1", Recipe(file=NOT_A_PROGRAM))
    command = stage.node.command(release)
    stage.say("1.4.1 cannot be executed")
    verify.answered_once(stage, command, "FAILED")
    verify.rolled_back(stage, release, "could not be started")
    stage.check("runs of the rollback script", 0, stage.node.supervisor.rollbacks)
    stage.check("starts", 1, stage.node.supervisor.starts)
    return "back on 1.4.0 at once"


def off_for_an_hour(stage: Stage) -> str:
    """The machine goes off while the update is pending, and on again long after its deadline."""
    stage.start()
    release = stage.publish("1.4.1")
    command = stage.node.command_until_launched(release)
    stage.say("off for an hour")
    stage.node.power_off()
    stage.node.root.age_pending(_HOUR_SECONDS)
    stage.node.start()
    verify.answered_once(stage, command, "FAILED")
    verify.rolled_back(stage, release, "was not welcomed by a gateway before its deadline")
    return "on again: back on 1.4.0"


def tried_again(stage: Stage) -> str:
    """A version that failed is named again, before and after a person cleared it."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.node.command_until_launched(release)
    stage.say("1.4.1 fails")
    stage.node.power_off()
    stage.node.root.age_pending(_HOUR_SECONDS)
    stage.node.start()
    verify.rolled_back(stage, release)
    stage.node.behave(WELCOME, to=release)
    stage.say("a section names 1.4.1 again")
    generation = stage.node.push(release)
    verify.section_failed(stage, generation, "failed-version")
    verify.rolled_back(stage, release)
    stage.say("bcd update --clear-failed")
    cleared = stage.node.run("update", "--clear-failed")
    stage.check("--clear-failed: exit status", 0, cleared.returncode)
    stage.check("failed versions", {}, stage.node.root.failed())
    generation = stage.node.push(release)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, release, slot="bcd-b")
    verify.downloaded(stage, release)
    return "refused, cleared, confirmed"


SCENARIOS = (
    Scenario(
        name="never-welcomed",
        title="1.4.1 is never welcomed",
        proves="Without a welcome within 120 s it is swapped back.",
        play=never_welcomed,
        waits_seconds=_DEADLINE_SECONDS,
    ),
    Scenario(
        name="turned-away",
        title="the gateway refuses 1.4.1",
        proves="A refusal is no welcome, and the reason says what the gateway said.",
        play=turned_away,
        waits_seconds=_DEADLINE_SECONDS,
    ),
    Scenario(
        name="exits-at-once",
        title="1.4.1 exits at once",
        proves="At the start limit a script without Python swaps it back.",
        play=exits_at_once,
    ),
    Scenario(
        name="not-a-program",
        title="1.4.1 cannot be executed",
        proves="The old process swaps it back by itself.",
        play=not_a_program,
    ),
    Scenario(
        name="off-for-an-hour",
        title="switched off while pending",
        proves="The deadline counts while the machine is off.",
        play=off_for_an_hour,
    ),
    Scenario(
        name="tried-again",
        title="a failed version comes again",
        proves="It is refused until --clear-failed, then taken from its slot without a download.",
        play=tried_again,
    ),
)
