"""What every test of the node runs under: a machine that trusts somebody else, and no proxy on the way to loopback."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority

_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "socks_proxy", "wss_proxy", "ws_proxy", "no_proxy")


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The authority that the node is configured to trust."""
    return trustme.CA()


@pytest.fixture(scope="session")
def system_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine's own trust store: it knows one authority, not the one above."""
    store = tmp_path_factory.mktemp("system") / "certificates.pem"
    trustme.CA().cert_pem.write_to_path(os.fspath(store))
    return store


@pytest.fixture(scope="session")
def lab_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom the lab's gateway and the node trust."""
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def gateway(lab_authority: Authority) -> Iterator[Gateway]:
    """The lab's gateway."""
    made = Gateway(lab_authority.server_context(asks_for_certificate=True))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch, system_store: Path) -> None:
    for name in _PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(system_store))
    monkeypatch.setenv("SSL_CERT_DIR", os.fspath(system_store.parent / "none"))
