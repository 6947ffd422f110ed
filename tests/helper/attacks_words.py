"""What the node may say: fields, numbers, texts and lines that no node of ours sends."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

from bcd.helper import wire
from tests.helper.attack import Attack
from tests.helper.attacker import Attacker
from tests.helper.world import GONE, OLD, ONE, TWO, request

Answer = dict[str, Any] | str
_KILOMETRE = "1.2.0-" + "a" * 100_000


def say(data: bytes) -> Callable[[Attacker], Answer]:
    """One line as it is."""
    return lambda node: node.say(data)


def section(**changes: object) -> Callable[[Attacker], Answer]:
    """A swap to 1.2.0, its bytes staged, with other fields in its section."""

    def play(node: Attacker) -> Answer:
        node.stage(TWO)
        spec = {name: value for name, value in {**TWO.section, **changes}.items() if value is not None}
        return node.ask(wire.SWAP, {"spec": spec, "server_time": None, "command_id": None})

    return play


def swapped_with(**changes: object) -> Callable[[Attacker], Answer]:
    """A swap to 1.2.0 with other parameters."""

    def play(node: Attacker) -> Answer:
        node.stage(TWO)
        return node.swap(TWO, **changes)

    return play


def params(value: object) -> Callable[[Attacker], Answer]:
    return say(request(wire.SWAP, value))


def wrapped(inner: str) -> bytes:
    """A request around one value, spelled by hand."""
    return b'{"protocol":1,"method":"update.prepare","params":{"spec":' + inner.encode() + b',"server_time":null}}\n'


def outside(node: Attacker) -> Answer:
    """A version that is a way out of staging; the file that it would lead to is there."""
    (node.data / "evil").write_bytes(TWO.data)
    return node.ask(wire.SWAP, {"spec": {**TWO.section, "version": "/../../evil"}, "server_time": None})


def paths(node: Attacker) -> Answer:
    """Paths of the node's own in every parameter and beside: nobody reads them."""
    node.stage(TWO)
    more = {"slots_dir": str(node.data), "entrypoint": str(node.data / "x"), "path": "/etc/shadow", "data_dir": "/"}
    return node.swap(TWO, **more)


def released(release: Any, server_time: object = None) -> Callable[[Attacker], Answer]:
    def play(node: Attacker) -> Answer:
        node.stage(release)
        return node.swap(release, server_time=server_time)

    return play


def byte_by_byte(node: Attacker) -> Answer:
    with node.connect() as connection:
        for number in request(wire.INFO):
            connection.sendall(bytes((number,)))
        return node.line(connection)


def two_in_one(node: Attacker) -> Answer:
    with node.connect() as connection:
        connection.sendall(request(wire.CONFIRM) + request(wire.INFO))
        first, second = node.line(connection), node.line(connection)
    assert first["result"] is None
    return second


def half(node: Attacker) -> Answer:
    with node.connect() as connection:
        connection.sendall(request(wire.SWAP)[:-5])
        connection.shutdown(1)
        return node.line(connection)


def at_the_limit(node: Attacker) -> Answer:
    data = request(wire.INFO)
    return node.say(data[:-1] + b" " * (wire.LINE_LIMIT - len(data)) + b"\n")


def past_the_limit(node: Attacker) -> Answer:
    data = request(wire.INFO)
    return node.say(data[:-1] + b" " * (wire.LINE_LIMIT - len(data) + 1) + b"\n")


def without_end(node: Attacker) -> Answer:
    return node.say(b"[" * (wire.LINE_LIMIT + 65_536))


def names_a_directory(node: Attacker) -> Answer:
    (node.staging / "bcd-1.2.0").mkdir()
    os.chdir("/")
    return node.swap(TWO)


def unpinned(node: Attacker) -> Answer:
    """The manifest's own signatures, doubled: each pin counts once."""
    envelope = json.loads(str(TWO.section["signature"]))
    envelope["signatures"] = [envelope["signatures"][0]] * 5
    node.stage(TWO)
    return node.ask(wire.SWAP, {"spec": {**TWO.section, "signature": json.dumps(envelope)}, "server_time": None})


def lying_digest(node: Attacker) -> Answer:
    evil = b"#!/bin/sh\nevil\n"
    from hashlib import sha256

    node.stage(TWO, evil)
    return node.ask(wire.SWAP, {"spec": {**TWO.section, "sha256": sha256(evil).hexdigest()}, "server_time": None})


_MEGABYTE = "x" * 1_000_000
ATTACKS = (
    Attack("a version with .. out of staging", outside, "bad-section"),
    Attack("a version with a NUL", section(version="1.2.0\0"), "bad-section"),
    Attack("a version with a newline", section(version="1.2.0\n"), "bad-section"),
    Attack("a version with ESC and OSC 52", section(version="\x1b]52;c;ZXZpbA==\x07"), "bad-section"),
    Attack("a version a kilometre long", section(version=_KILOMETRE), "bad-section"),
    Attack("a version of 4 MiB less a little", section(version="1" * 4_000_000), "bad-section"),
    Attack("a version of Arabic digits", section(version="\u0661.\u0662.\u0660"), "bad-section"),
    Attack("a version that is a number", section(version=1.2), "bad-section"),
    Attack("a version that the manifest does not name", section(version="9.9.9"), "version-mismatch"),
    Attack("a version that claims to be what runs", section(version=ONE.version), "version-mismatch"),
    Attack("a digest of other bytes, which are staged", lying_digest, "digest-mismatch"),
    Attack("a digest with a NUL", section(sha256="\0" * 64), "bad-section"),
    Attack("a URL of another scheme", section(url="file:///etc/shadow"), "bad-url"),
    Attack("a URL with a newline", section(url="https://a\nb"), "bad-url"),
    Attack("an unknown field", section(path="/etc/shadow"), "bad-section"),
    Attack("a field that is missing", section(signature=None), "bad-section"),
    Attack("a signature that is no manifest", section(signature="{}"), "manifest-shape"),
    Attack("a signature of 3 MB", section(signature="{" + "x" * 3_000_000), "manifest-shape"),
    Attack("one signature five times", unpinned, "manifest-signatures"),
    Attack("a spec that is null", swapped_with(spec=None), "bad-section"),
    Attack("a spec that is a list", swapped_with(spec=[[]]), "bad-section"),
    Attack("paths among the parameters", paths, "ok", ends="swapped"),
    Attack("a release below the floor", released(OLD), "below-floor"),
    Attack("an expired release", released(GONE), "expired"),
    Attack("an expired release at server time 0", released(GONE, 0), "expired"),
    Attack("an expired release at server time 1970", released(GONE, 1), "expired"),
    Attack("a server time before the epoch", swapped_with(server_time=-1), "bad-request"),
    Attack("a server time of 2^53", swapped_with(server_time=2**53), "bad-request"),
    Attack("a server time of 2^53 less one", swapped_with(server_time=2**53 - 1), "expired"),
    Attack("a server time of 400 digits", swapped_with(server_time=10**400), "bad-request"),
    Attack("a server time that is a fraction", swapped_with(server_time=time.time()), "bad-request"),
    Attack("a server time that is true", swapped_with(server_time=True), "bad-request"),
    Attack("a server time that is text", swapped_with(server_time="now"), "bad-request"),
    Attack("a command's id of a megabyte", swapped_with(command_id=_MEGABYTE), "ok", ends="swapped"),
    Attack("a command's id with controls", swapped_with(command_id="\x1b[2J\0\n"), "ok", ends="swapped"),
    Attack("a command's id that is a list", swapped_with(command_id=[1]), "bad-request"),
    Attack("parameters that are a list", params([]), "bad-request"),
    Attack("parameters that are text", params("spec"), "bad-request"),
    Attack("an unknown method", say(request("update.run")), "bad-request"),
    Attack("a method a megabyte long", say(request(_MEGABYTE)), "bad-request"),
    Attack("a method that is no text", say(b'{"protocol":1,"method":7}\n'), "bad-request"),
    Attack("a method of Python's", say(request("__class__")), "bad-request"),
    Attack("protocol 0", say(request(wire.SETTLE, protocol=0)), "bad-request"),
    Attack("protocol 2", say(request(wire.SETTLE, protocol=2)), "bad-request"),
    Attack("protocol 1.0", say(request(wire.SETTLE, protocol=1.0)), "bad-request"),
    Attack("protocol true", say(request(wire.SETTLE, protocol=True)), "bad-request"),
    Attack("protocol of 400 digits", say(request(wire.SETTLE, protocol=10**400)), "bad-request"),
    Attack("a protocol that is a megabyte of text", say(request(wire.SETTLE, protocol=_MEGABYTE)), "bad-request"),
    Attack("no protocol", say(b'{"method":"update.settle"}\n'), "bad-request"),
    Attack("an empty line", say(b"\n"), "bad-request"),
    Attack("NUL bytes", say(b"\0" * 100 + b"\n"), "bad-request"),
    Attack("no UTF-8", say(b'{"protocol":1,"method":"\xff"}\n'), "bad-request"),
    Attack("UTF-16", say('{"protocol":1,"method":"helper.info"}'.encode("utf-16") + b"\n"), "bad-request"),
    Attack("a line that is no object", say(b"[]\n"), "bad-request"),
    Attack("a lone surrogate", say(wrapped('"\\ud800"')), "bad-request"),
    Attack("a lone surrogate as a key", say(wrapped('{"\\udfff":1}')), "bad-request"),
    Attack("NaN for a server time", say(request(wire.PREPARE, {"server_time": float("nan")})), "bad-request"),
    Attack("a number of 5,000 digits", say(wrapped("9" * 5_000)), "bad-request"),
    Attack("a number of 3 MB", say(wrapped("9" * 3_000_000)), "bad-request"),
    Attack("1e999", say(wrapped("1e999")), "bad-section"),
    Attack("65 levels", say(wrapped("[" * 65 + "]" * 65)), "bad-request"),
    Attack("900 levels", say(wrapped("[" * 900 + "]" * 900)), "bad-request"),
    Attack("4 MiB of brackets", say(wrapped("[" * 4_000_000)), "bad-request"),
    Attack("a million empty lists", say(wrapped("[" + "[]," * 1_000_000 + "[]]")), "bad-request"),
    Attack("a key twice", say(b'{"protocol":1,"method":"update.swap","method":"helper.info"}\n'), "ok"),
    Attack("a line of 4 MiB", at_the_limit, "ok"),
    Attack("a line of 4 MiB and a byte", past_the_limit, "bad-request"),
    Attack("a line without end", without_end, "bad-request"),
    Attack("half a line", half, "closed"),
    Attack("a line byte by byte", byte_by_byte, "ok"),
    Attack("two lines at once", two_in_one, "ok"),
)
