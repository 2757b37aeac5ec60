"""Runs cells of the matrix, and writes the result of each cell into docs/reference/platforms.md.

``python -m tools.matrix`` runs all cells that this machine can run; names such as ``sid/amd64/3.14/25/4.3.1``, or
beginnings of names, choose some. All cells except ``host`` need root, debootstrap and qemu-user-static. A cell takes a
minute; a cell of arm64, which is emulated, takes five. The exit code is 1 if a cell failed.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from harness.kafka.settings import QUICK_START
from tools.jar_resources import NATIVES, jni_headers
from tools.matrix import roots, scene
from tools.matrix.cells import NOT_RUN, ROOT, Cell, record, results

_EMULATED: Final = 900  # seconds for each step of an emulated broker
# If each instruction is translated, the JVM's second compiler and a collector of several threads only cost time.
_PATIENT: Final = f"-Dquotahost.python.start.seconds={_EMULATED}"
_EMULATED_JVM: Final = (*QUICK_START, "-XX:+UseSerialGC", _PATIENT)


def run(cell: Cell, folder: Path) -> str:
    """Runs one cell; returns its result."""
    if cell.system == "macOS":
        return NOT_RUN
    if cell.system == "musl":
        return musl(cell.architecture, folder)
    if cell.system == "host":
        place = roots.here(folder, cell.python)
    else:
        root = roots.debian(cell.system, cell.architecture, folder)
        place = roots.place(root, cell.architecture, cell.python, cell.java)
    emulated = cell.architecture == "arm64"
    if cell.kafka == "-":
        scene.starter(place, _PATIENT)
        return f"Python started in a JVM: {roots.versions(place)}{', emulated' * emulated}"
    if emulated:
        scene.broker(place, cell.kafka, _EMULATED, _EMULATED_JVM)
    else:
        scene.broker(place, cell.kafka)
    return f"ran: {roots.versions(place)}{', emulated' * emulated}"


def musl(architecture: str, folder: Path) -> str:
    """Runs the attach library for musl in a small program."""
    machine = roots.MACHINES[architecture]
    built = ROOT / f"build/matrix/musl-{machine}"
    built.parent.mkdir(parents=True, exist_ok=True)
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-musl", "-dynamic"]
    source = Path(__file__).with_name("musl.c")
    subprocess.run([*zig, *(f"-I{each}" for each in jni_headers()), "-o", str(built), str(source)], check=True)
    root = roots.debian("trixie", architecture, folder)
    library = NATIVES / f"{machine}-linux-musl/libquotahost.so"
    place = roots.Place(roots.inside(root), "", "")
    place.run(f"/lib/ld-musl-{machine}.so.1", str(built), str(library))
    return f"library ran with stand-ins for JVM and Python{', emulated' * (architecture == 'arm64')}"


def main() -> int:
    """Runs the cells that the command line chooses; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__)
    parser.add_argument("cells", nargs="*", help="names, or beginnings of names; without any, all")
    parser.add_argument("--roots", type=Path, default=ROOT / "build/matrix/roots", help="where the systems are made")
    parser.add_argument("--list", action="store_true", help="show the names, run nothing")
    args = parser.parse_args()
    chosen = [cell for cell in results() if not args.cells or any(cell.name.startswith(each) for each in args.cells)]
    failed = 0
    for cell in chosen:
        if args.list:
            print(cell.name)
            continue
        begin = time.monotonic()
        try:
            result = run(cell, args.roots)
        except Exception as error:
            failed += 1
            print(f"{cell.name}: FAILED: {type(error).__name__}: {error}", flush=True)
        else:
            record(cell, result)
            print(f"{cell.name}: {result} ({time.monotonic() - begin:.0f} s)", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
