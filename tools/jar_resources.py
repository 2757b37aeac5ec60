"""Makes the files that the jar has beside its classes: attach libraries, org.jpype, versions, and the host's protocol.

``python tools/jar_resources.py`` writes build/jar-resources and build/org.jpype.jar; the Maven build packs them.
The compiler is zig, from the PyPI package ziglang, because it builds for all platforms on one machine. Libraries
that are newer than their source are not built again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

from quotahost.broker.host import protocol
from quotahost.cli.doctor.kafka import TRIED

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "java-shim/src/main/native/attach.c"
BUILD = ROOT / "build"
RESOURCES = BUILD / "jar-resources"

# zig target -> file in the jar; glibc 2.17 is that of RHEL 7.
TARGETS = {
    "x86_64-linux-gnu.2.17": "x86_64-linux-gnu/libquotahost.so",
    "aarch64-linux-gnu.2.17": "aarch64-linux-gnu/libquotahost.so",
    "x86_64-linux-musl": "x86_64-linux-musl/libquotahost.so",
    "aarch64-linux-musl": "aarch64-linux-musl/libquotahost.so",
    "x86_64-macos": "x86_64-macos/libquotahost.dylib",
    "aarch64-macos": "aarch64-macos/libquotahost.dylib",
}


def jni_headers() -> list[Path]:
    """The folders with jni.h and jni_md.h of this machine's JDK; one POSIX system's jni_md.h serves for all."""
    javac = shutil.which("javac")
    home = Path(os.environ["JAVA_HOME"]) if "JAVA_HOME" in os.environ else None
    if home is None and javac:
        home = Path(javac).resolve().parent.parent
    include = home / "include" if home else None
    if include is None or not (include / "jni.h").is_file():
        sys.exit("no jni.h found: a JDK 17+ is needed (set JAVA_HOME to it)")
    return [include, *(p.parent for p in include.glob("*/jni_md.h"))]


def compile_for(target: str, output: Path) -> None:
    """Cross-compiles attach.c for a zig target.

    Raises:
        CalledProcessError: the compiler failed; its messages are on stderr.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    includes = [f"-I{folder}" for folder in jni_headers()]
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-s", *includes]
    libraries = ["-ldl"] if "gnu" in target else []
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    command = [*zig, *flags, "-o", str(output), str(SOURCE), *libraries]
    subprocess.run(command, check=True)
    for leftover in output.parent.glob("*.lib"):
        leftover.unlink()


def natives() -> None:
    """Builds the libraries that are older than their source."""
    for target, name in TARGETS.items():
        output = RESOURCES / "org/quotahost/native" / name
        if output.is_file() and output.stat().st_mtime >= SOURCE.stat().st_mtime:
            continue
        print(f"  attach library for {target}", flush=True)
        compile_for(target, output)


def jpype() -> str:
    """Unpacks org.jpype from the installed wheel; returns its version."""
    distribution = metadata.distribution("jpype1")
    jar = Path(str(distribution.locate_file("org.jpype.jar")))
    shutil.copyfile(jar, BUILD / "org.jpype.jar")
    with zipfile.ZipFile(jar) as archive:
        members = [m for m in archive.namelist() if m.startswith(("org/jpype/", "META-INF/versions/0/"))]
        archive.extractall(RESOURCES, members)
    return distribution.version


def versions(jpype_version: str) -> None:
    """Writes which versions of quotahost and jpype1 the jar needs in Python, and with which of Kafka it was tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    target = RESOURCES / "META-INF/quotahost/versions.properties"
    target.parent.mkdir(parents=True, exist_ok=True)
    oldest, newest = (".".join(map(str, line)) for line in TRIED)
    target.write_text(f"quotahost={project['version']}\njpype={jpype_version}\nkafka={oldest} {newest}\n")


def main() -> None:
    """Makes all of these files."""
    RESOURCES.mkdir(parents=True, exist_ok=True)
    natives()
    versions(jpype())
    (RESOURCES / "META-INF/quotahost/host-protocol.properties").write_text(protocol.resource())


if __name__ == "__main__":
    main()
