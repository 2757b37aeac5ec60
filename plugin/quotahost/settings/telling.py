"""Lets ``quotahost quotas`` see which suppliers a broker has, as Kafka hides the values of properties unknown to it.

Kafka has a change validated together with all that is in force, and hands the reason of a refusal on. So a change that
only sets ``tell`` of a supplier is refused by its section where the broker has that supplier, and passes where not.
Nothing is changed by that.
"""

from __future__ import annotations

from typing import Final, Self

from pydantic import BaseModel, Field, model_validator

#: The refusal of a section that is in force.
TOLD: Final = "this supplier is in force"


class Telling(BaseModel):
    """The base of a section that can be asked for."""

    tell: bool = Field(
        False, description="leave it out; `quotahost quotas` asks by it whether the supplier is in force"
    )

    @model_validator(mode="after")
    def _tell(self) -> Self:
        if self.tell:
            raise ValueError(TOLD)
        return self
