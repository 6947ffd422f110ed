"""Downloads that go wrong: none of it is held against the release, and nothing is switched until the file is right."""

from collections.abc import Callable

from bcd.lab import verify
from bcd.lab.releases import Recipe, Release
from bcd.lab.scenario import Scenario, Stage
from bcd.lab.spoiling import SOUND, Spoiling

_CUT_BYTES = 100_000
_STALL_BYTES = 40_000
_IDLE_SECONDS = 30.0
"""The window in which a transfer has to move (spec/self-update.md section 11)."""


def cut(stage: Stage) -> str:
    """The connection breaks once."""
    return _resumed(stage, Spoiling(cut_after=_CUT_BYTES, answers=1), _CUT_BYTES)


def stalled(stage: Stage) -> str:
    """The server falls silent in the middle, with the connection open."""
    return _resumed(stage, Spoiling(stall_after=_STALL_BYTES, answers=1), _STALL_BYTES)


def _resumed(stage: Stage, spoiling: Spoiling, at_most: int) -> str:
    stage.start()
    release = stage.publish("1.4.1", Recipe(spoiling=spoiling))
    if spoiling.stall_after is None:
        stage.say("the download breaks in the middle")
    else:
        stage.say("the server is silent", seconds=_IDLE_SECONDS)
    generation = stage.node.push(release)
    stage.node.wait_section(generation, "READY", _IDLE_SECONDS + 40.0)
    verify.confirmed(stage, release, slot="bcd-b")
    verify.downloaded(stage, release, times=2)
    first, second = stage.node.downloads(release)[-2:]
    stage.check("the first request's range", None, first.range)
    stage.check("the second answer's status", 206, second.status)
    kept = len(release.body) - second.sent
    stage.check_that("bytes kept of the first", f"1 to {at_most}", holds=0 < kept <= at_most, seen=kept)
    stage.check("the second request's range", f"bytes={kept}-", second.range)
    return f"resumed at {kept // 1000} kB, confirmed"


def too_long(stage: Stage) -> str:
    """The server sends a byte more than was signed."""
    return _retried(stage, Recipe(spoiling=Spoiling(surplus=b"\n")), _mend)


def wrong_bytes(stage: Stage) -> str:
    """The server sends as many bytes as were signed, but others."""
    return _retried(stage, Recipe(wrong_bytes=True), _put_right)


def unavailable(stage: Stage) -> str:
    """The server answers with an error."""
    return _retried(stage, Recipe(spoiling=Spoiling(status=503)), _mend)


def _retried(stage: Stage, recipe: Recipe, mend: Callable[[Stage, Release], None]) -> str:
    stage.start()
    release = stage.publish("1.4.1", recipe)
    stage.say("the download is wrong")
    generation = stage.node.push(release)
    status = stage.node.wait_trouble("download-failed")
    stage.check("the section meanwhile", "PROGRESSING", status.get("state"))
    observed = status.get("observed_generation", 0)
    stage.check_that("its generation", f"below {generation}", holds=observed < generation, seen=observed)
    stage.node.wait_root(
        lambda _: len(stage.node.downloads(release)) > 1,
        "a second try",
        lambda _: f"{len(stage.node.downloads(release))} requests",
    )
    verify.untouched(stage)
    stage.say("the server is mended")
    mend(stage, release)
    stage.node.wait_section(generation, "READY")
    verify.confirmed(stage, release, slot="bcd-b")
    return f"{len(stage.node.downloads(release))} tries, 1.4.1 confirmed"


def _mend(stage: Stage, release: Release) -> None:
    stage.world.server.spoil(release.path, SOUND)


def _put_right(stage: Stage, release: Release) -> None:
    stage.world.server.publish(release.path, release.body)


SCENARIOS = (
    Scenario(
        name="cut",
        title="the download is cut",
        proves="The next try asks for the rest alone.",
        play=cut,
    ),
    Scenario(
        name="stalled",
        title="the download stalls",
        proves="A transfer that moves too little in 30 s is ended and resumed.",
        play=stalled,
        waits_seconds=_IDLE_SECONDS,
    ),
    Scenario(
        name="too-long",
        title="the file is a byte too long",
        proves="Not a byte more than was signed is taken; it is tried again.",
        play=too_long,
    ),
    Scenario(
        name="wrong-bytes",
        title="the file has other bytes",
        proves="Only the digest that was signed passes, and nothing of a wrong file is kept.",
        play=wrong_bytes,
    ),
    Scenario(
        name="unavailable",
        title="the server answers 503",
        proves="A server's trouble is no verdict on the release.",
        play=unavailable,
    ),
)
