"""Triton's driver interface, answered by the machine (Triton 3.4 to 3.9)."""

from __future__ import annotations

import re
import threading

from assay.triton import parameters
from assay.triton.launch import program_stack


class DeviceIndex(int):
    """The device 0 of one machine: equal to no other device, where Triton keeps compiled kernels, and with them
    their launchers, by device."""

    def __new__(cls, machine):
        self = super().__new__(cls, 0)
        self.machine = machine
        return self

    def __eq__(self, other):
        return isinstance(other, DeviceIndex) and other.machine is self.machine

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return id(self.machine)


class Utils:
    """`driver.active.utils`: loads kernels, says what the device has."""

    def __init__(self, machine):
        self._machine = machine
        self._loaded = []
        self._lock = threading.Lock()

    def load_binary(self, name, kernel, shared, device):
        """(module, function, registers, spills, threads of a block at most); the handle is 1 + an index."""
        text = kernel.decode() if isinstance(kernel, bytes) else kernel
        loaded = self._machine.load(text, name)
        with self._lock:
            self._loaded.append((loaded, name))
            handle = len(self._loaded)
        return handle, handle, 0, 0, loaded.entries[name].max_threads or 1024

    def unload_module(self, module):
        """Kept: the text may be launched again, and is decoded once."""

    def entry(self, function):
        return self._loaded[function - 1]

    def get_device_properties(self, device=0):
        gpu = self._machine.gpu
        return {
            "max_shared_mem": gpu.shared_memory_optin,
            "max_num_regs": gpu.registers,
            "multiprocessor_count": gpu.multiprocessors,
            "warpSize": gpu.warp_size,
            "sm_clock_rate": gpu.clock,
            "mem_clock_rate": gpu.memory_clock,
            "mem_bus_width": gpu.memory_bus,
        }

    def set_printf_fifo_size(self, size):
        """Nothing is lost: device_print writes to a list."""

    def __getattr__(self, name):
        raise NotImplementedError(f"the machine has no {name}: it launches Triton's kernels and nothing else")


class Launcher:
    """One compiled kernel's launches. `launcher_cls` of the driver is this class with `machine` bound."""

    def __init__(self, machine, source, metadata):
        self._machine = machine
        self._metadata = metadata
        signature = dict(source.signature)
        self._types = tuple(signature.values())
        function = getattr(source, "fn", None)
        named = list(getattr(function, "arg_names", ()))
        self._names = [n if isinstance(n, str) else (named[n] if n < len(named) else f"arg{n}") for n in signature]
        self._kernel = getattr(function, "__name__", None) or getattr(metadata, "name", "kernel")
        self._constants = _constants(source, self._names)
        self._maps = getattr(metadata, "tensordesc_meta", None)
        cluster = tuple(getattr(metadata, "cluster_dims", None) or (getattr(metadata, "num_ctas", 1), 1, 1))
        self._cluster = cluster if cluster != (1, 1, 1) else None

    def __call__(self, grid_x, grid_y, grid_z, stream, function, packed, launch_metadata, enter, leave, *values):
        if self._machine.rehearsing:
            return
        if enter is not None:
            enter(launch_metadata)
        if grid_x * grid_y * grid_z > 0:
            self._launch((grid_x, grid_y, grid_z), stream, function, values)
        if leave is not None:
            leave(launch_metadata)

    def _launch(self, grid, stream, function, values):
        module, name = self._machine.utils.entry(function)
        expected = module.entries[name].parameters
        storages = self._machine.storages
        given = list(parameters.flatten(self._types, self._names, values, self._maps))
        scratch = self._scratch(grid, stream, len(expected) - len(given))
        if len(given) + len(scratch) != len(expected):
            raise parameters.ArgumentError(
                f"{self._kernel}: {len(given)} arguments for the {len(expected)} parameters of {name}"
            )
        packed = [
            parameters.pack(what, kind, value, slot.bytes, storages, self._machine.tensor_map)
            for (what, kind, value), slot in zip(given + scratch, expected)
        ]
        cluster = self._cluster or (1, 1, 1)
        self._machine.run(
            module,
            name,
            kernel=self._kernel,
            signature={**dict(zip(self._names, map(str, self._types))), **self._constants},
            grid=tuple(int(n) * c for n, c in zip(grid, cluster)),
            block=(32 * self._metadata.num_warps, 1, 1),
            cluster=self._cluster,
            shared_bytes=self._metadata.shared,
            arguments=packed,
            tensors=[(what, value) for what, kind, value in given if kind.startswith("*")],
            cooperative=bool(getattr(self._metadata, "launch_cooperative_grid", False)),
            stack=program_stack(),
        )

    def _scratch(self, grid, stream, wanted):
        """The pointers to memory that Triton allocates for a launch, behind the arguments: global, of a profiler."""
        found = []
        for which in ("global", "profile")[: max(wanted, 0)]:
            size = getattr(self._metadata, which + "_scratch_size", 0) or 0
            buffer = None
            if size > 0:
                blocks = grid[0] * grid[1] * grid[2] * getattr(self._metadata, "num_ctas", 1)
                align = getattr(self._metadata, which + "_scratch_align", 1)
                buffer = self._machine.allocate_scratch(which, blocks * size, align, stream)
            found.append((which + " scratch", "*i8", buffer))
        return found


def _constants(source, names):
    """{"BLOCK=64": "constexpr"}: what was compiled in."""
    found = {}
    for path, value in dict(getattr(source, "constants", None) or {}).items():
        place = path[0] if isinstance(path, tuple) else path
        name = place if isinstance(place, str) else (names[place] if place < len(names) else f"arg{place}")
        value = getattr(value, "value", value)
        found[name] = f"constexpr = {value}" if not callable(value) else f"constexpr = {getattr(value, '__name__', value)}"
    return found


def make_driver(machine):
    """The object for `triton.runtime.driver.driver.set_active`."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class MachineDriver(DriverBase):
        def __init__(self):
            self.utils = machine.utils
            self.launcher_cls = lambda source, metadata: Launcher(machine, source, metadata)
            self._device = DeviceIndex(machine)

        @classmethod
        def is_active(cls):
            return False  # set, never found

        def get_current_target(self):
            major, minor = machine.gpu.capability
            return GPUTarget("cuda", 10 * major + minor, machine.gpu.warp_size)

        def get_current_device(self):
            return self._device

        def set_current_device(self, device):
            machine.check_device(device)

        def get_current_stream(self, device=None):
            return machine.current_stream()

        def get_device_capability(self, device=None):
            return machine.gpu.capability

        def get_active_torch_device(self):
            import torch

            return torch.device("cuda", 0)

        def get_device_interface(self):
            import torch

            return torch.cuda

        def map_python_to_cpp_type(self, kind):
            """What a C launcher would declare; asked for by code that writes such launchers."""
            return _C_TYPES.get(kind) or ("CUtensorMap" if re.match("tensordesc|nvTmaDesc", kind) else "CUdeviceptr")

        def get_benchmarker(self):
            return machine.benchmark

        def get_empty_cache_for_benchmark(self):
            import torch

            return torch.empty(0, dtype=torch.int)

        def clear_cache(self, cache):
            """The machine has no cache of memory."""

        def assemble_tensormap_to_arg(self, tensormaps_info, args):
            return args

        def allocate_default_profile_scratch(self, size, alignment, stream):
            import torch

            return torch.zeros(size, dtype=torch.int8)

    return MachineDriver()


_C_TYPES = {
    **{sign + bits: f"{'u' if sign == 'u' else ''}int{bits}_t" for sign in "iu" for bits in ("8", "16", "32", "64")},
    **{"i1": "int8_t", "u1": "uint8_t", "fp16": "double", "bf16": "double", "fp32": "double", "f32": "double"},
    "fp64": "double",
}
