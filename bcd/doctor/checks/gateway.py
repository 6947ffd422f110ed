"""Gateway and downloads: how far a session comes, whom the node trusts, and through what it goes."""

import os
import shlex
import ssl

from bcd.core.text import clean
from bcd.core.units import NODE_UNIT
from bcd.doctor.check import Registry, Result, fail, ok, skipped, unknown, warn
from bcd.doctor.checks.proxies import agent_environ, goes_through_proxy, named_proxies
from bcd.doctor.probes import CannotTell, Probes
from bcd.doctor.redaction import redact_text
from bcd.doctor.session import STAGES, SessionProbe

GATEWAY_CHECKS = Registry("gateway")

_DAY_SECONDS = 24 * 3600
_CERTIFICATE_DAYS = 14
_CLOCK_SECONDS = 60
_NOT_CONFIGURED = "no gateway is configured ([node] gateway)"


@GATEWAY_CHECKS.check(
    "configured",
    "a gateway is configured",
    why="Only a gateway's welcome confirms a release; without one every update is swapped back.",
)
def configured(see: Probes) -> Result:
    """A gateway, by wss."""
    node = see.config.node
    # It may carry a password, or a token in its query.
    shown = clean(redact_text(node.gateway or ""), 200)
    if node.gateway is None:
        return warn(
            "no gateway is configured, so nothing asks this node to update and nothing would welcome a new release",
            f"{see.config_path}: [node] gateway is not set",
            hint=f"in {shlex.quote(see.config_path)}, set [node] gateway to wss://HOST/v1/node, then restart the agent",
        )
    insecure = not node.gateway.startswith("wss://")
    if insecure and not (node.dev_insecure_h2c or see.build.fakehw):
        return fail(
            "the gateway is not wss://, so the agent does not start",
            f"{see.config_path}: [node] gateway = {shown}",
            hint=f"in {shlex.quote(see.config_path)}, let [node] gateway begin with wss://",
        )
    if insecure:
        return warn(
            "the gateway is spoken to in clear text: whoever is on the way may welcome, and so confirm, a release",
            f"{see.config_path}: [node] gateway = {shown}",
            hint="use wss:// on every machine that is not for development",
        )
    return ok(f"the gateway is {shown}")


def _session(see: Probes) -> SessionProbe:
    """The one try that three checks speak of.

    Raises:
        CannotTell: this user may not read what the session is opened with, which says nothing about the gateway.
    """
    node = see.config.node
    for key, path in (("ca_file", node.ca_file), ("cert_file", node.cert_file), ("key_file", node.key_file)):
        if path is not None:
            _require_readable(see, f"[node] {key}", path)
    see.doing("opening a session with the gateway")
    return see.session


def _require_readable(see: Probes, key: str, path: str) -> None:
    try:
        os.stat(path)
        permitted = os.access(path, os.R_OK, effective_ids=True)
    except PermissionError:
        permitted = False
    except OSError:
        return  # missing, say: whoever opens it tells
    if not permitted:
        raise CannotTell(f"this user may not read {key} {path}", see.command("doctor", root=True))


@GATEWAY_CHECKS.check(
    "reachable",
    "a session with the gateway can be opened",
    why="A node that can't reach its gateway is told of no update, and swaps a new release back at its deadline.",
    network=True,
)
def reachable(see: Probes) -> Result:
    """Name, TCP, TLS, WebSocket; the welcome is not awaited."""
    if see.config.node.gateway is None:
        return skipped(_NOT_CONFIGURED)
    probe = _session(see)
    evidence = [f"{stage}: {'reached' if stage in probe.reached else 'not reached'}" for stage in STAGES]
    if probe.addresses:
        evidence.insert(1, f"addresses: {', '.join(probe.addresses)}")
    if probe.failed is not None:
        agents = agent_environ(see)
        environ = see.environ if agents is None else agents
        if probe.failed in ("name", "tcp") and goes_through_proxy(environ, probe):
            return _behind_proxy(see, probe, [*evidence, *named_proxies(environ)])
        return fail(f"the gateway can't be reached: {probe.failed}: {probe.error}", *evidence, hint=_hint(see, probe))
    return ok(f"the gateway answers at {probe.host} port {probe.port} in {probe.seconds * 1000:.0f} ms", *evidence)


def _behind_proxy(see: Probes, probe: SessionProbe, evidence: list[str]) -> Result:
    # The agent goes through the proxy and this look did not: that it failed says nothing about the agent.
    session = see.live.get("session") if see.live is not None else None
    if isinstance(session, dict) and session.get("state") == "welcomed":
        return ok("the agent has a session with the gateway, through its proxy", *evidence)
    return unknown(
        f"could not be told: the direct way ends at {probe.failed} ({probe.error}), and the agent goes through a proxy",
        *evidence,
        hint=f"journalctl -u {NODE_UNIT} -e; the proxy has to let CONNECT {probe.host}:{probe.port} through",
    )


def _hint(see: Probes, probe: SessionProbe) -> str:
    host, config = shlex.quote(probe.host), shlex.quote(see.config_path)
    bracketed = f"[{probe.host}]" if ":" in probe.host else probe.host
    address = shlex.quote(f"{bracketed}:{probe.port}")
    match probe.failed:
        case "name":
            return f"getent hosts {host}; then the name in [node] gateway ({config}), and this machine's resolver"
        case "tcp":
            return f"nc -vz {host} {probe.port}; then the route and the firewalls on the way"
        case "tls":
            return (
                f"openssl s_client -connect {address} </dev/null; then the gateway's certificate, [node] ca_file "
                f"({config}), and this machine's clock (gateway.clock)"
            )
    return f"look at what answers at {address}, and at the path in [node] gateway ({config})"


@GATEWAY_CHECKS.check(
    "certificate",
    "the gateway's certificate is good for weeks",
    why="On the day it runs out the whole fleet loses its gateway at once.",
    network=True,
)
def certificate(see: Probes) -> Result:
    """Days left of the gateway's certificate."""
    if see.config.node.gateway is None:
        return skipped(_NOT_CONFIGURED)
    probe = _session(see)
    until = probe.certificate_until
    if until is None:
        return skipped("no certificate was seen: the session did not come to that")
    days = (until - see.clock.wall()) / _DAY_SECONDS
    evidence = f"{probe.host} port {probe.port}: certificate good for {days:.1f} more days"
    if days < _CERTIFICATE_DAYS:
        return warn(
            f"the gateway's certificate runs out {_in_days(days)}",
            evidence,
            hint="renew it at the gateway, before the whole fleet loses it at once",
        )
    return ok(f"the gateway's certificate is good for {int(days)} days", evidence)


def _in_days(days: float) -> str:
    if days < 1:
        return "within a day"
    return f"in {int(days)} day{'' if int(days) == 1 else 's'}"


@GATEWAY_CHECKS.check(
    "clock",
    "this machine's clock agrees with the gateway's",
    why="Certificates and manifests expire by the clock; one that is wrong refuses good releases.",
    network=True,
)
def clock(see: Probes) -> Result:
    """The wall clock against the gateway's Date header."""
    if see.config.node.gateway is None:
        return skipped(_NOT_CONFIGURED)
    probe = _session(see)
    if probe.server_time is None:
        return skipped("the gateway said no time")
    apart = probe.asked_at - probe.server_time
    evidence = f"here {probe.asked_at:.0f}, gateway {probe.server_time:.0f} (Unix seconds)"
    if abs(apart) > _CLOCK_SECONDS:
        where = "ahead of" if apart > 0 else "behind"
        return warn(
            f"this clock is {abs(apart):.0f} s {where} the gateway's",
            evidence,
            hint="timedatectl status; then mend the time source of whichever is wrong",
        )
    return ok(f"this clock is within {max(1, round(abs(apart)))} s of the gateway's", evidence)


@GATEWAY_CHECKS.check(
    "trust-store",
    "there are certificates to trust",
    why="Without a trust store no https:// server can be believed, so every download fails.",
)
def trust_store(see: Probes) -> Result:
    """The system's trust store, and the configured files."""
    config = see.config
    for key, path in (("[node] ca_file", config.node.ca_file), ("[update] ca_file", config.update.ca_file)):
        if path is None:
            continue
        _require_readable(see, key, path)
        see.doing(f"reading {path}")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except OSError as error:
            return fail(
                f"{key} can't be used: {clean(error.strerror or str(error))}",
                f"{see.config_path}: {key} = {path}",
                hint=f"put the authority's certificate (PEM) at {shlex.quote(path)}, or correct {key} in "
                f"{shlex.quote(see.config_path)}",
            )
    stores = see.trust_stores()
    found = [path for path in stores if _has_certificates(path)]
    if not found and config.update.ca_file is None:
        return warn(
            "this machine has no trust store, so downloads from public servers fail",
            *(f"{path}: {'empty' if os.path.exists(path) else 'missing'}" for path in stores),
            hint=f"install the package ca-certificates, or set [update] ca_file in {shlex.quote(see.config_path)}",
        )
    return ok("there are certificates to trust", *found)


def _has_certificates(path: str) -> bool:
    # openssl makes /etc/ssl/certs, which holds nothing before ca-certificates is installed.
    try:
        return bool(os.listdir(path)) if os.path.isdir(path) else os.path.getsize(path) > 0
    except OSError:
        return False
