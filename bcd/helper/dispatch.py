"""From a request to an answer: what of the manager the node may ask, with what it says taken for no more than that.

Assume the node is taken over (section 10). The manager judges every section anew with root's own configuration, clock,
records and paths; what is added here is what a manager in the node's own process could rely on and root can't: a
rollback "because the deadline passed" holds only when it did, by root's clock.
"""

import logging

from bcd.core.answers import Way
from bcd.core.errors import BcdError, HostError
from bcd.core.manager import Manager
from bcd.core.records import Json
from bcd.core.text import clean, raw
from bcd.helper import wire
from bcd.helper.wire import Malformed, Request

_SAID_LIMIT = 500
"""Characters of what the node says about a failure; it goes into a record for people."""
_ID_LIMIT = 256
_EARLY_SECONDS = 1.0
"""How much before the deadline, by root's clock, the node's may have passed it."""

_log = logging.getLogger(__name__)


class Dispatch:
    """Answers requests, one at a time."""

    def __init__(self, manager: Manager, version: str) -> None:
        self._manager = manager
        self._version = version

    def answer(self, request: Request) -> Json:
        """The answer to one request: never an exception, whatever the request or the disk is."""
        try:
            return wire.good_answer(self._version, self._result(request))
        except Malformed as error:
            return self.malformed(str(error))
        except BcdError as error:
            return wire.bad_answer(self._version, error)
        except Exception as error:  # noqa: BLE001  # a fault of our own must not end root's half for everybody
            _log.exception("a fault in bcd itself")
            fault = f"a fault in bcd itself: {type(error).__name__}: {clean(str(error), 300)}"
            return wire.bad_answer(self._version, HostError("io-error", fault, "see the helper's log"))

    def malformed(self, why: str) -> Json:
        """The answer to what is no request."""
        hint = "restart whichever of bcd.service and bcd-helper.service is the older"
        return wire.bad_answer(
            self._version, HostError("bad-request", f"the helper got no request: {clean(why)}", hint)
        )

    def wrong_protocol(self, theirs: object) -> Json:
        """The answer to a request of another protocol."""
        older = type(theirs) is int and theirs < wire.PROTOCOL
        who = "bcd.service" if older else "bcd-helper.service"
        message = (
            f"the helper (bcd {self._version}) speaks protocol {wire.PROTOCOL}, the node {clean(repr(theirs), 40)}"
        )
        return wire.bad_answer(self._version, HostError("bad-request", message, f"systemctl restart {who}"))

    def _result(self, request: Request) -> object:
        manager, params = self._manager, request.params
        match request.method:
            case wire.INFO:
                return {"running": manager.running_version()}
            case wire.PREPARE:
                prepared = manager.prepare(params.get("spec"), server_time=wire.optional_integer(params, "server_time"))
                return wire.prepared_json(prepared)
            case wire.SWAP:
                return wire.pending_json(
                    manager.swap(
                        params.get("spec"),
                        server_time=wire.optional_integer(params, "server_time"),
                        command_id=_bounded(params, "command_id", _ID_LIMIT),
                    )
                )
            case wire.CONFIRM:
                return wire.pending_json(manager.confirm())
            case wire.ROLLBACK:
                return {"moved": self._roll_back(params)}
            case wire.SETTLE:
                return wire.settled_json(manager.settle())
            case unknown:
                raise Malformed(f"method {clean(unknown, 80)} is not known")

    def _roll_back(self, params: Json) -> bool:
        way = _way(params)
        said, refused = (_bounded(params, key, _SAID_LIMIT) for key in ("said", "refused"))
        left = self._manager.look.time_left()
        if way == "deadline" and left is not None and left.seconds > _EARLY_SECONDS:
            raise HostError(
                "update-in-progress",
                f"the pending update's deadline has not passed: {left.seconds:.0f} s are left",
                "wait for it",
            )
        if refused is not None:
            self._manager.note_gateway_refused(refused)
        return self._manager.rollback(way=way, said=said)


def _way(params: Json) -> Way:
    match params.get("way"):
        case "deadline":
            return "deadline"
        case "exec":
            return "exec"
        case _:
            raise Malformed("way is neither deadline nor exec")


def _bounded(params: Json, key: str, limit: int) -> str | None:
    text = wire.optional_text(params, key)
    return None if text is None else raw(text)[:limit]
