"""The wheel: what is in it, what it wants of the machine, that it works where nothing else is."""
import ast
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ASSAY_BUILD"])
LIBRARY = BUILD / "python" / "assay" / "lib" / "libassay.so"
STANDINS = BUILD / "standin"

specification = importlib.util.spec_from_file_location("wheel_backend", ROOT / "python" / "wheel_backend.py")
backend = importlib.util.module_from_spec(specification)
specification.loader.exec_module(backend)

pytestmark = pytest.mark.skipif(
    "CMAKE_BUILD_TYPE:STRING=Release" not in (BUILD / "CMakeCache.txt").read_text(), reason="wheels are of the preset release"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Of the library without kernels, which is made the same way."""
    return backend.write(LIBRARY, STANDINS, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_its_record_names_every_file(wheel):
    assert re.fullmatch(r"assay-[0-9.]+-py3-none-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith("RECORD"))
        assert sorted(row.split(",")[0] for row in archive.read(record).decode().split()) == sorted(names)
        assert {"assay/py.typed", "assay/lib/libassay.so", "assay/lib/standin/libassay_cuda.so", "assay/results.py"} <= set(names)
        metadata = archive.read(record.replace("RECORD", "METADATA")).decode()
    assert re.findall("Requires-Dist: (.*)", metadata) == ["numpy>=1.22"]


def test_it_wants_an_old_c_library_and_nothing_else_of_the_machine(installed):
    libraries = {path.name: path for path in (installed / "assay" / "lib").rglob("*.so*")}
    for path in libraries.values():
        said = subprocess.run(["objdump", "-p", path], capture_output=True, text=True, check=True).stdout
        for name in re.findall(r"NEEDED\s+(\S+)", said):
            assert name in libraries or re.match(r"lib(c|m|dl|pthread|rt)\.so|ld-linux", name), f"{path.name}: {name}"
        for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", said):
            assert (int(major), int(minor)) <= backend.NEWEST_GLIBC, path.name


def test_its_library_shows_the_surface_and_knows_no_python():
    said = subprocess.run(["objdump", "-T", LIBRARY], capture_output=True, text=True, check=True).stdout
    defined = {line.split()[-1] for line in said.splitlines() if " g " in line and "*UND*" not in line}
    header = (ROOT / "include" / "assay_engine.h").read_text()
    assert defined == set(re.findall(r"\b(assay_\w+)\(", header))
    assert not re.search(r"\bPy[A-Z_]\w*", said)


def test_it_runs_where_nothing_is_set(installed):
    code = "import assay; assert assay.replay('gla.chunk/B1/T1/H1/K16/V16/bf16/g-fp32/none/s1').verdict, assay.__file__"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY", "PYTHON", "LD_"))}
    environment["PYTHONPATH"] = str(installed)
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True, cwd=installed)


@pytest.mark.parametrize("minor", range(10, 15))
def test_its_sources_are_of_every_python(minor, installed):
    for source in (installed / "assay").rglob("*.py"):
        ast.parse(source.read_text(), feature_version=(3, minor))
    interpreter = shutil.which(f"python3.{minor}")
    if interpreter and sys.version_info[1] != minor and not subprocess.run([interpreter, "-c", "import numpy"]).returncode:
        subprocess.run([interpreter, "-c", "import assay"], env={"PYTHONPATH": str(installed)}, check=True)


def test_a_source_folder_without_a_library_says_so():
    done = subprocess.run(
        [sys.executable, "-c", "import assay"], env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("ImportError: assay: ")
