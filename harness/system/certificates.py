"""Makes keystores and truststores for TLS with the JDK's keytool.

Tests of mutual TLS between the plugins' own Kafka client and a broker need them.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.java.jdk import tool

PASSWORD: Final = "a-secret-for-tests"


@dataclass(frozen=True)
class Identity:
    """The key and the self-signed certificate of one party."""

    name: str  # the distinguished name, ``CN=...`` or ``CN=...,O=...``; Kafka takes it as the principal's name
    keystore: Path  # a PKCS12 file with key and certificate; its password is PASSWORD
    certificate: Path  # a PEM file with only the certificate


def identity(directory: Path, common_name: str, organization: str = "") -> Identity:
    """Makes an identity in the directory; its certificate is valid for loopback and for two days."""
    name = f"CN={common_name}" + (f",O={organization}" if organization else "")
    made = Identity(name, directory / f"{common_name}.p12", directory / f"{common_name}.pem")
    _keytool(
        "-genkeypair", "-alias", "own", "-keyalg", "EC", "-dname", made.name, "-keystore", str(made.keystore),
        "-storetype", "PKCS12", "-ext", "san=ip:127.0.0.1,dns:localhost", "-validity", "2",
    )  # fmt: skip
    _keytool("-exportcert", "-rfc", "-alias", "own", "-keystore", str(made.keystore), "-file", str(made.certificate))
    return made


def truststore(directory: Path, trusted: list[Identity]) -> Path:
    """Makes a PKCS12 file with the certificates of these identities; its password is PASSWORD."""
    file = directory / "trusted.p12"
    for each in trusted:
        _keytool(
            "-importcert", "-noprompt", "-alias", each.name, "-file", str(each.certificate), "-keystore", str(file),
            "-storetype", "PKCS12",
        )  # fmt: skip
    return file


def key_as_pem(identity: Identity) -> str:
    """Returns the private key as PEM text, in the form of Kafka's ``ssl.keystore.key``."""
    command = ["openssl", "pkcs12", "-in", str(identity.keystore), "-passin", f"pass:{PASSWORD}", "-nocerts", "-nodes"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def _keytool(*args: str) -> None:
    command = [*tool("keytool"), *args, "-storepass", PASSWORD]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise OSError(f"keytool {args[0]} failed: {done.stdout} {done.stderr}")
