"""Plays scenarios side by side: those that only wait from the start, the others a few at a time.

What takes processor time is the start of nodes, about half a second each; so a handful at once keeps two cores busy,
and a minute's deadline costs nothing while it runs out.
"""

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from bcd.core.exits import ExitStatus
from bcd.lab.gateway import LabClosed
from bcd.lab.labnode import Unmet
from bcd.lab.scenario import Doing, Group, Mismatch, Scenario, Stage
from bcd.lab.signals import Ended
from bcd.lab.tour.board import Board
from bcd.lab.tour.result import Result
from bcd.lab.world import World

_LOG_LINES = 12
_MOST_AT_ONCE = 8


Events = queue.SimpleQueue[Result | ExitStatus | None]
"""What a run waits for: a result, the end of one of its threads (None), or a signal by its exit status."""


class Runner:
    """One run of a tour."""

    def __init__(self, world: World, groups: Sequence[Group], board: Board, events: Events) -> None:
        """`events` is where the run waits; an exit status put there from outside ends it."""
        self._world = world
        self._board = board
        scenarios = [scenario for group in groups for scenario in group.scenarios]
        self._waiting = sorted((one for one in scenarios if one.waits_seconds), key=lambda one: -one.waits_seconds)
        self._working: queue.SimpleQueue[Scenario] = queue.SimpleQueue()
        for scenario in scenarios:
            if not scenario.waits_seconds:
                self._working.put(scenario)
        self._events = events
        self._threads: list[threading.Thread] = []

    def run(self, finished: Callable[[Result], None]) -> None:
        """Play all of it; `finished` is called in this thread as each one ends.

        However it ends, halt the world then, and `join`.

        Raises:
            Ended: a signal asked to end.
        """
        at_once = min(2 * (os.cpu_count() or 1), _MOST_AT_ONCE)
        plays = [lambda scenario=scenario: self._play(scenario) for scenario in self._waiting]
        self._threads = [
            threading.Thread(target=self._until_done, args=(play,), daemon=True)
            for play in [*plays, *[self._work_off] * at_once]
        ]
        for thread in self._threads:
            thread.start()
        done = 0
        while done < len(self._threads):
            event = self._events.get()
            if isinstance(event, Result):
                finished(event)
            elif event is None:
                done += 1
            else:
                raise Ended(event)

    def join(self) -> None:
        """Wait for every thread to end, once the world is halted."""
        for thread in self._threads:
            thread.join()

    def _until_done(self, play: Callable[[], None]) -> None:
        try:
            play()
        except LabClosed:
            pass  # nobody is left to be told how it would have ended
        finally:
            self._events.put(None)

    def _work_off(self) -> None:
        while True:
            try:
                scenario = self._working.get_nowait()
            except queue.Empty:
                return
            self._play(scenario)

    def _play(self, scenario: Scenario) -> None:
        self._board.tell(scenario, Doing(text="a machine is installed"))
        began = time.monotonic()
        node = self._world.node(scenario.name, pins=scenario.pins, role=scenario.role)
        stage = Stage(world=self._world, node=node, tell=lambda doing: self._board.tell(scenario, doing))
        try:
            ended = scenario.play(stage)
        except Unmet as unmet:
            ended = "not as the rules say"
            stage.mismatches.append(Mismatch(what=unmet.what, expected=unmet.expected, seen=unmet.seen))
        except LabClosed:
            raise
        except Exception as error:  # noqa: BLE001  # a scenario that breaks has failed; the others go on
            ended = "the scenario broke"
            stage.mismatches.append(
                Mismatch(what=ended, expected="no error", seen="".join(traceback.format_exception(error, limit=-3)))
            )
        took = time.monotonic() - began
        node.stop()
        result = Result(
            scenario=scenario,
            ended=ended if not stage.mismatches else "not as the rules say",
            mismatches=tuple(stage.mismatches),
            took_seconds=took,
            offline_seconds=node.page().longest_gap(),
            log=str(node.root.log),
            log_tail=tuple(node.root.log_tail(_LOG_LINES)) if stage.mismatches else (),
        )
        self._board.finish(result)
        self._events.put(result)
