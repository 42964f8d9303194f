"""What encrypts the connections of the server; the one module of it that imports ssl."""

from __future__ import annotations

from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError
from typing import TypeAlias

from loop_core.errors import CallerError

Certificate: TypeAlias = SSLContext


def load_certificate(cert: str, key: str | None) -> Certificate:
    """A certificate chain and its private key, from files.

    Raises:
        CallerError: it cannot be used.
    """
    made = SSLContext(PROTOCOL_TLS_SERVER)
    try:
        made.load_cert_chain(cert, key, password=lambda: "")  # nobody is asked for one
    except SSLError as why:
        said = f"no certificate with its unencrypted key, in PEM ({why.reason or 'unknown'})"
        raise CallerError(f"--cert {cert}: {said}") from None
    except OSError as why:
        raise CallerError(f"--cert {cert}{f', --key {key}' if key else ''}: {why.strerror or why}") from None
    return made
