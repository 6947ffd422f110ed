"""Whom the node trusts to be its gateway: the system's store, the configured authority, and its own certificate."""

import ssl

import truststore

from bcd.core.config import NodeConfig


def gateway_trust(config: NodeConfig) -> ssl.SSLContext:
    """The TLS context for a session.

    Raises:
        OSError: a configured file can't be read or is none of its kind (ssl.SSLError is one).
    """
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.ca_file is not None:
        context.load_verify_locations(config.ca_file)
    if config.cert_file is not None:
        context.load_cert_chain(config.cert_file, config.key_file)
    return context
