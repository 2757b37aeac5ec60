"""Prints facts about the Python that runs it, one ``key=value`` a line: its version, its shared library, its packages.

The jar contains a copy of this file. At a broker's start the shim runs it with the interpreter that
``python.executable`` names, when nobody knows yet whether quotahost is installed there; ``quotahost doctor`` imports
it. So it uses the standard library only, and the syntax of Python 3.8, so that an old Python is named as such instead
of failing with a syntax error.

Both run it isolated (``-I``), as the shim then starts Python: no file in the working directory, nor in a folder that
the environment names, can stand in for a module of the standard library.
"""

import os
import platform
import site
import sys
import sysconfig


def search_path() -> "list[str]":
    """Where the broker's Python looks for modules: at the end in the folders that ``-I`` leaves out.

    Plugins may be in the packages of the user whose the broker is, or in a folder of PYTHONPATH.
    """
    # A virtual environment has none of the user's packages, as without -I.
    if sys.prefix == sys.base_prefix and os.path.isdir(site.getusersitepackages()):
        site.addsitedir(site.getusersitepackages())
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # A part that isn't absolute, or is empty, depends on the working directory.
    return list(dict.fromkeys(p for p in sys.path + named if os.path.isabs(p)))


def version_of(distribution: str, path: "list[str]") -> str:
    """The version of a distribution that is installed in these folders, "" if it is in none."""
    from importlib import metadata

    found = next(iter(metadata.distributions(name=distribution, path=path)), None)
    return found.version if found else ""


def libpython_candidates() -> "list[str]":
    """Where the shared library of this interpreter may be, the likeliest first."""
    config = sysconfig.get_config_vars()
    names = [config.get("LDLIBRARY"), config.get("INSTSONAME")]
    folders = [config.get("LIBDIR"), config.get("LIBPL"), config.get("PYTHONFRAMEWORKPREFIX")]
    folders += [os.path.join(sys.base_prefix, "lib"), os.path.join(sys.base_prefix, "lib64")]
    if config.get("LIBDIR") and config.get("MULTIARCH"):
        folders.append(os.path.join(config["LIBDIR"], config["MULTIARCH"]))
    # An interpreter without a shared library names an archive here, which can't be opened at run time.
    shared = [n for n in names if n and not n.endswith(".a")]
    return [os.path.join(f, n) for f in folders if f for n in shared]


def libpython() -> str:
    """The shared library of this interpreter, "" if there is none."""
    found = [p for p in libpython_candidates() if os.path.isfile(p)]
    return os.path.realpath(found[0]) if found else ""


def attach_library(path: "list[str]") -> str:
    """The library by which a JVM that runs takes this Python in, "" if quotahost has none for this platform."""
    from importlib.machinery import PathFinder

    machine = platform.machine().lower()
    cpu = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    libc = "musl" if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "") else "gnu"
    name = "macos/libquotahost.dylib" if sys.platform == "darwin" else "linux-" + libc + "/libquotahost.so"
    package = PathFinder.find_spec("quotahost", path)
    folders = package.submodule_search_locations if package else None
    found = [os.path.join(f, "_jar", "native", cpu + "-" + name) for f in folders or []]
    return next(filter(os.path.isfile, found), "")


def facts() -> "list[tuple[str, str]]":
    """Everything that the shim must know before it starts this Python in its own process."""
    path = search_path()
    found = [
        ("version", ".".join(map(str, sys.version_info[:3]))),
        ("executable", sys.executable),
        ("libpython", libpython()),
        # The shim refuses a free-threaded build, which JPype doesn't support.
        ("free-threaded", str(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))).lower()),
        # The jar carries org.jpype, which fits exactly one version of jpype1.
        ("jpype", version_of("jpype1", path)),
        ("quotahost", version_of("quotahost", path)),
        ("attach", attach_library(path)),
    ]
    return found + [("path", p) for p in path]


if __name__ == "__main__":
    print("\n".join("=".join(fact) for fact in facts()))
