"""Ways to a server on this machine: over TLS, through a proxy, both or neither, with a real
certificate.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.local_server import LocalServer

FAR = "models.example"
"""A host that only the proxy knows."""


@dataclass(frozen=True)
class Authority:
    """A self-signed certificate for this machine and for `FAR`."""

    certificate: Path
    key: Path

    @classmethod
    def new(cls, folder: Path) -> Authority:
        """Create a certificate in this folder's files."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
        names = [x509.DNSName(FAR), x509.IPAddress(ip_address("127.0.0.1"))]
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        made = cls(folder / "certificate.pem", folder / "key.pem")
        made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
        return made

    def context(self) -> ssl.SSLContext:
        """The server's TLS context."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


class ProxyServer(LocalServer):
    """A proxy with one target for each kind of address; with `refusal`, it answers all requests
    with that.
    """

    def __init__(self, plain: str, tls: str, refusal: Sequence[bytes] = ()) -> None:
        """`plain` and `tls` are the URLs of the servers to which http:// and https:// addresses
        lead.
        """
        super().__init__()
        self._plain = plain
        self._tls = tls
        self._refusal = refusal
        self.targets = list[str]()
        """The requested targets, with their methods."""

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.targets.append(head.decode().partition(" HTTP/")[0])
        if self._refusal:
            writer.writelines(self._refusal)
            await writer.drain()
            return
        is_tunnel = head.startswith(b"CONNECT ")
        host, port = (self._tls if is_tunnel else self._plain).rpartition("/")[2].split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                far_writer.write(head)
            there = asyncio.ensure_future(_piped(reader, far_writer))
            await _piped(far_reader, writer)
            there.cancel()
        finally:
            far_writer.close()


async def _piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):  # then the other direction also ends
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
