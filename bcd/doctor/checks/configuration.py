"""Configuration: whether it reads, whom it trusts, and whether it is the one that the service runs with."""

import os
import shlex
import stat

from bcd.core.config import DEFAULT_PATH, load_config
from bcd.core.errors import NotPermitted, UsageError
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.probes import CannotTell, Probes

CONFIGURATION_CHECKS = Registry("configuration")

_OTHERS_MAY_WRITE = 0o022


@CONFIGURATION_CHECKS.check(
    "parses",
    "the configuration reads, and has only known keys",
    why="The agent does not start on a configuration that it can't read, and a misspelt key would silently do nothing.",
)
def parses(see: Probes) -> Result:
    """Parses, known keys, pins well formed."""
    try:
        config = load_config(see.config_path)
    except UsageError as error:
        return fail(error.message, f"{see.config_path}: {error.code}", hint=error.hint)
    except NotPermitted as error:
        return unknown(f"could not be told: {error.message}", hint=f"sudo bcd doctor --config {see.config_path}")
    if not config.found:
        return note(f"there is no {see.config_path}; the defaults are in force")
    return ok(f"{see.config_path} reads")


@CONFIGURATION_CHECKS.check(
    "release-pins",
    "at least as many release keys are pinned as must sign",
    why="Pins are what a release is trusted by. Without them no update is taken; a threshold that can't be reached "
    "refuses every release.",
)
def release_pins(see: Probes) -> Result:
    """Required by the rules: warn without `release_pins`."""
    update = see.config.update
    pins, threshold = len(update.release_pins), update.release_threshold
    evidence = f"{see.config_path}: [update] release_pins has {pins}, release_threshold is {threshold}"
    if pins == 0:
        return warn(
            "no release keys are pinned, so this node takes no update",
            evidence,
            hint="set [update] release_pins to your release keys' pins (docs/operations/configure.md)",
        )
    if pins < threshold:
        return fail(
            f"{pins} release keys are pinned and {threshold} must sign, so every release is refused (no-pins)",
            evidence,
            hint="add pins to [update] release_pins, or lower release_threshold",
        )
    if threshold == 1:
        return note("one signature is enough here: a single stolen release key installs anything", evidence)
    return ok(f"{pins} release keys are pinned, {threshold} must sign")


@CONFIGURATION_CHECKS.check(
    "permissions",
    "nobody but its owner may change the configuration",
    why="Whoever may write it pins keys of their own, and so installs what they like as root.",
)
def permissions(see: Probes) -> Result:
    """The file's owner and mode, and its directory's."""
    if not see.config.found:
        return skipped("there is no configuration file")
    for path in (see.config_path, os.path.dirname(os.path.abspath(see.config_path))):
        found = os.stat(path)
        evidence = f"{path}: uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}"
        if found.st_uid not in (0, see.euid):
            return fail(
                f"{path} belongs to uid {found.st_uid}, who may pin keys of their own",
                evidence,
                hint=f"chown root:root {shlex.quote(path)}",
            )
        if found.st_mode & _OTHERS_MAY_WRITE:
            return fail(
                f"{path} may be written by others than its owner, who may pin keys of their own",
                evidence,
                hint=f"chmod go-w {shlex.quote(path)}",
            )
    return ok("only its owner may change it")


@CONFIGURATION_CHECKS.check(
    "placement",
    "slots and entrypoint lie outside of data_dir",
    why="`data_dir` belongs to the node's user. Slots or an entrypoint in it would let that user choose what root starts.",
)
def placement(see: Probes) -> Result:
    """Seed: under the helper neither may lie inside `data_dir`."""
    config, layout = see.config, see.layout
    data_dir = os.path.realpath(layout.data_dir)
    named = (("slots_dir", layout.slots_dir), ("entrypoint", layout.entrypoint))
    inside = [
        (key, path)
        for key, path in named
        if os.path.commonpath([data_dir, os.path.realpath(os.path.dirname(path) if key == "entrypoint" else path)])
        == data_dir
    ]
    if not inside:
        return ok("slots and entrypoint lie outside of data_dir")
    evidence = [f"[update] {key} = {path}" for key, path in inside]
    message = f"{' and '.join(key for key, _ in inside)} inside data_dir ({layout.data_dir})"
    hint = "move them: [update] slots_dir and entrypoint default to /usr/local/lib/bcd and /usr/local/bin/bcd"
    if config.helper is not None:
        return fail(f"{message}: the helper does not start", *evidence, hint=hint)
    return warn(f"{message}: whoever may write data_dir chooses what starts", *evidence, hint=hint)


@CONFIGURATION_CHECKS.check(
    "service-paths",
    "the running service uses this configuration",
    why="A doctor that looks at other paths than the service's finds the health of a node that does not exist.",
)
def service_paths(see: Probes) -> Result:
    """Find the `--config` of the agent that runs, or of the unit that would start it."""
    used, where = _used_config(see)
    if used is None:
        return skipped(f"no running agent and no unit to compare with: {where}")
    if os.path.realpath(used) != os.path.realpath(see.config_path):
        return warn(
            f"the service runs with {used}, and this report is about {see.config_path}",
            where,
            hint=f"bcd doctor --config {shlex.quote(used)}",
        )
    return ok(f"the service runs with {used}", where)


def _used_config(see: Probes) -> tuple[str | None, str]:
    live = see.live
    pid = live.get("pid") if live is not None else None
    if isinstance(pid, int):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")]
        except OSError as error:
            return None, f"the agent's command line could not be read: {error.strerror}"
        return _config_of(words), f"process {pid}: {' '.join(words).strip()}"
    if not see.has_systemd:
        return None, "no agent answers, and there is no systemd"
    try:
        started = see.unit().get("ExecStart", "")
    except CannotTell as error:
        return None, str(error)
    words = started.partition("argv[]=")[2].partition(" ;")[0].split()
    return (_config_of(words), f"ExecStart={' '.join(words)}") if words else (None, "the unit starts nothing")


def _config_of(words: list[str]) -> str:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--config" and following:
            return following
        if word.startswith("--config="):
            return word.partition("=")[2]
    return DEFAULT_PATH
