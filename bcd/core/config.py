"""The node's configuration: `/etc/bcd/config.toml`, checked once, every value with its default.

A missing file means defaults. An unknown key in `[node]`, `[update]` or `[helper]` is an error that names the
nearest known one: a `release_pin` that silently pins nothing would be a door left open. Other tables are other
parts' and are passed over. Loaded by `bcd update`, so nothing heavy is imported at the top (ADR 0002).
"""

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from bcd.core.errors import NotPermitted, UsageError
from bcd.core.strict import decode_base64
from bcd.core.text import clean

DEFAULT_PATH = "/etc/bcd/config.toml"
_LIMIT_BYTES = 1_048_576
_PIN_PREFIX = "sha256/"
_SHA256_BYTES = 32


class NodeConfig(NamedTuple):
    """`[node]`."""

    data_dir: str = "/var/lib/bcd"
    gateway: str | None = None
    """The session's address, `wss://…`."""
    node_id: str | None = None
    """How this node calls itself; the host's name where not set."""
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    dev_insecure_h2c: bool = False
    """Let clear-text gateways and downloads through; for development."""


class UpdateConfig(NamedTuple):
    """`[update]`."""

    release_pins: tuple[str, ...] = ()
    """Distinct, in the order they are written."""
    release_threshold: int = 2
    release_sequence: int = 0
    slots_dir: str = "/usr/local/lib/bcd"
    entrypoint: str = "/usr/local/bin/bcd"
    ca_file: str | None = None


class HelperConfig(NamedTuple):
    """`[helper]`; its presence says that the privileged half owns the records."""

    node_user: str = "bcd"
    socket: str = "/run/bcd/helper.sock"


class Config(NamedTuple):
    """What is in force."""

    path: str
    found: bool
    """Whether the file was there; defaults are in force otherwise."""
    node: NodeConfig
    update: UpdateConfig
    helper: HelperConfig | None


def load_config(path: str = DEFAULT_PATH) -> Config:
    """Read and check the configuration.

    Raises:
        UsageError: `bad-config`, with the file, the key and what is wrong.
        NotPermitted: `unreadable-config`, this user may not read it.
    """
    try:
        # O_NONBLOCK: a FIFO in its place must hang nobody.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _bad(path, "is no regular file")
            data = os.read(handle, _LIMIT_BYTES + 1)
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return Config(path, False, NodeConfig(), UpdateConfig(), None)
    except PermissionError as error:
        raise NotPermitted(
            "unreadable-config", f"{path}: this user may not read it", "run it as root, or name another with --config"
        ) from error
    except OSError as error:
        raise _bad(path, f"could not be read: {error.strerror}") from error
    if len(data) > _LIMIT_BYTES:
        raise _bad(path, "is larger than any configuration")
    return parse_config(data, path)


def parse_config(data: bytes, path: str) -> Config:
    """Check a configuration's bytes; `path` is for messages.

    Raises:
        UsageError: `bad-config`.
    """
    from tomllib import loads  # noqa: PLC0415  # a third of bare start-up: only where there is a file

    try:
        document = loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _bad(path, "is not UTF-8") from error
    except ValueError as error:  # TOMLDecodeError is one, and so is what int() says of 5,000 digits
        raise _bad(path, f"is no TOML: {error}") from error
    except RecursionError as error:
        raise _bad(path, "is nested too deep") from error
    node = _Table(document, "node", NodeConfig._fields, path)
    update = _Table(document, "update", UpdateConfig._fields, path)
    helper = _Table(document, "helper", HelperConfig._fields, path)
    return Config(
        path,
        True,
        NodeConfig(
            data_dir=node.path("data_dir", NodeConfig().data_dir),
            gateway=node.text("gateway"),
            node_id=node.text("node_id"),
            ca_file=node.optional_path("ca_file"),
            cert_file=node.optional_path("cert_file"),
            key_file=node.optional_path("key_file"),
            dev_insecure_h2c=node.flag("dev_insecure_h2c"),
        ),
        UpdateConfig(
            release_pins=_pins(update),
            release_threshold=update.integer("release_threshold", UpdateConfig().release_threshold, 1),
            release_sequence=update.integer("release_sequence", 0, 0),
            slots_dir=update.path("slots_dir", UpdateConfig().slots_dir),
            entrypoint=update.path("entrypoint", UpdateConfig().entrypoint),
            ca_file=update.optional_path("ca_file"),
        ),
        HelperConfig(
            node_user=helper.text("node_user") or HelperConfig().node_user,
            socket=helper.path("socket", HelperConfig().socket),
        )
        if helper.present
        else None,
    )


def is_pin(text: str) -> bool:
    """Whether `text` is `sha256/` and the strict base64 of 32 bytes."""
    if not text.startswith(_PIN_PREFIX):
        return False
    try:
        return len(decode_base64(text.removeprefix(_PIN_PREFIX))) == _SHA256_BYTES
    except ValueError:
        return False


def _bad(path: str, what: str, hint: str = "correct the file; `bcd update` says whether it reads") -> UsageError:
    return UsageError("bad-config", f"{path}: {clean(what)}", hint)


def _pins(update: "_Table") -> tuple[str, ...]:
    value = update.values.get("release_pins", "")
    if isinstance(value, str):
        value = [pin for pin in (part.strip() for part in value.split(",")) if pin]
    if not isinstance(value, list):
        raise update.wrong("release_pins", "is neither a string nor a list of strings")
    for pin in value:
        if not isinstance(pin, str) or not is_pin(pin):
            raise update.wrong("release_pins", f"has {pin!r}, which is no sha256/<base64 of 32 bytes>")
    return tuple(dict.fromkeys(value))


class _Table:
    """One table of the file: typed access, with errors that name the key."""

    def __init__(self, document: Mapping[str, object], name: str, known: tuple[str, ...], path: str) -> None:
        self.name = name
        self._path = path
        self.present = name in document
        value = document.get(name, {})
        if not isinstance(value, dict):
            raise _bad(path, f"{name} is no table")
        self.values: dict[str, object] = value
        for key in value:
            if key not in known:
                from difflib import get_close_matches  # noqa: PLC0415  # only where there is something to say

                near = get_close_matches(key, known, 1, 0.0)[0]
                raise _bad(path, f"[{name}] has no key {key!r}", f"did you mean {near!r}?")

    def wrong(self, key: str, what: str) -> UsageError:
        return _bad(self._path, f"[{self.name}] {key} {what}")

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value or "\0" in value:
            raise self.wrong(key, "is no text")
        return value

    def optional_path(self, key: str) -> str | None:
        value = self.text(key)
        if value is not None and not os.path.isabs(value):
            raise self.wrong(key, "is no absolute path")
        return None if value is None else os.path.normpath(value)

    def path(self, key: str, default: str) -> str:
        return self.optional_path(key) or default

    def integer(self, key: str, default: int, least: int) -> int:
        value = self.values.get(key, default)
        if type(value) is not int or not least <= value < 2**53:
            raise self.wrong(key, f"is no integer from {least} to 2^53-1")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "is neither true nor false")
        return value
