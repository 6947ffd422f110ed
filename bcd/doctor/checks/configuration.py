"""Configuration: whether it reads, whom it trusts, and whether it is the one that the service runs with."""

import os
import pwd
import shlex
import stat

from bcd.core.config import DEFAULT_PATH, UpdateConfig
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
    path = see.config_path
    try:
        config = see.load_config()
    except UsageError as error:
        near = f" ({error.hint})" if error.hint.startswith("did you mean") else ""
        hint = f"correct {shlex.quote(path)}{near}; whether it reads then: {see.command('update')}"
        return fail(f"the agent does not start on this configuration: {error.message}", _seen(path), hint=hint)
    except NotPermitted as error:
        return unknown(f"could not be told: {error.message}", _seen(path), hint=see.command("doctor", root=True))
    if config.found:
        return ok(f"{path} reads", _seen(path))
    if path == DEFAULT_PATH:
        return note(f"there is no {path}; the defaults are in force")
    return warn(
        f"there is no {path}; this report is about the defaults", _seen(path), hint="name the right file with --config"
    )


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
            hint=f"set [update] release_pins in {shlex.quote(see.config_path)} to your release keys' pins "
            "(docs/operations/configure.md), then restart the agent",
        )
    if pins < threshold:
        return fail(
            f"{pins} release keys are pinned and {threshold} must sign, so every release is refused (no-pins)",
            evidence,
            hint=f"in {shlex.quote(see.config_path)}, add pins to [update] release_pins, or lower release_threshold",
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
    """The file's owner and mode, and those of the directories that its name leads through."""
    if not see.config.found:
        return skipped("there is no configuration file")
    path = os.path.abspath(see.config_path)
    for name in dict.fromkeys((path, os.path.dirname(path), os.path.dirname(os.path.realpath(path)))):
        found = os.stat(name)
        if found.st_uid not in see.owners:
            return fail(
                f"{name} belongs to {_owner(found.st_uid)}, who may pin keys of their own",
                _seen(name),
                hint=f"chown root:root {shlex.quote(name)}",
            )
        # In a sticky directory (/tmp) nobody may replace what is not theirs.
        sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if found.st_mode & _OTHERS_MAY_WRITE and not sticky:
            return fail(
                f"{name} may be written by others than its owner, who may pin keys of their own",
                _seen(name),
                hint=f"chmod go-w {shlex.quote(name)}",
            )
    return ok("only its owner may change it", _seen(path))


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
    usual = UpdateConfig()
    hint = (
        f"in {shlex.quote(see.config_path)}, leave out [update] slots_dir and entrypoint (they default to {usual.slots_dir} and "
        f"{usual.entrypoint}), and install bcd there"
    )
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
        return skipped(f"nothing to compare with: {where}")
    if os.path.realpath(used) != os.path.realpath(see.config_path):
        return warn(
            f"the service runs with {used}, and this report is about {see.config_path}",
            where,
            hint=shlex.join(["bcd", "doctor", "--config", used]),
        )
    return ok(f"the service runs with {used}", where)


def _used_config(see: Probes) -> tuple[str | None, str]:
    live = see.live
    pid = live.get("pid") if live is not None else None
    unseen: OSError | None = None
    if isinstance(pid, int):
        process = os.path.join(see.proc_directory, str(pid))
        try:
            with open(os.path.join(process, "cmdline"), "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")]
            used = _config_of(words)
            if not os.path.isabs(used):
                used = os.path.join(os.readlink(os.path.join(process, "cwd")), used)
        except OSError as error:
            unseen = error
        else:
            return used, f"process {pid}: {' '.join(words).strip()}"
    # The unit is the next best witness, also where /proc hides other users' processes.
    if see.has_systemd:
        words = see.unit().get("ExecStart", "").partition("argv[]=")[2].partition(" ;")[0].split()
        if words:
            return _config_of(words), f"ExecStart={' '.join(words)}"
    if unseen is not None:
        raise CannotTell(f"the agent's command line could not be read: {unseen.strerror}")
    return None, "no agent answers, and no unit would start one"


def _config_of(words: list[str]) -> str:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--config" and following:
            return following
        if word.startswith("--config="):
            return word.partition("=")[2]
    return DEFAULT_PATH


def _owner(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _seen(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return f"{path}: uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}, {found.st_size} bytes"
