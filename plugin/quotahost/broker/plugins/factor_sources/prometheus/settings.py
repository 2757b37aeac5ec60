"""The properties of the factor source ``prometheus``, read by the broker's settings (``plugin.prometheus.*``).

An error names the property and what to write instead, and never shows a secret: not even one in a URL.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from quotahost.settings.types import Text, distinct, split
from quotahost.units import Duration

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HEADER: Final = re.compile(r"[!-~]+")  # characters that can't break out of an HTTP header


def _parse_url(value: object) -> str:
    text = str(value).strip().rstrip("/")
    if "@" in text:
        return text  # refused by the model, whose errors don't show the value: it may contain a password
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HEADER.fullmatch(text):
        raise ValueError("is no base URL; write one such as http://prometheus:9090")
    if parts.query or parts.fragment:
        raise ValueError("must end before the first ? or #; write a base URL such as http://prometheus:9090")
    if parts.port == 0:  # urlsplit itself refuses any other text that is no port
        raise ValueError("has port 0; write the port that Prometheus listens on")
    return text


def _parse_label(value: object) -> str:
    text = str(value).strip()
    if not _LABEL.fullmatch(text):
        raise ValueError("is no label name; write letters, digits and _, such as instance")
    return text


def _parse_brokers(value: object) -> tuple[str, ...]:
    return distinct([part for part in split(value, ",") if part])


def _check_header(value: Any) -> Any:
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    if not _HEADER.fullmatch(text):
        raise ValueError("must be visible ASCII characters, without blanks")
    return value


_Url = Annotated[str, BeforeValidator(_parse_url)]
_Label = Annotated[str, BeforeValidator(_parse_label)]
_Brokers = Annotated[tuple[str, ...], BeforeValidator(_parse_brokers)]
_Token = Annotated[SecretStr, BeforeValidator(_check_header)]


class PrometheusSettings(BaseModel):
    """The properties under ``plugin.prometheus.``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: _Url = Field(description="base URL of the server, such as http://prometheus:9090")
    capacity: Text = Field(description="PromQL for the capacity of each volume in bytes")
    available: Text | None = Field(None, description="PromQL for the bytes available; or set consumed")
    consumed: Text | None = Field(None, description="PromQL for the bytes consumed; or set available")
    broker_label: _Label = Field("instance", description="label whose value names the broker")
    volume_label: _Label = Field("mountpoint", description="label whose value names the volume of a broker")
    expected: _Brokers = Field((), description="brokers, by that label, without which the state is unknown")
    interval: Duration = Field(
        timedelta(seconds=10), ge=timedelta(milliseconds=100), le=timedelta(hours=1), description="how often to ask"
    )
    timeout: Duration = Field(
        timedelta(seconds=5), le=timedelta(minutes=1), description="how long one query may take in all"
    )
    bearer_token: _Token | None = Field(None, description="token to send")
    username: str | None = Field(None, min_length=1, pattern="^[^:]+$", description="user name to send")
    password: SecretStr | None = Field(None, description="password to send")
    ca_location: Text | None = Field(None, description="file with the certificates to trust, PEM")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Check the properties together. Errors here show no values, so a URL that may contain a password ends here."""
        if "@" in self.url:
            raise ValueError("url must not hold a user name, password or @; set username and password instead")
        if (self.available is None) is (self.consumed is None):
            raise ValueError("set exactly one of available and consumed")
        if (self.username is None) is not (self.password is None):
            raise ValueError("set both username and password, or neither")
        if self.bearer_token is not None and self.username is not None:
            raise ValueError("set bearer-token, or username and password, not both")
        if self.ca_location is not None and not self.url.startswith("https:"):
            raise ValueError("ca-location is for https; the url is not")
        return self
