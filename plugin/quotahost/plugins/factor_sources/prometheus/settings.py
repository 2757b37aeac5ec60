"""The properties of the factor source ``prometheus``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from quotahost.settings.types import Text, distinct, split
from quotahost.units import Duration

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HEADER: Final = re.compile(r"[!-~]+")  # what fits into an HTTP header without breaking it


def parse_url(value: object) -> str:
    """An http or https URL without query and fragment. One with ``@`` passes; the model refuses it unshown.

    Raises:
        ValueError: anything else.
    """
    text = str(value).strip().rstrip("/")
    if "@" in text:
        return text
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HEADER.fullmatch(text):
        raise ValueError("is no base URL; write one such as http://prometheus:9090")
    if parts.query or parts.fragment:
        raise ValueError("must end before the first ? or #; write a base URL such as http://prometheus:9090")
    if parts.port == 0:  # urlsplit itself refuses what is no port
        raise ValueError("has port 0; write the port that Prometheus listens on")
    return text


def parse_label(value: object) -> str:
    """A label's name.

    Raises:
        ValueError: it is none.
    """
    text = str(value).strip()
    if not _LABEL.fullmatch(text):
        raise ValueError("is no label name; write letters, digits and _, such as instance")
    return text


def _parse_brokers(value: object) -> tuple[str, ...]:
    return distinct([part for part in split(value, ",") if part])


def _header(value: Any) -> Any:
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    if not _HEADER.fullmatch(text):
        raise ValueError("must be visible ASCII characters, without blanks")
    return value


Url = Annotated[str, BeforeValidator(parse_url)]
Label = Annotated[str, BeforeValidator(parse_label)]
Brokers = Annotated[tuple[str, ...], BeforeValidator(_parse_brokers)]
Token = Annotated[SecretStr, BeforeValidator(_header)]


class PrometheusSettings(BaseModel):
    """The properties under ``plugin.prometheus.``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Url = Field(description="base URL of the server, such as http://prometheus:9090")
    capacity: Text = Field(description="PromQL for the bytes that each volume holds in all")
    available: Text | None = Field(None, description="PromQL for the bytes left; or set consumed")
    consumed: Text | None = Field(None, description="PromQL for the bytes taken; or set available")
    broker_label: Label = Field("instance", description="label that tells brokers apart")
    volume_label: Label = Field("mountpoint", description="label that tells volumes of a broker apart")
    expected: Brokers = Field((), description="brokers, by that label, without which the state is unknown")
    interval: Duration = Field(
        timedelta(seconds=10),
        ge=timedelta(milliseconds=100),
        le=timedelta(hours=1),
        description="how often to ask",
    )
    timeout: Duration = Field(
        timedelta(seconds=5), le=timedelta(minutes=1), description="how long one query may take in all"
    )
    bearer_token: Token | None = Field(None, description="token to send")
    username: str | None = Field(None, min_length=1, pattern="^[^:]+$", description="name to send")
    password: SecretStr | None = Field(None, description="password to send")
    ca_location: Text | None = Field(None, description="file with the certificates to trust, PEM")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """An error here shows no values, so this is where the URL's are refused."""
        if "@" in self.url:
            raise ValueError("url must hold no user name, password or @; set username and password instead")
        if (self.available is None) is (self.consumed is None):
            raise ValueError("set exactly one of available and consumed")
        if (self.username is None) is not (self.password is None):
            raise ValueError("set both username and password, or neither")
        if self.bearer_token is not None and self.username is not None:
            raise ValueError("set bearer-token, or username and password, not both")
        if self.ca_location is not None and not self.url.startswith("https:"):
            raise ValueError("ca-location is for https; the url is not")
        return self
