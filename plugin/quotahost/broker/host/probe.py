"""This script prints facts about the Python that runs it (version, packages, libpython), and why a broker can't use it.

Its arguments are the required versions of quotahost and jpype1, "" for any, and ``child`` for a Python in a process of
its own (``python.process``).

The jar contains a copy of this script. At a broker's start the shim runs it with ``python.executable``, before anybody
knows whether quotahost is installed there. ``quotahost doctor`` runs it in the same way, and imports it. So the script
uses only the standard library and the syntax of Python 3.8: an old Python must print its version, and not fail with a
syntax error.

Both run it isolated (``-I``), as the shim starts Python later: no file in the working directory, or in a folder that
the environment names, can replace a module of the standard library.
"""

import os
import platform
import shlex
import site
import sys
import sysconfig
from collections.abc import Iterator


def search_path() -> "list[str]":
    """The folders in which the broker's Python looks for modules. The folders that ``-I`` leaves out come last.

    Plugins may be in the packages of the user that runs the broker, or in a folder of PYTHONPATH.
    """
    # A virtual environment doesn't use the user's packages, with or without -I.
    if sys.prefix == sys.base_prefix and os.path.isdir(site.getusersitepackages()):
        site.addsitedir(site.getusersitepackages())
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # A relative or empty entry depends on the working directory, so it is left out.
    return list(dict.fromkeys(p for p in sys.path + named if os.path.isabs(p)))


def version_of(distribution: str, path: "list[str]") -> str:
    """The version of a distribution that is installed in one of these folders, or ""."""
    from importlib import metadata

    found = next(iter(metadata.distributions(name=distribution, path=path)), None)
    if found is None:
        return ""
    # pip under a strict umask makes files that the broker's user can't read: then the metadata seem empty.
    return found.version if "Version" in found.metadata else "in files that this user can't read"


def libpython() -> str:
    """The shared library of this interpreter, "" if there is none."""
    config = sysconfig.get_config_vars()
    names = [config.get("LDLIBRARY"), config.get("INSTSONAME")]
    # The likeliest folders come first.
    folders = [config.get("LIBDIR"), config.get("LIBPL"), config.get("PYTHONFRAMEWORKPREFIX")]
    folders += [os.path.join(sys.base_prefix, "lib"), os.path.join(sys.base_prefix, "lib64")]
    if config.get("LIBDIR") and config.get("MULTIARCH"):
        folders.append(os.path.join(config["LIBDIR"], config["MULTIARCH"]))
    # An interpreter without a shared library names an archive here, which can't be opened at run time.
    shared = [n for n in names if n and not n.endswith(".a")]
    found = filter(os.path.isfile, (os.path.join(f, n) for f in folders if f for n in shared))
    return next(map(os.path.realpath, found), "")


def attach_library(path: "list[str]") -> str:
    """The library that loads this Python into a running JVM, "" if quotahost has none for this platform."""
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
    """Everything that the shim must know before it starts this Python."""
    path = search_path()
    # These show an operator how the interpreter was built.
    variables = ("LDLIBRARY", "LIBDIR", "Py_ENABLE_SHARED")
    found = [
        ("version", ".".join(map(str, sys.version_info[:3]))),
        ("executable", sys.executable),
        ("prefix", sys.prefix),
        ("libpython", libpython()),
        ("build", ", ".join(f"{name}={sysconfig.get_config_var(name)}" for name in variables)),
        ("free-threaded", str(bool(sysconfig.get_config_var("Py_GIL_DISABLED"))).lower()),
        ("jpype1", version_of("jpype1", path)),
        ("quotahost", version_of("quotahost", path)),
        ("attach", attach_library(path)),
    ]
    return found + [("path", p) for p in path]


def problems(told: "dict[str, str]", quotahost: str, jpype: str, process: str) -> "Iterator[tuple[str, str]]":
    """Yield each reason why a broker can't start the Python with these facts, and the remedy."""
    version = told["version"]
    major, minor = map(int, version.split(".")[:2])
    if (major, minor) < (3, 11):
        yield f"it is Python {version}; 3.11 or newer is needed", "name another Python"
        return
    if told["free-threaded"] == "true":  # JPype doesn't support it
        yield "it is a free-threaded build, which quotahost does not support", "name an ordinary build of Python"
        return
    install = f"{shlex.quote(told['executable'])} -m pip install quotahost-{quotahost or 'VERSION'}-py3-none-any.whl"
    if not told["quotahost"]:
        yield "quotahost is not installed there", install
    # A child needs neither libpython nor JPype, and its first call tells the protocol version of its quotahost.
    if process == "child":
        return
    # The jar carries org.jpype, which fits exactly one version of jpype1.
    for name, needed in (("quotahost", quotahost), ("jpype1", jpype)):
        if needed and told[name] not in ("", needed):
            ours = "put its own jar into Kafka's libs (`quotahost install`)"
            yield f"it has {name} {told[name]}, this jar needs {needed}", f"{ours}, or {install}"
    if not told["jpype1"]:
        yield "jpype1 is not installed there", install
    child = "or set client.quota.callback.python.process=child"
    if not told["libpython"]:
        # The shim opens libpython by dlopen, so a Python that is linked statically can't run in a JVM.
        yield (
            f"no shared libpython found ({told['build']})",
            f"Debian, Ubuntu: apt install libpython3.{minor}; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
            f"install --force {version}; or name a Python of uv or conda, which have one; {child}",
        )
    if told["quotahost"] and not told["attach"]:
        text = "its quotahost has no library for this platform that loads Python into the broker's process"
        yield text, f"use linux x86-64 or aarch64 (glibc or musl), macOS x86-64 or arm64; {child}"


if __name__ == "__main__":
    told = facts()
    # dict() keeps only the last "path", which problems() doesn't read.
    told += [("problem", "\t".join(problem)) for problem in problems(dict(told), *sys.argv[1:4])]
    print("\n".join("=".join(fact) for fact in told))
