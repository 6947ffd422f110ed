"""Gateway and downloads: how far a session comes, whom the node trusts, and through what it goes."""

import os
import ssl

from bcd.core.text import clean
from bcd.doctor.check import Registry, Result, fail, note, ok, skipped, unknown, warn
from bcd.doctor.probes import Probes
from bcd.doctor.session import STAGES

GATEWAY_CHECKS = Registry("gateway")

_DAY_SECONDS = 24 * 3600
_CERTIFICATE_DAYS = 14
_CLOCK_SECONDS = 60
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_NOT_CONFIGURED = "no gateway is configured ([node] gateway)"
_HINTS = {
    "name": "check the name in [node] gateway, and this machine's resolver: resolvectl query {host}",
    "tcp": "check the route and the firewall on the way to {host} port {port}",
    "tls": "check the gateway's certificate, [node] ca_file, and this machine's clock: "
    "openssl s_client -connect {host}:{port}",
    "websocket": "check the path in [node] gateway, and what answers there",
}


@GATEWAY_CHECKS.check(
    "configured",
    "a gateway is configured",
    why="Only a gateway's welcome confirms a release; without one every update is swapped back.",
)
def configured(see: Probes) -> Result:
    """A gateway, by wss."""
    node = see.config.node
    if node.gateway is None:
        return warn(
            "no gateway is configured, so nothing asks this node to update and nothing would welcome a new release",
            f"{see.config_path}: [node] gateway is not set",
            hint="set [node] gateway to wss://…",
        )
    insecure = not node.gateway.startswith("wss://")
    if insecure and not (node.dev_insecure_h2c or see.build.fakehw):
        return fail(
            "the gateway is not wss://, so the agent does not start",
            f"[node] gateway = {clean(node.gateway, 200)}",
            hint="use wss://",
        )
    if insecure:
        return warn(
            "the gateway is spoken to in clear text: whoever is on the way may welcome, and so confirm, a release",
            f"[node] gateway = {clean(node.gateway, 200)}",
            hint="use wss:// on every machine that is not for development",
        )
    return ok(f"the gateway is {clean(node.gateway, 200)}")


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
    see.doing("opening a session with the gateway")
    probe = see.session
    evidence = [f"{stage}: {'reached' if stage in probe.reached else 'not reached'}" for stage in STAGES]
    if probe.addresses:
        evidence.insert(1, f"addresses: {', '.join(probe.addresses)}")
    if probe.failed is not None:
        hint = _HINTS[probe.failed].format(host=probe.host, port=probe.port)
        return fail(f"the gateway can't be reached: {probe.failed}: {probe.error}", *evidence, hint=hint)
    return ok(f"the gateway answers at {probe.host} port {probe.port} in {probe.seconds * 1000:.0f} ms", *evidence)


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
    until = see.session.certificate_until
    if until is None:
        return skipped("no certificate was seen: the session did not come to that")
    days = (until - see.clock.wall()) / _DAY_SECONDS
    evidence = f"{see.session.host}: certificate good for {days:.1f} more days"
    if days < _CERTIFICATE_DAYS:
        return warn(
            f"the gateway's certificate runs out in {max(0, int(days))} days", evidence, hint="renew it at the gateway"
        )
    return ok(f"the gateway's certificate is good for {int(days)} days", evidence)


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
    probe = see.session
    if probe.server_time is None:
        return skipped("the gateway said no time")
    apart = probe.asked_at - probe.server_time
    evidence = f"here {probe.asked_at:.0f}, gateway {probe.server_time:.0f} (Unix seconds)"
    if abs(apart) > _CLOCK_SECONDS:
        where = "ahead of" if apart > 0 else "behind"
        return warn(
            f"this clock is {abs(apart):.0f} s {where} the gateway's",
            evidence,
            hint="timedatectl status; mend the time source",
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
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(path)
        except PermissionError:
            return unknown(f"could not be told: this user may not read {key} {path}", hint="sudo bcd doctor")
        except OSError as error:
            return fail(
                f"{key} can't be used: {clean(error.strerror or str(error))}", f"{key} = {path}", hint=f"correct {key}"
            )
    paths = ssl.get_default_verify_paths()
    stores = [path for path in (paths.cafile, paths.capath, "/etc/ssl/certs/ca-certificates.crt") if path]
    found = [path for path in stores if os.path.exists(path)]
    if not found and config.update.ca_file is None:
        return warn(
            "this machine has no trust store, so downloads from public servers fail",
            *(f"{path}: missing" for path in stores),
            hint="install the package ca-certificates, or set [update] ca_file",
        )
    return ok("there are certificates to trust", *found)


@GATEWAY_CHECKS.check(
    "proxies",
    "which proxies the environment names",
    why="The service's environment is not your shell's: a proxy that only one of them knows explains most downloads that "
    "work by hand and not from the agent.",
)
def proxies(see: Probes) -> Result:
    """The variables' names and hosts, never their passwords."""
    named = [
        f"{name}={_without_password(see.environ[name])}"
        for variable in _PROXY_VARIABLES
        for name in (variable, variable.upper())
        if see.environ.get(name)
    ]
    if not named:
        return ok("no proxy is named in this environment")
    return note("proxies are named in this environment; the service's own decides", *named)


def _without_password(value: str) -> str:
    scheme, found, rest = value.rpartition("://")
    user, at, host = rest.rpartition("@")
    return clean(f"{scheme}{found}{'***@' if at else ''}{host if user or at else rest}", 200)
