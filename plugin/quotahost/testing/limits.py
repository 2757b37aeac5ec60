"""Checks what a policy says of a volume's limits (contract 12) against the factor that it gave the volume."""

from __future__ import annotations

from typing import Any, Final

from quotahost.api import QuotaPolicy
from quotahost.model import Limit, Volume
from quotahost.model.volumes import byte_limits
from quotahost.testing.caller import ContractBroken
from quotahost.testing.host import FakeHost

_LIMITS: Final = ("soft_limit", "hard_limit")
_BREACHES: Final = ("breaches_soft_limit", "breaches_hard_limit")


def check_limits(host: FakeHost[QuotaPolicy], volume: Volume, factor: float) -> None:
    """Ask a policy that knows its limits for those of one volume; ``factor`` is what it gave it.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    lacking = [name for name in (*_LIMITS, *_BREACHES) if not callable(getattr(host.plugin, name, None))]
    if len(lacking) == 4:
        return
    if lacking:
        raise ContractBroken(12, f"a policy has all four methods of limits or none; this one lacks {lacking[0]}()")
    limits = [_ask(host, name, volume) for name in _LIMITS]
    _check_types(limits, (Limit, type(None)), "a Limit or None", volume)
    breaches = [_ask(host, name, volume) for name in _BREACHES]
    _check_types(breaches, (bool,), "True or False", volume)
    found = byte_limits(volume, *limits)
    if all(limits) and found and found.contradict:
        raise ContractBroken(12, f"{volume} reaches its hard limit, {limits[1]}, before its soft one, {limits[0]}")
    _check_breaches(breaches[0], breaches[1], factor, volume)


def _ask(host: FakeHost[QuotaPolicy], name: str, volume: Volume) -> Any:
    return host.call(f"{name}() for {volume}", lambda: getattr(host.plugin, name)(volume))


def _check_types(answers: list[Any], types: tuple[type, ...], words: str, volume: Volume) -> None:
    for answer in answers:
        if not isinstance(answer, types):
            raise ContractBroken(6, f"{answer!r} is no answer about the limits of {volume}: it must be {words}")


def _check_breaches(soft: bool, hard: bool, factor: float, volume: Volume) -> None:
    if hard and not soft:
        raise ContractBroken(12, f"{volume} breaches its hard limit, but not its soft one")
    if hard and factor != 0:
        raise ContractBroken(12, f"{volume} breaches its hard limit, but its factor is {factor} and not 0")
    if not soft and factor != 1:
        raise ContractBroken(12, f"{volume} doesn't breach its soft limit, but its factor is {factor} and not 1")
