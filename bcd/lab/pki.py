"""The lab's own certificate authority: real TLS on loopback, trusted by nobody but the lab's nodes.

Every certificate is P-256, valid from a day ago for a year, and carries what strict verifiers ask for (key usage,
key identifiers): Python 3.13 and newer are such.
"""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED = timedelta(days=1)
_VALID = timedelta(days=365)
_ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that keeps its files in one directory."""

    def __init__(self, directory: Path) -> None:
        """Make the authority and write `ca.pem` into `directory`, which must exist."""
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bcd lab CA")])
        public = self._key.public_key()
        certificate = (
            _started(self._name, self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "ca.pem"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def for_server(self) -> Credentials:
        """Credentials for `localhost` and the loopback addresses."""
        names: list[x509.GeneralName] = [x509.DNSName("localhost")]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
        return self._issue("server", ExtendedKeyUsageOID.SERVER_AUTH, names)

    def for_node(self, node_id: str) -> Credentials:
        """Credentials whose common name is `node_id`: by them a gateway knows a node before it says a word."""
        return self._issue(node_id, ExtendedKeyUsageOID.CLIENT_AUTH, [x509.DNSName(node_id)])

    def server_context(self, *, asks_for_certificate: bool = False) -> ssl.SSLContext:
        """A context for a listening side; `asks_for_certificate` demands one of this authority's from each peer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        credentials = self.for_server()
        context.load_cert_chain(credentials.certificate, credentials.key)
        if asks_for_certificate:
            context.load_verify_locations(self.certificate)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _issue(self, name: str, usage: x509.ObjectIdentifier, names: list[x509.GeneralName]) -> Credentials:
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key()
        certificate = (
            _started(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), self._name, public)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        made = Credentials(certificate=self._directory / f"{name}.pem", key=self._directory / f"{name}.key")
        made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        made.key.touch(mode=0o600)
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return made


def _started(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    begins = datetime.now(UTC) - _BACKDATED
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + _VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
