"""What examples/from_python says is so, where what it needs is installed."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/from_python"


def run(program, folder):
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(FOLDER)])
    return subprocess.run(
        [sys.executable, program], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, cwd=folder, timeout=500
    )


@pytest.mark.parametrize("name, package", [("fuzz_liger", "liger_kernel"), ("fuzz_chunk_gla", "fla")])
def test_libraries_are_fuzzed_in_ten_lines(name, package, tmp_path):
    if subprocess.run([sys.executable, "-c", f"import {package}"], capture_output=True).returncode:
        pytest.skip(f"{package} is not installed, or does not import")
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    shorter, changed = re.subn(r"time=\d+", "cases=4, seed=1", text)
    assert changed == 1
    (tmp_path / "program.py").write_text(shorter, encoding="utf-8")
    done = run(tmp_path / "program.py", tmp_path)
    assert done.returncode == 0 and re.search(r"^pass ", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_a_race_that_the_compiler_makes_is_told_from_a_wrong_kernel():
    if subprocess.run([sys.executable, "-c", "import fla"], capture_output=True).returncode:
        pytest.skip("fla is not installed, or does not import")
    done = run(FOLDER / "compiler_or_kernel.py", FOLDER)
    off = re.search(r"dw is off by (\S+) of its size", done.stdout)
    assert done.returncode == 0 and off and float(off.group(1)) < 2.0**-10, done.stdout + done.stderr
    assert "wgmma-race: shared global_smem" in done.stdout and re.search(r"chunk_o\.py:\d+ by thread", done.stdout), done.stdout


def test_the_notebook_finds_where_the_nan_comes_from(tmp_path):
    cells = json.loads((FOLDER / "where_does_this_nan_come_from.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    shown = "\nprint(int(out.isnan().sum()), captured.kept[0].kernel, captured.kept[0].nonfinite)\nprint(result)\n"
    (tmp_path / "program.py").write_text("\n".join(code) + shown, encoding="utf-8")
    done = run(tmp_path / "program.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\n100 gate ['gated']" in done.stdout or "\n100 gate ['out']" in done.stdout, done.stdout
    lines = (FOLDER / "gated_norm.py").read_text(encoding="utf-8").splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "tl.exp(" in text)
    assert f"gated_norm.py:{line}" in done.stdout and "= 90" in done.stdout, done.stdout
