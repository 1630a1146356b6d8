#!/usr/bin/python3
"""Makes keelson-VERSION-py3-none-manylinux_2_N_x86_64.whl: the Python package with the programs that it starts.

usage: deploy/make_wheel.py [--bin_dir DIR] [--out DIR | --folder DIR]

The libraries of the build's distribution that the programs need, but for the C library's own, go along in keelson/lib,
where the package has the loader look first. What a build with KEELSON_STATIC has linked in does not. 2.N is the C library
that all of them need, and with it the oldest distribution that the wheel is for. Nothing is downloaded. --folder makes a
folder DIR/keelson of what the wheel has of the package, for an image whose Python looks there.
"""

import argparse
import base64
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from typing import Dict, Iterator, List, NoReturn, Tuple

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = os.path.join(REPOSITORY, "python", "keelson")
PROGRAMS = ("chief", "ps_server", "evaluator", "keelson_agent", "keelson_ckpt")
# Before that, names of wheels have another form.
OLDEST_GLIBC = (2, 17)
# The C library's, and the compiler's that goes with it (manylinux has both on each machine).
SYSTEM = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|gcc_s))\.so\.\d+$")
# The same bytes from the same build, whenever that is.
MOMENT = (1980, 1, 1, 0, 0, 0)


def fail(text: str) -> NoReturn:
    sys.exit(f"make_wheel: {text}")


def version() -> str:
    with open(os.path.join(REPOSITORY, "CMakeLists.txt"), encoding="utf-8") as file:
        found = re.search(r"project\(keelson VERSION (\S+)", file.read())
    return found[1] if found else fail("CMakeLists.txt: expected project(keelson VERSION …), found none")


def libraries(programs: List[str]) -> Dict[str, str]:
    """Names that the loader looks for -> files, of all that is not the C library's."""
    found: Dict[str, str] = {}
    for line in subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True).stdout.splitlines():
        words = re.match(r"\s+(\S+) => (.*?)(?: \(0x[0-9a-f]+\))?$", line)
        if words and not SYSTEM.match(words[1]):
            if not os.path.isabs(words[2]):
                fail(f"{words[1]}: expected a library, found {words[2]}")
            found[words[1]] = words[2]
    return found


def needed_glibc(path: str) -> Tuple[int, ...]:
    """The version of the C library whose symbols it takes."""
    command = ["readelf", "--version-info", "--wide", path]
    symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", symbols)
    return max((tuple(map(int, version)) for version in versions), default=OLDEST_GLIBC)


def contents(bin_dir: str) -> Iterator[Tuple[str, str, bool]]:
    """Names in the wheel, files, and whether they are run."""
    for folder, _, names in sorted(os.walk(PACKAGE)):
        for name in sorted(names):
            if name.endswith((".py", ".typed")):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, os.path.dirname(PACKAGE)), path, False
    programs = [os.path.join(bin_dir, name) for name in PROGRAMS]
    for path in programs:
        if not os.path.exists(path):
            fail(f"{path}: expected a program, found none: ninja -C build/release {' '.join(PROGRAMS)}")
    for name, path in [*((os.path.basename(p), p) for p in programs), *sorted(libraries(programs).items())]:
        yield f"keelson/{'bin' if path in programs else 'lib'}/{name}", path, path in programs


def write(out: str, bin_dir: str) -> str:
    """Returns the wheel's path."""
    stem = f"keelson-{version()}"
    files = list(contents(bin_dir))
    glibc = max(needed_glibc(path) for name, path, _ in files if name.startswith(("keelson/bin/", "keelson/lib/")))
    tag = "py3-none-manylinux_{}_{}_x86_64".format(*glibc)
    path = os.path.join(out, f"{stem}-{tag}.whl")
    info = f"{stem}.dist-info"
    record: List[str] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(name: str, content: bytes, is_program: bool = False) -> None:
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")

        for name, source, is_program in files:
            with open(source, "rb") as file:
                add(name, file.read(), is_program)
        summary = "Trains a model of your own on Keelson's parameter servers"
        add(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: keelson\nVersion: {version()}\nSummary: {summary}\n"
            "Requires-Python: >=3.9\n".encode())  # fmt: skip
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        record.append(f"{info}/RECORD,,")
        add(f"{info}/RECORD", ("\n".join(record) + "\n").encode())
    return path


def unpack(folder: str, bin_dir: str) -> str:
    """Returns the package's path."""
    package = os.path.join(folder, os.path.basename(PACKAGE))
    if os.path.exists(package):
        fail(f"{package}: expected nothing there, found something")
    for name, source, is_program in contents(bin_dir):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(source, path)
        os.chmod(path, 0o755 if is_program else 0o644)
    return package


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes a wheel of the Python package with its programs.")
    parser.add_argument("--bin_dir", default=os.path.join(REPOSITORY, "build", "release", "bin"), help="where the programs are")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--out", default=".", help="where the wheel goes (default: here)")
    what.add_argument("--folder", help="where a folder goes in its place, with the package as it is installed")
    flags = parser.parse_args()
    if flags.folder is not None:
        print(unpack(flags.folder, flags.bin_dir))
        return
    path = write(flags.out, flags.bin_dir)
    print(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
