"""What the node still has to tell its gateway, on disk: `<data_dir>/outbox.json`.

The crash: an update replaces the very process that took its command. So a command is written down when it is
accepted, its final status when it is known, and both stay until the gateway acked and for a while after: a command
that arrives again gets the same answer and runs no second time (spec/gateway.md; field report 37).
"""

import logging
import os
import time

import msgspec

from bcd.core.durable import host_error, write_durably
from bcd.node.frames import CommandState, CommandStatus, SectionStatus, encode_document

_KEPT = 256
"""How many acked commands are remembered; the gateway replays none that old."""
_UNACKED = 256
"""How many commands may wait for their end or their ack. The attack: one that acks nothing fills the disk."""
_LIMIT_BYTES = 16 * 1024 * 1024

_log = logging.getLogger(__name__)


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One command."""

    id: str
    version: str | None = None
    """The version that it asks for, where its arguments name one."""
    state: CommandState = "ACCEPTED"
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    acked: bool = False

    @property
    def final(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ("SUCCEEDED", "FAILED", "UNSUPPORTED")

    def status(self) -> CommandStatus:
        """What the gateway is told."""
        return CommandStatus(id=self.id, state=self.state, reason=self.reason, code=self.code, message=self.message)


class _Document(msgspec.Struct, kw_only=True):
    format: int = 1
    commands: list[Entry] = []
    """Oldest first."""
    sections: dict[str, SectionStatus] = {}


class Outbox:
    """The commands and the sections' last statuses. Made by reading the disk; each change is on disk when it returns."""

    def __init__(self, data_dir: str) -> None:
        self._path = os.path.join(data_dir, "outbox.json")
        document = self._read()
        self._commands = {entry.id: entry for entry in document.commands}
        self._sections = document.sections

    def _read(self) -> _Document:
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(_LIMIT_BYTES), type=_Document)
        except FileNotFoundError:
            return _Document()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Never a reason not to start. What was in it is lost to this process and kept for people.
            _log.warning("%s is broken (%s) and is moved aside", self._path, error)
            try:
                os.rename(self._path, f"{self._path}.corrupt-{int(time.time())}")
            except OSError as failure:
                _log.warning("it could not be moved: %s", failure)
            return _Document()

    def command(self, command_id: str) -> Entry | None:
        """What is known of a command."""
        return self._commands.get(command_id)

    def is_full(self) -> bool:
        """Whether no new command can be taken before the gateway acks older ones."""
        return sum(1 for entry in self._commands.values() if not entry.acked) >= _UNACKED

    def unfinished(self) -> list[Entry]:
        """The commands that have no final status, oldest first."""
        return [entry for entry in self._commands.values() if not entry.final]

    def unacked(self) -> list[CommandStatus]:
        """The statuses that are sent again after every welcome, oldest first."""
        return [entry.status() for entry in self._commands.values() if not entry.acked]

    def sections(self) -> list[SectionStatus]:
        """Each section's last status."""
        return list(self._sections.values())

    def put(self, entry: Entry) -> None:
        """Keep a command's state.

        Raises:
            HostError: it could not be written; it is kept in memory.
        """
        self._commands[entry.id] = entry
        self._write()

    def put_section(self, status: SectionStatus) -> None:
        """Keep a section's status. Raises HostError as `put` does."""
        if self._sections.get(status.name) != status:
            self._sections[status.name] = status
            self._write()

    def ack(self, command_id: str) -> None:
        """The gateway keeps this command's final status now. Raises HostError as `put` does."""
        entry = self._commands.get(command_id)
        if entry is not None and entry.final and not entry.acked:
            entry.acked = True
            self._forget_old()
            self._write()

    def _forget_old(self) -> None:
        acked = [entry.id for entry in self._commands.values() if entry.acked]
        for command_id in acked[:-_KEPT]:
            del self._commands[command_id]

    def _write(self) -> None:
        document = _Document(commands=list(self._commands.values()), sections=self._sections)
        try:
            write_durably(self._path, encode_document(document), 0o600)
        except OSError as error:
            raise host_error(error, "keep what the gateway has to be told") from error
