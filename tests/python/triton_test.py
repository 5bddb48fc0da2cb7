"""Triton's launches on the machine, where PyTorch and Triton are installed (ASSAY_PYTHON names an interpreter)."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

import triton_kernels as kernels  # noqa: E402

import assay.triton  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Triton and torch have theirs
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def machine():
    with assay.triton.machine("sm_90") as started:
        yield started


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], env={**os.environ, **environment}, capture_output=True, text=True, cwd=ROOT / "tests/python"
    )


def test_a_launch_computes_and_keeps_where_it_was_written(machine):
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.empty_like(x)
    kernels.add[(8,)](x, y, out, 1000, BLOCK=128)
    assert torch.equal(out, x + y)
    launch = machine.launches[-1]
    assert (launch.kernel, launch.grid, launch.signature["x"]) == ("add", (8, 1, 1), "*fp32")
    assert launch.stack[-1][0] == __file__
    assert launch.lane_instructions > 1000


def test_tensors_say_that_they_are_on_the_gpu_in_every_thread(machine):
    x = torch.zeros(3, device="cuda")
    said = []
    thread = threading.Thread(target=lambda: said.append((x.is_cuda, str((x + 1).device))))
    thread.start()
    thread.join()
    assert said == [(True, "cuda:0")]
    assert not torch.zeros(3).is_cuda and not x.cpu().is_cuda and torch.zeros(3).to("cuda").is_cuda
    assert torch.cuda.get_device_capability() == (9, 0) and "H100" in torch.cuda.get_device_name()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(3, device="cuda:1")
    with pytest.raises(assay.triton.NotPretended, match="CUDA graphs"):
        torch.cuda.CUDAGraph()


def test_optimizers_step(machine):
    layer = torch.nn.Linear(4, 4).to("cuda")
    for kind in (torch.optim.AdamW, torch.optim.SGD):
        optimizer = kind(layer.parameters(), lr=0.1)
        before = layer.weight.detach().clone()
        layer(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        assert not torch.equal(layer.weight, before)
    if hasattr(torch, "accelerator"):
        assert str(torch.accelerator.current_accelerator()) == "cuda" and torch.accelerator.device_count() == 1


def test_afterwards_torch_is_as_before():
    before = torch.cuda.is_available(), torch.empty, torch.Tensor.to
    with assay.triton.machine("A100"):
        assert torch.cuda.get_device_capability() == (8, 0)
        kept = torch.ones(3, device="cuda")
    assert (torch.cuda.is_available(), torch.empty, torch.Tensor.to) == before
    assert str(kept.device) == "cpu"


def test_a_trap_names_the_line_of_the_kernel_and_of_the_launch(machine):
    x, out = torch.zeros(100, device="cuda"), torch.zeros(128, device="cuda")
    with pytest.raises(assay.triton.KernelTrap, match=r"out-of-bounds at \S*triton_kernels.py:15") as caught:
        kernels.copy_without_mask[(1,)](x, out, BLOCK=128)
    assert "triton_test.py" in str(caught.value)
    assert {file.rsplit("/", 1)[-1] for file, _, _ in caught.value.launch.stack} == {"triton_test.py"}


def test_a_tensor_left_on_the_cpu_is_refused_as_triton_does(machine):
    x = torch.zeros(128)
    with pytest.raises(ValueError, match="cpu tensor"):
        kernels.copy_without_mask[(1,)](x, torch.zeros(128, device="cuda"), BLOCK=128)


def test_addresses_in_a_table_reach_their_tensors(machine):
    pieces = [torch.full((4,), float(i), device="cuda") for i in range(5)]
    table = torch.tensor([piece.data_ptr() for piece in pieces], dtype=torch.int64, device="cuda")
    out = torch.empty(5, device="cuda")
    kernels.first_of_each[(5,)](table, out, 5)
    assert out.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("configs, grids", [("first", [(4, 1, 1)]), ("all", [(4, 1, 1), (2, 1, 1), (4, 1, 1)])])
def test_an_autotuner_takes_the_first_configuration_or_runs_all(configs, grids):
    with assay.triton.machine("sm_90", configs=configs) as machine:
        x = torch.randn(128, device="cuda")
        out = torch.empty_like(x)
        kernels.doubled[lambda meta: (128 // meta["BLOCK"],)](x, out, 128)
        assert torch.equal(out, 2 * x)
    assert [launch.grid for launch in machine.launches] == grids


def test_what_a_launch_had_is_written_down_and_runs_again(machine, tmp_path):
    x = torch.full((4, 100), 100.0, device="cuda")
    out = torch.empty_like(x)
    with assay.capture(tmp_path, when="nonfinite") as captured:
        kernels.softmax[(4,)](x, out, 100, BLOCK=128)
        kernels.softmax_unshifted[(4,)](x, out, 100, BLOCK=128)
    assert [(launch.kernel, launch.nonfinite) for launch in captured.kept] == [("softmax_unshifted", ["out"])]
    result = assay.check(captured.kept[0].file)
    assert result.verdict == "finding" and "triton_kernels.py" in str(result), str(result)


def test_printing_and_assertions(machine, capsys):
    kernels.says[(1,)](torch.full((1,), 2.5, device="cuda"))
    assert "2.5" in capsys.readouterr().out
    with pytest.raises(assay.triton.KernelTrap, match="must be positive"):
        kernels.asserts[(1,)](-torch.ones(1, device="cuda"), debug=True)


def test_a_library_that_kept_other_answers_is_recognised(tmp_path, monkeypatch):
    (tmp_path / "asks_early.py").write_text(
        "import torch\nfrom triton_kernels import add\n"
        "def hopper():\n    return torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9\n"
        "HOPPER = hopper()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import asks_early  # noqa: F401

    try:
        with pytest.raises(RuntimeError, match="asks_early was imported before the machine"):
            assay.triton.machine("sm_90").start()
    finally:
        del sys.modules["asks_early"]


def test_a_program_needs_no_change(tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch, triton_kernels\nx = torch.ones(8, device='cuda')\nout = torch.empty_like(x)\n"
        "triton_kernels.add[(1,)](x, x, out, 8, BLOCK=8)\nprint(out.sum().item(), torch.cuda.get_device_name())\n"
    )
    done = run("-m", "assay.triton", "--arch", "A100", tmp_path / "program.py", PYTHONPATH=os.environ["PYTHONPATH"] + ":.")
    assert done.stdout == "16.0 NVIDIA A100-SXM4-80GB\n", done.stderr


def test_the_line_at_interpreter_start_imports_nothing_unasked_and_starts_the_machine_when_asked():
    line = (ROOT / "python/site/assay.pth").read_text()
    asked = "import sys\n" + line + "print('assay' in sys.modules)\nimport torch\nprint(torch.cuda.is_available())\n"
    unset = subprocess.run(
        [sys.executable, "-c", "import sys\n" + line + "print('assay' in sys.modules)"],
        env={k: v for k, v in os.environ.items() if k != "ASSAY_TRITON"}, capture_output=True, text=True,
    )
    assert unset.stdout == "False\n"
    assert run("-c", asked, ASSAY_TRITON="sm_90").stdout == "True\nTrue\n"
    assert "no GPU 'sm_12'" in run("-c", asked, ASSAY_TRITON="sm_12").stderr


def test_a_suite_runs_under_pytest_and_a_trap_fails_its_test(tmp_path):
    (tmp_path / "test_suite.py").write_text(
        "import torch, triton_kernels as kernels\n"
        "def test_right():\n"
        "    x = torch.ones(8, device='cuda')\n    out = torch.empty_like(x)\n    kernels.add[(1,)](x, x, out, 8, BLOCK=8)\n    assert out.sum() == 16\n"
        "def test_reads_too_far():\n"
        "    x = torch.ones(8, device='cuda')\n    kernels.copy_without_mask[(1,)](x, torch.ones(128, device='cuda'), BLOCK=128)\n"
        "def test_takes_long():\n"
        "    x = torch.ones(1 << 20, device='cuda')\n    kernels.add[(1 << 13,)](x, x, x, 1 << 20, BLOCK=128)\n"
    )
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(ROOT / "python/site"), str(ROOT / "tests/python")])
    # Spare lanes load what another lane has stored: nobody's fault, as it reaches nothing.
    (tmp_path / "test_in_place.py").write_text(
        "import torch, triton_kernels as kernels\n"
        "def test_right_in_place():\n"
        "    x = torch.ones(8, device='cuda')\n    kernels.add[(1,)](x, x, x, 8, BLOCK=8)\n    assert x.sum() == 16\n"
        "def test_all_take_what_one_changes():\n"
        "    x = torch.ones(8, device='cuda')\n    kernels.add_first[(2,)](x, torch.ones(8, device='cuda'), 8, BLOCK=8)\n"
    )
    options = ["-p", "assay_pytest", "--assay", "--assay-budget", "1e5", "-p", "no:cacheprovider", "-rs"]
    options += ["--assay-report", tmp_path / "report.json"]
    done = run("-m", "pytest", *options, tmp_path / "test_suite.py", PYTHONPATH=path)
    alone = json.loads((tmp_path / "report.json").read_text())
    in_place = run("-m", "pytest", *options, tmp_path / "test_in_place.py", PYTHONPATH=path)
    assert "1 failed, 1 passed, 1 skipped" in done.stdout, done.stdout
    assert done.returncode == 1 and "out-of-bounds" in done.stdout and "stopped by the budget" in done.stdout
    assert [(test["outcome"], test["launches"], len(test["findings"])) for test in alone["tests"]] == [
        ("passed", 1, 0), ("KernelTrap", 1, 1), ("stopped", 1, 0)
    ]
    line = [line for line in done.stdout.splitlines() if "lane-instructions; " in line]
    assert line[0].startswith("3 launches on sm_90") and line[0].endswith("; 1 with a finding"), done.stdout
    if importlib.util.find_spec("xdist"):  # the same of two workers, in one report
        workers = run("-m", "pytest", *options, "-n", "2", tmp_path / "test_suite.py", PYTHONPATH=path)
        assert [line[0]] == [other for other in workers.stdout.splitlines() if "lane-instructions; " in other], workers.stdout
        reported = json.loads((tmp_path / "report.json").read_text())["tests"]
        of = lambda test: [test["test"], test["outcome"], test["lane_instructions"], len(test["findings"])]  # noqa: E731
        assert sorted(map(of, reported)) == sorted(map(of, alone["tests"]))
    assert "1 failed, 1 passed" in in_place.stdout and "test_all_take_what_one_changes" in in_place.stdout, in_place.stdout
