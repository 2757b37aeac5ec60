"""Makes the jar's files beside its classes (org.jpype, versions, the protocol), and the wheel's attach libraries.

``python tools/jar_resources.py`` writes build/jar-resources and build/org.jpype.jar, which the Maven build packs, and
the libraries into the package.
The compiler is zig, from the PyPI package ziglang, because zig builds for all platforms on one machine. A library is
built again if its source, the compiler's version or the flags have changed. The files have the same bytes whenever and
wherever they are built.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

from quotahost.broker.host import protocol
from quotahost.cli.doctor.installation import TRIED

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "java-shim/src/main/native/attach.c"
BUILD = ROOT / "build"
RESOURCES = BUILD / "jar-resources"
NATIVES = ROOT / "plugin/quotahost/_jar/native"
# The digest of each library's inputs, by target.
BUILT_OF = BUILD / "natives.json"
FLAGS = ["-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-s"]

# zig target -> file in NATIVES, which probe.py looks for; glibc 2.17 is that of RHEL 7.
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
    # A dylib that is given no name contains the path at which it was built.
    more = ["-ldl"] if "gnu" in target else [f"-Wl,-install_name,@rpath/{output.name}"] if "macos" in target else []
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    subprocess.run([*zig, *FLAGS, *includes, "-o", str(output), str(SOURCE), *more], check=True)
    for leftover in output.parent.glob("*.lib"):
        leftover.unlink()


def natives() -> None:
    """Builds the libraries whose inputs have changed."""
    built_of = json.loads(BUILT_OF.read_text()) if BUILT_OF.is_file() else {}
    source = [SOURCE.read_text(), Path(__file__).read_text(), metadata.version("ziglang")]
    digest = hashlib.sha256("\0".join(source).encode()).hexdigest()
    for target, name in TARGETS.items():
        output = NATIVES / name
        if output.is_file() and built_of.get(target) == digest:
            continue
        print(f"  attach library for {target}", flush=True)
        compile_for(target, output)
        built_of[target] = digest
    BUILT_OF.write_text(json.dumps(built_of, indent=1))


def jpype() -> str:
    """Unpacks org.jpype from the installed wheel; returns its version."""
    distribution = metadata.distribution("jpype1")
    jar = Path(str(distribution.locate_file("org.jpype.jar")))
    shutil.copyfile(jar, BUILD / "org.jpype.jar")
    with zipfile.ZipFile(jar) as archive:
        members = [m for m in archive.namelist() if m.startswith(("org/jpype/", "META-INF/versions/0/"))]
        archive.extractall(RESOURCES, members)
    licenses = RESOURCES / "META-INF/licenses/jpype1"
    licenses.mkdir(parents=True, exist_ok=True)
    for path in distribution.files or []:
        if "licenses" in path.parts:
            shutil.copyfile(str(path.locate()), licenses / path.name)
    return distribution.version


def notices() -> None:
    """Writes the project's own licence, and its notice, which names the parts of other projects in the jar."""
    for name in ("LICENSE", "NOTICE"):
        shutil.copyfile(ROOT / name, RESOURCES / "META-INF" / name)


def versions(jpype_version: str) -> None:
    """Writes the versions of quotahost and jpype1 that the jar needs in Python, and the tested versions of Kafka."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    target = RESOURCES / "META-INF/quotahost/versions.properties"
    target.parent.mkdir(parents=True, exist_ok=True)
    (major, oldest), (_, latest) = TRIED
    lines = " ".join(f"{major}.{minor}" for minor in range(oldest, latest + 1))
    target.write_text(f"quotahost={project['version']}\njpype={jpype_version}\nkafka={lines}\n")


def main() -> None:
    """Makes all of these files."""
    shutil.rmtree(RESOURCES, ignore_errors=True)  # old files must not be packed
    RESOURCES.mkdir(parents=True)
    natives()
    versions(jpype())
    notices()
    (RESOURCES / "META-INF/quotahost/host-protocol.properties").write_text(protocol.resource())


if __name__ == "__main__":
    main()
