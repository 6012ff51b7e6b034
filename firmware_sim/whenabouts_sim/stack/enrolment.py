"""Certificates for everybody in a stack, made by the authority that `whenabouts-cloud enrol` uses."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from whenabouts_cloud.enrol.folder import (
    CERTIFICATE,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    GATEWAYS,
    AuthorityFolder,
    create,
    opened,
)
from whenabouts_cloud.enrol.mosquitto import CONFIGURATION
from whenabouts_cloud.enrol.names import INGEST, PUBLISHER, ingest_identity

HOST = "127.0.0.1"
DAYS = 2


class Enrolment:
    """An authority in a folder. groups: by the identity of each gateway that will have a certificate. ingests: the sites of
    each of several ingests, by its name.
    """

    def __init__(
        self, folder: Path, port: int, groups: Mapping[str, Sequence[str]], ingests: Mapping[str, Sequence[str]] = {}
    ) -> None:
        self._folder = folder
        self._authority = folder / "authority"
        now_s = int(time.time())
        create(self._authority, None, now_s)
        with opened(self._authority, None) as ca:
            for identity, of in groups.items():
                ca.register = ca.register.enrolled(identity, (), of)
                self._give(ca, identity, now_s)
            for name, sites in ingests.items():
                ca.register = ca.register.with_ingest(ingest_identity(name), sites)
            for identity in (INGEST, PUBLISHER, *map(ingest_identity, ingests)):
                self._give(ca, identity, now_s)
            ca.enrol_broker(folder / "broker", [HOST], port, now_s, DAYS, bind=HOST)

    def _give(self, ca: AuthorityFolder, identity: str, now_s: int) -> None:
        ca.enrol_client(identity, self._folder / "clients" / identity, now_s, DAYS)

    @property
    def configuration(self) -> Path:
        """The file that mosquitto is started with."""
        return self._folder / "broker" / CONFIGURATION

    @property
    def gateways(self) -> Path:
        """Which gateways may publish which streams, for the ingest."""
        return self._authority / GATEWAYS

    def files(self, identity: str) -> tuple[Path, Path, Path]:
        """Certificates to trust, own certificate and key of somebody enrolled."""
        own = self._folder / "clients" / identity
        return own / CERTIFICATE, own / CLIENT_CERTIFICATE, own / CLIENT_KEY

    def context(self, identity: str) -> ssl.SSLContext:
        """TLS as somebody enrolled."""
        ca, certificate, key = self.files(identity)
        context = ssl.create_default_context(cafile=str(ca))
        context.load_cert_chain(certificate, key)
        return context
