"""Where a request may go, through what, and whom it trusts there: URLs, proxies, certificates.

Guarantees: no URL passes but plain https (or http where clear text is let through) with a host and without credentials
(field report 17), judged by the parser that will connect to it; the environment's proxies are honoured (field report
41); trust is the system's, plus one file of the operator's (spec/self-update.md section 11). And what an error shows of
a URL holds neither a password nor a query, which may be a secret of its own.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.request import proxy_bypass

import truststore
from urllib3.util import Url, parse_url

from bcd.core.errors import HostError
from bcd.core.text import clean
from bcd.core.watch import Broken

PROXY_HINT = "look at the proxy variables in the environment of bcd's service"
_SHOWN = 200
"""Characters of a URL that an error shows."""
_PORTS = {"http": 80, "https": 443}


def trust(ca_file: Path | None) -> ssl.SSLContext:
    """The system's trust store, and `ca_file`'s certificates beside it.

    Raises:
        HostError: `io-error`, `ca_file` cannot be read or holds no certificate.
    """
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise HostError(
                "io-error",
                f"the CA file {ca_file} cannot be used: {error.strerror or error}",
                "look at ca_file in the [update] table of the configuration",
            ) from error
    return context


def checked(url: str, *, clear_text: bool) -> Url:
    """Parse a URL that may be fetched, by the parser that will connect to it, without its fragment.

    Raises:
        Broken: another scheme, no host, a password, or no URL at all.
    """
    try:
        parsed = parse_url(url)
    except ValueError as error:
        raise Broken("it is no URL") from error
    allowed = ("https", "http") if clear_text else ("https",)
    if parsed.scheme not in _PORTS:
        # Shown by its scheme alone: without an authority, any part of it may be a password.
        raise Broken(f"{clean(parsed.scheme or 'no scheme', 20)} instead of {' or '.join(allowed)}")
    if parsed.scheme not in allowed:
        raise Broken(f"{shown(parsed)} is {parsed.scheme} instead of {' or '.join(allowed)}")
    if not parsed.host:
        raise Broken("it has no host")
    if parsed.auth is not None:
        raise Broken(f"it has credentials for {shown(parsed)}")
    return parsed._replace(fragment=None)


def shown(url: Url) -> str:
    """A URL as errors show it: no user, no password, no query."""
    query = None if url.query is None else "…"
    return clean(url._replace(auth=None, query=query, fragment=None).url, _SHOWN)


def proxy_for(url: Url, environ: Mapping[str, str]) -> Url | None:
    """The proxy that the environment names for `url`: `https_proxy`, `all_proxy`, and `no_proxy` against them.

    The lower-case spelling goes before the upper-case one; an empty value means no proxy.

    Raises:
        Broken: the proxy is named by no URL, or speaks another protocol than http or https.
    """
    named = _variable(environ, f"{url.scheme}_proxy")
    if named is None:
        named = _variable(environ, "all_proxy")
    if not named:
        return None
    exceptions = {"no": _variable(environ, "no_proxy") or ""}
    host = (url.host or "").strip("[]")
    if any(proxy_bypass(name, exceptions) for name in (f"{host}:{url.port or _PORTS[url.scheme or 'https']}", host)):
        return None
    try:
        proxy = parse_url(named if "://" in named else f"http://{named}")
    except ValueError as error:
        raise Broken("the proxy in the environment is no URL", PROXY_HINT) from error
    if proxy.scheme not in _PORTS or not proxy.host or proxy.path not in (None, "", "/"):
        # Its scheme alone: where a password holds a slash, what looks like a host is part of the password.
        scheme = clean(proxy.scheme or "", 20)
        raise Broken(f"the proxy in the environment ({scheme}) is none that bcd can speak to", PROXY_HINT)
    return Url(proxy.scheme, proxy.auth, proxy.host, proxy.port or _PORTS[proxy.scheme])


def _variable(environ: Mapping[str, str], name: str) -> str | None:
    value = environ.get(name, environ.get(name.upper()))
    return None if value is None else value.strip()
