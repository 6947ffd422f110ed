"""The gateway: out of reach at each stage, silent, or by another clock; and what downloads trust and go through."""

from bcd.doctor.finding import Level
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.machine import NOW
from bcd.doctor.selftest.root import DAY, Root
from bcd.doctor.session import STAGES, SessionProbe

_SESSION = ("gateway.reachable", "gateway.certificate", "gateway.clock")


def _ends_at(root: Root, stage: str, error: str) -> None:
    reached = list(STAGES[: STAGES.index(stage)])
    root.machine.session = SessionProbe(
        host="gateway.example.com", port=443, reached=reached, failed=stage, error=error, addresses=["192.0.2.1"]
    )


def _certificate_until(root: Root, seconds: int) -> None:
    root.machine.session.certificate_until = NOW + seconds


def _gateway_says(root: Root, time: float | None) -> None:
    root.machine.session.server_time = time


def _clear_text(root: Root, **more: object) -> None:
    root.configure("node", gateway="ws://gateway.example.com/v1/node", **more)
    root.machine.session.certificate_until = None


def _behind_proxy(root: Root, *, state: str, environ: str) -> None:
    _ends_at(root, "tcp", "timed out")
    root.machine.live = {**(root.machine.live or {}), "session": {"state": state}}
    root.run_agent(f"{root.home}/etc/config.toml", environ)


def _secret_key(root: Root) -> None:
    root.configure("node", cert_file=f"{root.home}/etc/ca.pem", key_file=f"{root.home}/etc/node.key")
    root.write("etc/node.key", "key")
    root.forbid("etc/node.key")


def _no_store(root: Root) -> None:
    root.configure(ca_file=None)
    root.remove("trust/ca.pem")


GATEWAY_FAULTS: Faults = (
    Fault(
        check="gateway.configured",
        name="no gateway",
        plant=lambda root: root.configure("node", gateway=None),
        level=Level.WARN,
        says="no gateway is configured",
    ),
    Fault(
        check="gateway.configured",
        name="a gateway in clear text",
        plant=_clear_text,
        level=Level.FAIL,
        says="the gateway is not wss://",
    ),
    Fault(
        check="gateway.configured",
        name="a gateway in clear text, allowed for development",
        plant=lambda root: _clear_text(root, dev_insecure_h2c=True),
        level=Level.WARN,
        says="spoken to in clear text",
    ),
    Fault(
        check="gateway.reachable",
        name="its name is not known",
        plant=lambda root: _ends_at(root, "name", "Name or service not known"),
        level=Level.FAIL,
        says="can't be reached: name: Name or service not known",
    ),
    Fault(
        check="gateway.reachable",
        name="nobody listens",
        plant=lambda root: _ends_at(root, "tcp", "Connection refused"),
        level=Level.FAIL,
        says="can't be reached: tcp: Connection refused",
    ),
    Fault(
        check="gateway.reachable",
        name="a certificate that is not trusted",
        plant=lambda root: _ends_at(root, "tls", "certificate verify failed"),
        level=Level.FAIL,
        says="can't be reached: tls: certificate verify failed",
    ),
    Fault(
        check="gateway.reachable",
        name="something else answers there",
        plant=lambda root: _ends_at(root, "websocket", "server rejected WebSocket connection: HTTP 404"),
        level=Level.FAIL,
        says="can't be reached: websocket: server rejected WebSocket connection: HTTP 404",
    ),
    Fault(
        check="gateway.reachable",
        name="it is silent for ever",
        plant=lambda root: root.machine.hanging.add("session"),
        level=Level.UNKNOWN,
        says="timed out after 1 s while opening a session with the gateway",
        also=frozenset(_SESSION) - {"gateway.reachable"},
        timeout_seconds=1.0,
    ),
    Fault(
        check="gateway.reachable",
        name="only the agent's proxy reaches it",
        plant=lambda root: _behind_proxy(root, state="welcomed", environ="https_proxy=http://proxy:3128"),
        level=Level.OK,
        says="the agent has a session with the gateway, through its proxy",
        also=frozenset({"gateway.proxies"}),
    ),
    Fault(
        check="gateway.reachable",
        name="the agent's proxy may or may not reach it",
        plant=lambda root: _behind_proxy(root, state="connecting", environ="https_proxy=http://proxy:3128"),
        level=Level.UNKNOWN,
        says="the agent goes through a proxy",
        also=frozenset({"gateway.proxies"}),
    ),
    Fault(
        check="gateway.reachable",
        name="the agent's proxy is not for this gateway",
        plant=lambda root: _behind_proxy(
            root, state="connecting", environ="https_proxy=http://proxy:3128\nno_proxy=.example.com"
        ),
        level=Level.FAIL,
        says="can't be reached: tcp",
        also=frozenset({"gateway.proxies"}),
    ),
    Fault(
        check="gateway.reachable",
        name="this user may not read the node's key",
        plant=_secret_key,
        level=Level.UNKNOWN,
        says="this user may not read [node] key_file",
        as_nobody=True,
        also=frozenset(_SESSION) - {"gateway.reachable"},
    ),
    Fault(
        check="gateway.reachable",
        name="no gateway",
        plant=lambda root: root.configure("node", gateway=None),
        level=Level.SKIPPED,
        says="no gateway is configured",
        also=frozenset({"gateway.configured"}),
    ),
    Fault(
        check="gateway.certificate",
        name="it runs out next week",
        plant=lambda root: _certificate_until(root, 7 * DAY + 60),
        level=Level.WARN,
        says="runs out in 7 days",
    ),
    Fault(
        check="gateway.certificate",
        name="it runs out today",
        plant=lambda root: _certificate_until(root, 3600),
        level=Level.WARN,
        says="runs out within a day",
    ),
    Fault(
        check="gateway.certificate",
        name="the session did not come to it",
        plant=lambda root: _ends_at(root, "tcp", "Connection refused"),
        level=Level.SKIPPED,
        says="did not come to that",
        also=frozenset({"gateway.reachable"}),
    ),
    Fault(
        check="gateway.clock",
        name="this clock is an hour ahead",
        plant=lambda root: _gateway_says(root, NOW - 3600),
        level=Level.WARN,
        says="3600 s ahead of the gateway's",
    ),
    Fault(
        check="gateway.clock",
        name="this clock is at 1970",
        plant=lambda root: _gateway_says(root, NOW + 1e9),
        level=Level.WARN,
        says="s behind the gateway's",
    ),
    Fault(
        check="gateway.clock",
        name="the gateway says no time",
        plant=lambda root: _gateway_says(root, None),
        level=Level.SKIPPED,
        says="said no time",
    ),
    Fault(
        check="gateway.trust-store",
        name="an empty store, and nothing instead",
        plant=_no_store,
        level=Level.WARN,
        says="this machine has no trust store",
    ),
    Fault(
        check="gateway.trust-store",
        name="the configured file is missing",
        plant=lambda root: root.remove("etc/ca.pem"),
        level=Level.FAIL,
        says="[update] ca_file can't be used: No such file or directory",
    ),
    Fault(
        check="gateway.trust-store",
        name="the configured file holds no certificate",
        plant=lambda root: root.write("etc/ca.pem", "-----BEGIN NOTHING-----\n"),
        level=Level.FAIL,
        says="[update] ca_file can't be used",
    ),
    Fault(
        check="gateway.trust-store",
        name="this user may not read the configured file",
        plant=lambda root: root.forbid("etc/ca.pem"),
        level=Level.UNKNOWN,
        says="this user may not read [update] ca_file",
        as_nobody=True,
    ),
    Fault(
        check="gateway.proxies",
        name="the agent knows a proxy that this shell does not",
        plant=lambda root: root.run_agent(f"{root.home}/etc/config.toml", "https_proxy=http://me:secret@proxy:3128"),
        level=Level.NOTE,
        says="the agent uses other proxies than this shell",
    ),
    Fault(
        check="gateway.proxies",
        name="this shell knows a proxy that the agent does not",
        plant=lambda root: root.machine.environ.update(HTTPS_PROXY="http://proxy:3128"),
        level=Level.NOTE,
        says="the agent uses no proxy, unlike this shell",
    ),
)
