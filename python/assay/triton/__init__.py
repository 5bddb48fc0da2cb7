"""Triton on the machine: every launch of a Python program runs on CPU tensors, bit for bit as on a GPU.

    with assay.triton.machine(arch="sm_90", checks="all") as machine:
        import the_library
        the_library.function(torch.randn(4, device="cuda"))
    print(machine.text())

The same from outside: `ASSAY_TRITON=sm_90 python program.py`, or `python -m assay.triton program.py`.
torch and Triton are imported when a machine starts.
"""

from assay.triton.cuda import NotPretended
from assay.triton.gpus import GPUS, Gpu
from assay.triton.launch import Launch
from assay.triton.session import KernelTrap, LaunchError, Machine, active


def machine(arch="sm_90", checks="none", **options) -> Machine:
    """A machine for `with`.

    `arch`: "sm_80", "sm_89", "sm_90", or a GPU of `GPUS` ("A100", "L40", "H100", "H200"); `checks`, `repeats`,
    `origins`, `limit`: as of `assay.machine.run`; `configs`: "first" takes an autotuner's first configuration that
    fits, "all" runs each; `unwritten`: memory of torch.empty holds NaN.
    Raises ValueError for an unknown name, RuntimeError where a machine is active already or a library has kept
    other answers about the device.
    """
    return Machine(arch, checks, **options)


__all__ = ["GPUS", "Gpu", "KernelTrap", "Launch", "LaunchError", "Machine", "NotPretended", "active", "machine"]
