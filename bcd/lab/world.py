"""The lab's world: in one directory the keys, the authority, the servers and the nodes.

```
<directory>/lab.json   marks the directory as a lab's
<directory>/tls/       the authority's and the nodes' certificates
<directory>/nodes/<n>/ one node's root: etc, bin, lib, run, var, tmp and its log
<directory>/python/    where the lab runs split, and its own Python is closed to the node's user: a copy
```
Release keys never touch the disk: they end with the world.
"""

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from bcd.lab.gateway import Gateway, LabClosed
from bcd.lab.labnode import LabNode
from bcd.lab.packing import Packer
from bcd.lab.pki import Authority
from bcd.lab.releases import THRESHOLD, Publisher
from bcd.lab.root import Root
from bcd.lab.runtime import Runtime, runtime_for
from bcd.lab.server import ReleaseServer
from bcd.lab.split import draw_user

INSTALLED_VERSION = "1.4.0"
INSTALLED_SEQUENCE = 14


class World:
    """A running world; a context manager that ends it. Its nodes are started one by one."""

    def __init__(self, directory: Path, *, split: bool = False) -> None:
        """Make the world in `directory`, which is a claimed `LabDirectory`'s.

        With `split` each node runs under a user that nobody is, and has a helper, which runs as root.

        Raises:
            UsageError: `no-source`: see `Packer`.
            HostError: `no-interpreter`: see `runtime_for`.
        """
        self.node_uid = draw_user() if split else None
        self.runtime = Runtime() if self.node_uid is None else runtime_for(self.node_uid, directory / "python")
        packer = Packer(self.runtime)  # first: it may refuse, and nothing is to be undone then
        self.directory = directory
        tls = directory / "tls"
        tls.mkdir()
        self.authority = Authority(tls)
        self.server = ReleaseServer(self.authority.server_context())
        self.publisher = Publisher(self.server, packer)
        self.gateway = Gateway(self.authority.server_context(asks_for_certificate=True))
        self._installed = self.publisher.binary(INSTALLED_VERSION, INSTALLED_SEQUENCE)
        self._nodes: list[LabNode] = []
        self._lock = threading.Lock()
        self._halted = False

    def node(self, name: str, *, pins: bool = True, role: str = "node") -> LabNode:
        """A machine on which bcd 1.4.0 (sequence 14) was just installed; it is not started yet.

        Args:
            name: its node id and its directory's name.
            pins: whether its configuration has the release pins.
            role: the role in which it is started.

        Raises:
            LabClosed: the world was halted meanwhile.
        """
        root = Root(home=self.directory / "nodes" / name, node_uid=self.node_uid)
        credentials = self.authority.for_node(name)
        authority = str(self.authority.certificate)
        update: dict[str, str | int] = {
            "slots_dir": str(root.slots),
            "entrypoint": str(root.entrypoint),
            "ca_file": authority,
        }
        if pins:
            update |= {"release_pins": ",".join(self.publisher.pins), "release_threshold": THRESHOLD}
        config: dict[str, dict[str, str | int]] = {
            "node": {
                "data_dir": str(root.data),
                "gateway": self.gateway.url,
                "node_id": name,
                "ca_file": authority,
                "cert_file": str(credentials.certificate),
                "key_file": str(credentials.key),
            },
            "update": update,
        }
        if self.node_uid is not None:
            config["helper"] = {"node_user": str(self.node_uid), "socket": str(root.socket)}
            os.chown(credentials.key, self.node_uid, self.node_uid)
        root.make(binary=self._installed, config=config)
        node = LabNode(name=name, role=role, root=root, gateway=self.gateway, server=self.server)
        with self._lock:
            if self._halted:
                raise LabClosed
            self._nodes.append(node)
        return node

    def halt(self) -> None:
        """End every node for good, and every wait for something here with `LabClosed`; safe to repeat."""
        with self._lock:
            self._halted = True
        self.gateway.wake()
        for node in self._nodes:
            node.retire()

    def close(self) -> None:
        """Halt, then stop the servers. Whoever plays in other threads must have ended by now: halt, wait, close."""
        self.halt()
        self.gateway.close()
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
