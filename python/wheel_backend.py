#!/usr/bin/env python3
"""Makes the wheel: the sources of python/assay, the engine's library with all kernels and the program in it, what
`assay run` and `assay watch` put before programs, and the shared libraries that these stand on. pip calls build_wheel; the
launcher runs this as a program once they are built:

    wheel_backend.py LIBRARY STANDINS FOLDER     writes FOLDER/assay-VERSION-py3-none-linux_ARCH.whl
"""
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "assay"

#: Newest version of the C library whose symbols may be used.
NEWEST_GLIBC = (2, 34)
#: What every machine has that runs Python: the C library's parts. gcc's run-time libraries are linked statically.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread)\.so\.\d+)$")


def fail(line):
    raise SystemExit(f"assay: {line}")


def version():
    found = re.search(r"project\(assay VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    return found.group(1)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def carried(library):
    """Paths of the shared libraries that travel with it, by the names that it knows them by."""
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (\S+)", output_of("ldd", str(library)), re.MULTILINE):
        if not OF_THE_SYSTEM.match(name):
            found[name] = pathlib.Path(path)
    return found


def require_old_symbols(path):
    """Ends with a line where a library wants a newer C library, or one of C++."""
    if re.search(r"NEEDED.*lib(stdc\+\+|gcc_s)", output_of("objdump", "-p", str(path))):
        fail(f"{path.name} wants a C++ library of the machine that it runs on")
    for major, minor in set(re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("objdump", "-T", str(path)))):
        if (int(major), int(minor)) > NEWEST_GLIBC:
            fail(f"{path.name} wants glibc {major}.{minor}, newer than {NEWEST_GLIBC[0]}.{NEWEST_GLIBC[1]}: build on an older system")


class Wheel:
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(info, data, compresslevel=9)  # the archive's own is not that of a ZipInfo
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, record):
        self.archive.writestr(zipfile.ZipInfo(record, (2020, 1, 1, 0, 0, 0)), "\n".join([*self.record, f"{record},,", ""]))
        self.archive.close()


def write(library, standins, folder):
    """The wheel's path."""
    libraries = {"libassay.so": library, **carried(library)}
    for path in sorted(pathlib.Path(standins).iterdir()):
        libraries[f"standin/{path.name}"] = path
    for path in libraries.values():
        require_old_symbols(path)
    tag = f"py3-none-linux_{platform.machine()}"
    path = pathlib.Path(folder) / f"assay-{version()}-{tag}.whl"
    wheel, info = Wheel(path), f"assay-{version()}.dist-info"
    for source in sorted(PACKAGE.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            wheel.add(str(source.relative_to(PACKAGE.parent)), source.read_bytes())
    for source in sorted((PACKAGE.parent / "site").glob("*")):  # what lies beside the package
        wheel.add(source.name, source.read_bytes())
    for name, source in sorted(libraries.items()):
        wheel.add(f"assay/lib/{name}", source.read_bytes(), executable=True)
    dependencies = re.search(r"^dependencies = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)
    metadata = ["Metadata-Version: 2.1", "Name: assay", f"Version: {version()}",
                "Summary: Verifies GPU kernels numerically, on a GPU or without one", "License: Apache-2.0",
                "Requires-Python: >=3.10"]
    metadata += [f"Requires-Dist: {name}" for name in re.findall(r'"([^"]+)"', dependencies)]
    wheel.add(f"{info}/METADATA", "\n".join([*metadata, ""]).encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: assay\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    entry_points = PACKAGE.parent / "entry_points.txt"
    if entry_points.exists():
        wheel.add(f"{info}/entry_points.txt", entry_points.read_bytes())
    wheel.close(f"{info}/RECORD")
    return path


# ---- what pip calls ----

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(ROOT / "assay"), "wheel", folder], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            fail("the engine could not be built (its last line above says why); ./assay test, once, installs what it needs")
        made = next(pathlib.Path(folder).glob("*.whl"))
        shutil.copy(made, wheel_directory)
        return made.name


if __name__ == "__main__":
    print(write(pathlib.Path(sys.argv[1]), *sys.argv[2:4]))
