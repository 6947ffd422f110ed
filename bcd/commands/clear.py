"""`bcd update --clear-failed`: a local decision, never the control plane's."""

import json
import os
import shlex

from bcd.commands.logs import TalkFormatter, log_to_stderr
from bcd.commands.streams import note_defaults, print_lines
from bcd.core.build import this_build
from bcd.core.clock import SystemClock
from bcd.core.config import Config, load_config
from bcd.core.errors import HostError, NotPermitted
from bcd.core.exits import ExitStatus
from bcd.core.layout import layout_of
from bcd.core.manager import Manager
from bcd.core.records import Failed, read_update
from bcd.core.service import NoServiceManager
from bcd.core.text import clean, raw


def clear_failed_versions(config_path: str, versions: tuple[str, ...], *, as_json: bool) -> ExitStatus:
    """Forget all failed versions, or those named, and say which.

    Raises:
        NotPermitted: this user may not write the records.
        HostError: it could not be written; nothing was forgotten.
    """
    log_to_stderr(TalkFormatter())
    config = load_config(config_path)
    note_defaults(config)
    layout = layout_of(config)
    _require_right(config, versions)
    reading = read_update(layout.update_record)
    if reading.state == "unreadable":
        raise _needs_root(config, versions)
    forgotten: tuple[Failed, ...] = ()
    if os.path.isdir(layout.records_dir):
        manager = Manager(config=config, build=this_build(), clock=SystemClock(), service=NoServiceManager())
        try:
            forgotten = manager.clear_failed(versions)
        except HostError as error:
            if isinstance(error.__cause__, PermissionError):
                raise _needs_root(config, versions) from error
            raise
    unknown = [
        version for version in dict.fromkeys(versions) if version not in {raw(failed.version) for failed in forgotten}
    ]
    if as_json:
        print_lines([json.dumps({"format": 1, "cleared": [raw(f.version) for f in forgotten], "unknown": unknown})])
    else:
        print_lines(_said([f"{failed.version} ({failed.reason})" for failed in forgotten], unknown))
    return ExitStatus.PROBLEM if unknown else ExitStatus.OK


def _said(forgotten: list[str], unknown: list[str]) -> list[str]:
    lines = []
    if forgotten:
        lines = ["failed versions cleared", *(f"  {entry}" for entry in forgotten)]
    elif not unknown:
        lines = ["no failed versions to clear"]
    return lines + [f"{clean(version, 80) or repr(version)} is not among the failed versions" for version in unknown]


def _require_right(config: Config, versions: tuple[str, ...]) -> None:
    # With a helper the records are root's, whoever may write the directory that they lie in.
    records_dir = layout_of(config).records_dir
    others = config.helper is not None or (os.path.isdir(records_dir) and not os.access(records_dir, os.W_OK))
    if os.geteuid() != 0 and others:
        raise _needs_root(config, versions)


def _needs_root(config: Config, versions: tuple[str, ...]) -> NotPermitted:
    command = shlex.join(["sudo", "bcd", "update", "--clear-failed", *versions, "--config", config.path])
    return NotPermitted("needs-root", "clearing failed versions here needs root: the records are root's", command)
