"""Proxies: which the agent goes through, told apart from this shell's, never with their passwords."""

import os
import re
from collections.abc import Mapping

from bcd.core.text import clean
from bcd.doctor.check import Registry, Result, note, ok
from bcd.doctor.probes import CannotTell, Probes
from bcd.doctor.session import SessionProbe

PROXY_CHECKS = Registry("gateway")

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@PROXY_CHECKS.check(
    "proxies",
    "which proxies the environment names",
    why="The service's environment is not your shell's: a proxy that only one of them knows explains most downloads that "
    "work by hand and not from the agent.",
)
def proxies(see: Probes) -> Result:
    """The variables' names and hosts, never their passwords."""
    here, agents = named_proxies(see.environ), agent_environ(see)
    if agents is None:
        if not here:
            return ok("no proxy is named in this environment")
        return note("proxies are named in this environment; the service's own decides", *here)
    there = named_proxies(agents)
    if here != there:
        return note(
            f"the agent uses {'other proxies than' if there else 'no proxy, unlike'} this shell",
            *(f"the agent: {line}" for line in there),
            *(f"here: {line}" for line in here),
        )
    if there:
        return note("the agent uses proxies", *there)
    return ok("the agent uses no proxy")


def goes_through_proxy(environ: Mapping[str, str], probe: SessionProbe) -> bool:
    """Whether an agent with that environment reaches the gateway through a proxy."""
    from urllib.request import proxy_bypass  # noqa: PLC0415  # only where the direct way failed

    exceptions = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    return bool(named_proxies(environ)) and not proxy_bypass(f"{probe.host}:{probe.port}", {"no": exceptions})


def agent_environ(see: Probes) -> dict[str, str] | None:
    """The running agent's environment; None where there is none or this user may not see it."""
    try:
        pid = see.live.get("pid") if see.live is not None else None
    except CannotTell:
        return None
    if not isinstance(pid, int):
        return None
    try:
        with open(os.path.join(see.proc_directory, str(pid), "environ"), "rb") as file:
            pairs = (os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0"))
            return {name: value for name, found, value in pairs if found}
    except OSError:
        return None


def named_proxies(environ: Mapping[str, str]) -> list[str]:
    """The proxy variables that are set, a line each; none where all that is set is what needs no proxy."""
    named = [
        f"{name}={_without_password(environ[name])}"
        for variable in _VARIABLES
        for name in (variable, variable.upper())
        if environ.get(name)
    ]
    return named if any(not line.lower().startswith("no_proxy=") for line in named) else []


def _without_password(value: str) -> str:
    # Up to the last @, wherever the password has an @, a slash or a scheme of its own.
    before, at, host = value.rpartition("@")
    scheme = re.match(r"[a-z0-9]+://", before)
    return clean(f"{scheme[0] if scheme else ''}***@{host}" if at else value, 200)
