"""Releases that are refused: by a code of its own each, before anything is switched, mostly before a byte is fetched."""

import os

from bcd.core.build import this_platform
from bcd.lab import verify
from bcd.lab.packing import PROGRAM_OF_ANOTHER_MACHINE
from bcd.lab.releases import Recipe
from bcd.lab.scenario import Scenario, Stage

_DAY_SECONDS = 24 * 60 * 60


def _refused(stage: Stage, recipe: Recipe, code: str, version: str = "1.4.1") -> str:
    """A release that is bad in the way of `recipe` is refused with `code`, without a download."""
    stage.start()
    release = stage.publish(version, recipe)
    stage.say(f"a section names {version}")
    generation = stage.node.push(release)
    verify.section_failed(stage, generation, code)
    verify.answered_once(stage, stage.node.command(release), "FAILED", code=code)
    verify.downloaded(stage, release, times=0)
    verify.untouched(stage)
    return f"refused: {code}"


def signed_by_one(stage: Stage) -> str:
    """One of the two signatures that are needed."""
    return _refused(stage, Recipe(signers=(0,)), "manifest-signatures")


def signed_twice_by_one(stage: Stage) -> str:
    """Two signatures, by one key."""
    return _refused(stage, Recipe(signers=(1, 1)), "manifest-signatures")


def signed_by_strangers(stage: Stage) -> str:
    """Whoever has the control plane can list and use keys of his own."""
    return _refused(stage, Recipe(strangers=True), "manifest-signatures")


def expired(stage: Stage) -> str:
    """A release of old."""
    return _refused(stage, Recipe(expires_in=-_DAY_SECONDS), "expired")


def expired_by_gateway(stage: Stage) -> str:
    """This machine's clock is behind; the gateway's knows better."""
    stage.node.set_gateway_clock(ahead_seconds=2 * _DAY_SECONDS)
    return _refused(stage, Recipe(expires_in=_DAY_SECONDS), "expired")


def no_pins(stage: Stage) -> str:
    """A node that trusts nobody."""
    return _refused(stage, Recipe(), "no-pins")


def below_floor(stage: Stage) -> str:
    """An older release, signed as it should be."""
    return _refused(stage, Recipe(), "below-floor", version="1.3.9")


def going_back(stage: Stage) -> str:
    """Back to what ran before, whose binary still lies in the other slot."""
    stage.start()
    before, after = stage.publish("1.4.0"), stage.publish("1.4.1")
    stage.say("a section names 1.4.1")
    stage.node.push(after)
    verify.confirmed(stage, after, slot="bcd-b")
    stage.say("a section names 1.4.0 again")
    generation = stage.node.push(before)
    verify.section_failed(stage, generation, "below-floor")
    verify.answered_once(stage, stage.node.command(before), "FAILED", code="below-floor")
    verify.downloaded(stage, before, times=0)
    verify.confirmed(stage, after, slot="bcd-b")
    return "refused: below-floor"


def not_meant_for_it(stage: Stage) -> str:
    """Signed as it should be, but not what the section says, or not for this machine."""
    other_platform = "linux-arm64" if this_platform() != "linux-arm64" else "linux-amd64"
    cases = (
        ("wrong-product", Recipe(product="bcd-helper")),
        ("version-mismatch", Recipe(manifest_version="1.4.2")),
        ("no-artifact", Recipe(platform=other_platform)),
        ("digest-mismatch", Recipe(section_digest="0" * 64)),
    )
    stage.start()
    for code, recipe in cases:
        stage.say(code)
        release = stage.publish("1.4.1", recipe)
        generation = stage.node.push(release)
        verify.section_failed(stage, generation, code)
        verify.downloaded(stage, release, times=0)
    verify.untouched(stage)
    return f"all {len(cases)} refused"


def changed_section(stage: Stage) -> str:
    """A refused section comes again, then put right."""
    stage.start()
    wrong = stage.publish("1.4.1", Recipe(signers=(2,)))
    stage.say("a section that is refused, three times")
    for _ in range(3):
        generation = stage.node.push(wrong)
        verify.section_failed(stage, generation, "manifest-signatures")
    refusals = [event for event in stage.node.root.events() if event.get("event") == "refused"]
    stage.check("refusals in the history", 1, len(refusals))
    stage.check("lines in the log", 1, _log(stage).count("1.4.1 is refused"))
    right = stage.publish("1.4.1")
    stage.say("the section is put right")
    generation = stage.node.push(right)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, right, slot="bcd-b")
    return "refused once, then confirmed"


def password_in_url(stage: Stage) -> str:
    """A URL with credentials in it ends up in logs."""
    stage.start()
    release = stage.publish("1.4.1")
    section = release.section | {"url": release.section["url"].replace("https://", "https://user:secret@")}
    stage.say("a section with a password in its URL")
    generation = stage.world.gateway.push_section(stage.node.name, section)
    status = verify.section_failed(stage, generation, "bad-url")
    stage.check_that("the message", "without the password", holds="secret" not in str(status), seen=status)
    stage.check_that("the log", "without the password", holds="secret" not in _log(stage), seen="the password")
    verify.downloaded(stage, release, times=0)
    verify.untouched(stage)
    return "refused: bad-url, not shown"


def foreign_entrypoint(stage: Stage) -> str:
    """The entrypoint is somebody's link to somewhere else."""
    entrypoint = stage.node.root.entrypoint
    elsewhere = stage.node.root.home / "opt-bcd"
    os.rename(entrypoint, elsewhere)
    entrypoint.symlink_to(elsewhere)
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("a section names 1.4.1")
    generation = stage.node.push(release)
    verify.section_failed(stage, generation, "unsafe-entrypoint")
    verify.downloaded(stage, release, times=0)
    stage.check("the entrypoint", str(elsewhere), os.readlink(entrypoint))
    stage.check("current", None, stage.node.root.link("current"))
    return "refused: unsafe-entrypoint"


def wrong_machine(stage: Stage) -> str:
    """Named for this machine and signed so, but made for another: only the file itself tells."""
    stage.start()
    release = stage.publish("1.4.1", Recipe(file=PROGRAM_OF_ANOTHER_MACHINE))
    stage.say("a section names 1.4.1")
    generation = stage.node.push(release)
    verify.section_failed(stage, generation, "wrong-platform-binary")
    stage.node.wait_welcome("1.4.0")
    stage.check("upgrade.json", None, stage.node.root.pending())
    stage.check_that(
        "current", "bcd-a or none", holds=stage.node.root.link("current") in {None, "bcd-a"}, seen="another"
    )
    stage.check("starts", 1, stage.node.supervisor.starts)
    return "refused: wrong-platform-binary"


def simulated(stage: Stage) -> str:
    """A node that is only simulated has no binary to replace."""
    stage.start()
    release = stage.publish("1.4.1")
    stage.say("section and command name 1.4.1")
    status = stage.node.wait_section(stage.node.push(release), "UNSUPPORTED")
    stage.check("section status: reason", "SectionUnsupported", status.get("reason"))
    verify.answered_once(stage, stage.node.command(release), "UNSUPPORTED")
    verify.downloaded(stage, release, times=0)
    verify.untouched(stage)
    return "UNSUPPORTED, both"


def _log(stage: Stage) -> str:
    return stage.node.root.log.read_text(encoding="utf-8", errors="replace")


SCENARIOS = (
    Scenario(
        name="signed-by-one",
        title="one signature instead of two",
        proves="A stolen release key is not enough.",
        play=signed_by_one,
    ),
    Scenario(
        name="signed-twice-by-one",
        title="one key signs twice",
        proves="A key counts once, however often it signs.",
        play=signed_twice_by_one,
    ),
    Scenario(
        name="signed-by-strangers",
        title="signed by strangers",
        proves="Only keys that the node pins count, whatever the manifest lists.",
        play=signed_by_strangers,
    ),
    Scenario(
        name="expired",
        title="the release has expired",
        proves="An old manifest is worth nothing.",
        play=expired,
    ),
    Scenario(
        name="expired-by-gateway",
        title="expired by the gateway's time",
        proves="A node's clock that is behind brings no expired release back to life.",
        play=expired_by_gateway,
    ),
    Scenario(
        name="below-floor",
        title="1.3.9, older than what runs",
        proves="Nothing below the floor is taken, however well it is signed.",
        play=below_floor,
    ),
    Scenario(
        name="going-back",
        title="back to 1.4.0 after 1.4.1",
        proves="A confirmed node never goes back, not even to the binary that it still has.",
        play=going_back,
    ),
    Scenario(
        name="not-meant-for-it",
        title="signed, but something else",
        proves="Product, version, platform and digest have to be what was asked for.",
        play=not_meant_for_it,
    ),
    Scenario(
        name="changed-section",
        title="refused, then put right",
        proves="The same section gets its answer from memory; a changed one is tried at once.",
        play=changed_section,
    ),
    Scenario(
        name="password-in-url",
        title="a password in the URL",
        proves="It is refused, and neither told nor logged.",
        play=password_in_url,
    ),
    Scenario(
        name="no-pins",
        title="a node without pins",
        proves="Who trusts no key takes no release.",
        play=no_pins,
        pins=False,
    ),
    Scenario(
        name="foreign-entrypoint",
        title="entrypoint links elsewhere",
        proves="A link that is not ours is never replaced.",
        play=foreign_entrypoint,
    ),
    Scenario(
        name="wrong-machine",
        title="a program for another machine",
        proves="The file's own header is looked at before it is switched to.",
        play=wrong_machine,
    ),
    Scenario(
        name="simulated",
        title="a simulated node (bcd sim)",
        proves="The roles without self-update say that they have none.",
        play=simulated,
        role="sim",
    ),
)
