"""A TLS server with a self-signed certificate."""

import ssl
from pathlib import Path

from harness.system.certificates import identity, key_as_pem


def tls_server(directory: Path) -> tuple[ssl.SSLContext, Path, Path]:
    """The context of a TLS server on this machine, and the files of its certificate and of its key."""
    party, key = identity(directory, "server"), directory / "key.pem"
    key.write_text(key_as_pem(party))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(party.certificate, key)
    return made, party.certificate, key
