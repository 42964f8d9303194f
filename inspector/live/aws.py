"""AWS Signature Version 4 for Bedrock, with botocore's signer and credentials: the only module that imports it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from inspector.sessions import redact
from loop_core.client.address import Headers
from loop_core.errors import CallerError

SERVICE = "bedrock"
_REGION = re.compile(
    r"^https?://(?:[^/?#]*@)?(?:[^/?#]+\.)?bedrock-runtime(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.", re.IGNORECASE)
_SIGNED = frozenset({"content-type"})
"""The signed headers besides host, date and token. A proxy may change others, which would break the signature."""


class AwsSigner:
    """Signs requests with the credentials that botocore finds: environment, profile, SSO, container, instance."""

    def __init__(self, region: str | None) -> None:
        """Finds the credentials. Raises `CallerError` if there are none."""
        self._words: dict[str, None] = {}
        try:
            session = Session()
            # AWS_DEFAULT_REGION, else ~/.aws/config
            self.region: str | None = region or session.get_config_variable("region")
            self._credentials = session.get_credentials()
            if self._credentials is not None:
                # Renews temporary credentials, so that an expired SSO session is reported before anything is sent.
                self._frozen()
        except BotoCoreError as why:
            raise CallerError(f"AWS credentials: {_message(why)}") from None
        if self._credentials is None:
            raise CallerError("no key and no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE or "
                              "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")

    @property
    def secrets(self) -> tuple[str, ...]:
        """All keys, tokens and signatures used so far."""
        return tuple(self._words)

    def __call__(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Headers:
        """The headers with date, token and signature for this request. Raises `CallerError` if the region is not known,
        or the credentials cannot be renewed."""
        # AWS refuses a signature for a region that is not the host's.
        region = region_of(url) or self.region
        if not region:
            raise CallerError("no AWS region: set AWS_REGION, or name the host with --base-url")
        try:
            frozen = self._frozen()
            request = AWSRequest(method, url, {name: value for name, value in headers if name.lower() in _SIGNED}, body)
            SigV4Auth(frozen, SERVICE, region).add_auth(request)
        except BotoCoreError as why:
            raise CallerError(f"AWS credentials: {_message(why)}") from None
        auth_headers = tuple((name, value) for name, value in request.headers.items() if name.lower() not in _SIGNED)
        signature = dict(auth_headers)["Authorization"].rpartition("Signature=")[2]
        # A signature is a secret while it is valid, so it is masked in the recording.
        self._words[signature] = None
        return auth_headers

    def _frozen(self) -> object:
        frozen = self._credentials.get_frozen_credentials()
        for word in (frozen.access_key, frozen.secret_key, frozen.token):
            if word:
                self._words[word] = None
        return frozen


def region_of(url: str) -> str | None:
    """The region in a Bedrock host name; None if it names none."""
    found = _REGION.match(url)
    return found[1].lower() if found else None


def _message(why: BotoCoreError) -> str:
    return redact.text(" ".join(str(why).split()))
