"""Installed packages with entry points, as pip would leave them in ``site-packages``."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

_PROJECT = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]


def distribute(
    site: Path,
    name: str,
    entry_points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str] | None = None,
    version: str = "1.0",
) -> None:
    """Write one distribution to a folder that is, or will be, on ``sys.path``."""
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


def distribute_quotahost(site: Path) -> None:
    """Write quotahost's own distribution, for tests that run from a source tree."""
    distribute(site, "quotahost", _PROJECT["entry-points"], version="0.1.0")


def plant(folder: Path) -> Callable[[], list[str]]:
    """Write modules that an interpreter would import instead of its own if this folder were on its path.

    Returns:
        A function that returns which of these modules have run since then.
    """
    folder.mkdir()
    for module in ("sysconfig", "json", "traceback", "sitecustomize", "jpype"):
        code = f"open({str(folder)!r} + '/{module}.ran', 'w').close()\nraise SystemExit('planted')\n"
        (folder / f"{module}.py").write_text(code)
    return lambda: sorted(file.stem for file in folder.glob("*.ran"))
