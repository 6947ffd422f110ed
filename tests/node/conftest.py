"""What every test of the node runs under: one authority for the whole run, and no proxy on the way to loopback."""

import pytest
import trustme

_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "socks_proxy", "wss_proxy", "ws_proxy", "no_proxy")


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The authority that the node is configured to trust."""
    return trustme.CA()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
