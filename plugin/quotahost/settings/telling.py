"""Lets ``quotahost quotas`` see what a broker's plugin has, as Kafka hides the values of properties unknown to it.

Kafka has a change validated together with all that is in force, and hands the reason of a refusal on. So a section with
``tell`` set is refused, and the reason tells what the section has otherwise. Nothing is changed by that.
"""

from __future__ import annotations

import json
from typing import Final, Self

from pydantic import BaseModel, Field, model_validator

#: What begins the answer; JSON follows.
TOLD: Final = "this is told: "


class Telling(BaseModel):
    """The base of a section that can be asked for."""

    tell: bool = Field(False, description="leave it out; `quotahost quotas` asks by it what is in force")

    def told(self) -> object:
        """What JSON can hold of the section; nothing secret."""
        return {}

    @model_validator(mode="after")
    def _tell(self) -> Self:
        if self.tell:
            raise ValueError(f"{TOLD}{json.dumps(self.told())}")
        return self
