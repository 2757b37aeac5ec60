"""Distributions with entry points, as pip would leave them in ``site-packages``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

QUOTAHOST = {
    "quotahost.suppliers": {
        "static": "quotahost.plugins.suppliers.static:Static",
        "client-quotas": "quotahost.plugins.suppliers.client_quotas:ClientQuotas",
        "overrides": "quotahost.plugins.suppliers.overrides:Overrides",
        "controller-mutation": "quotahost.plugins.suppliers.controller_mutation:ControllerMutation",
        "cluster-quota": "quotahost.plugins.suppliers.cluster_quota:ClusterQuota",
    },
    "quotahost.factor_sources": {
        "fixed": "quotahost.plugins.factor_sources.fixed:Fixed",
        "local": "quotahost.plugins.factor_sources.local:Local",
        "cluster-volumes": "quotahost.plugins.factor_sources.cluster_volumes.source:ClusterVolumesSource",
        "snapshots": "quotahost.plugins.factor_sources.snapshots:Snapshots",
        "log-dirs": "quotahost.plugins.factor_sources.log_dirs:LogDirs",
        "prometheus": "quotahost.plugins.factor_sources.prometheus.source:Prometheus",
    },
    "quotahost.policies": {"limits": "quotahost.plugins.policies.limits:Limits"},
    "quotahost.tasks": {
        "publish-volumes": "quotahost.plugins.tasks.publish_volumes:PublishVolumes",
        "publish-usage": "quotahost.plugins.tasks.publish_usage:PublishUsage",
    },
}


def distribute(
    site: Path,
    name: str,
    entry_points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str] | None = None,
    version: str = "1.0",
) -> None:
    """Lay one distribution into a folder that is, or will be, on ``sys.path``."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
        for group, points in entry_points.items()
    )
    (info / "entry_points.txt").write_text("".join(groups))
    for module, code in (modules or {}).items():
        (site / f"{module}.py").write_text(dedent(code))


def distribute_quotahost(site: Path, version: str = "0.1.0") -> None:
    """Quotahost's own, for tests that run from a source tree."""
    distribute(site, "quotahost", QUOTAHOST, version=version)
