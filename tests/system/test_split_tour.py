"""The lab runs split: real nodes under a user that nobody is, real helpers of root's, and scenarios of every kind."""

import io
import os

import pytest

from bcd.core.exits import ExitStatus
from bcd.lab.tour.tour import run_tour

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

CHOSEN = (
    "by-command",
    "signed-by-one",
    "cut",
    "exits-at-once",
    "tried-again",
    "cut-at-current-linked",
    "cut-in-rollback",
    "helper-*",
    "node-never-execs",
    "asked-by-the-node",
)


def test_chosen_scenarios_end_as_the_rules_say_with_a_helper_between() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    status = run_tour(directory=None, only=CHOSEN, split=True, color=False, terminal=False, out=out, err=out)
    out.seek(0)
    assert status is ExitStatus.OK, out.read()
