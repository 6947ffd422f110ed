"""Where the files live (spec/self-update.md section 5): one place that knows, for both ways of running."""

import os
from typing import NamedTuple

from bcd.core.config import Config


class Layout(NamedTuple):
    """The paths of one node, all absolute."""

    slots_dir: str
    entrypoint: str
    records_dir: str
    """Of `update.json`, `upgrade.json`, `history.jsonl` and `update.lock`."""
    data_dir: str

    @property
    def slots_record(self) -> str:
        """Per slot, what its file is."""
        return os.path.join(self.slots_dir, "slots.json")

    @property
    def update_record(self) -> str:
        """The floor, what was confirmed last, what failed."""
        return os.path.join(self.records_dir, "update.json")

    @property
    def pending_record(self) -> str:
        """The swap that is not settled yet; absent otherwise."""
        return os.path.join(self.records_dir, "upgrade.json")

    @property
    def rollback_marker(self) -> str:
        """The empty file that each way of rolling back leaves."""
        return os.path.join(self.records_dir, "rolled-back")

    @property
    def history(self) -> str:
        """One line an event."""
        return os.path.join(self.records_dir, "history.jsonl")

    @property
    def staging(self) -> str:
        """Where downloads land, owned by the node's user."""
        return os.path.join(self.data_dir, "staging")

    @property
    def current(self) -> str:
        """The link that the entrypoint leads to."""
        return os.path.join(self.slots_dir, "current")


def layout_of(config: Config) -> Layout:
    """The layout that a configuration means: with a helper, root's records lie beside the slots."""
    node, update = config.node, config.update
    records = update.slots_dir if config.helper is not None else os.path.join(node.data_dir, "update")
    return Layout(update.slots_dir, update.entrypoint, records, node.data_dir)
