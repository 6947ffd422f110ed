"""A private key under a passphrase: PKCS #8, PBES2 with scrypt and AES-256-CBC (RFC 5958, RFC 8018, RFC 7914).

The attack: somebody finds the file and tries passphrases on it, as fast as the derivation lets them. What the library
writes by itself is PBKDF2 with 2,048 rounds, tens of thousands of guesses a second on one processor; so the outer
structure is written here, a dozen fields of fixed form. Reading is the library's, and openssl's, alone (ADR 0007).
"""

import os
from hashlib import scrypt

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

SCRYPT_N, SCRYPT_R, SCRYPT_P = 2**14, 8, 5
"""16 MiB, five times over: the most that openssl reads back without an option of its own is 32 MiB."""
_MEMORY_BYTES = 64 * 1024 * 1024
_KEY_BYTES = 32
_SALT_BYTES = 16

_INTEGER, _OCTETS, _OBJECT, _SEQUENCE = 0x02, 0x04, 0x06, 0x30
_PBES2 = bytes.fromhex("2a864886f70d01050d")
_SCRYPT = bytes.fromhex("2b06010401da47040b")
_AES256_CBC = bytes.fromhex("60864801650304012a")


def encrypt_pkcs8(plain: bytes, passphrase: bytes) -> bytes:
    """The DER EncryptedPrivateKeyInfo around `plain`, a DER PrivateKeyInfo."""
    salt, iv = os.urandom(_SALT_BYTES), os.urandom(AES256.block_size // 8)
    key = scrypt(passphrase, salt=salt, n=SCRYPT_N, r=SCRYPT_R, p=SCRYPT_P, maxmem=_MEMORY_BYTES, dklen=_KEY_BYTES)
    padder, cipher = PKCS7(AES256.block_size).padder(), Cipher(AES256(key), CBC(iv)).encryptor()
    hidden = cipher.update(padder.update(plain) + padder.finalize()) + cipher.finalize()
    derivation = _sequence(
        _der(_OBJECT, _SCRYPT),
        _sequence(_der(_OCTETS, salt), _integer(SCRYPT_N), _integer(SCRYPT_R), _integer(SCRYPT_P)),
    )
    encryption = _sequence(_der(_OBJECT, _AES256_CBC), _der(_OCTETS, iv))
    scheme = _sequence(_der(_OBJECT, _PBES2), _sequence(derivation, encryption))
    return _sequence(scheme, _der(_OCTETS, hidden))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _der(_SEQUENCE, b"".join(parts))


def _integer(value: int) -> bytes:
    # One bit more than it needs, so that the first is never taken for a sign.
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))
