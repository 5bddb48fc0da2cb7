"""The machine behind Triton's driver."""

from __future__ import annotations

import contextlib
import sys
import threading

import assay.machine
from assay.triton import autotuning, compiler, cuda, gpus, kept_answers
from assay.triton.devices import Devices
from assay.triton.driver import Utils, make_driver
from assay.triton.launch import Launch
from assay.triton.patches import Patches

_active = None
_start = threading.Lock()


class KernelTrap(RuntimeError):
    """A kernel did something that a GPU stops at. `launch`: the launch, whose `trap` says what and where."""

    def __init__(self, launch):
        super().__init__(launch.text())
        self.launch = launch


class LaunchError(RuntimeError):
    """The machine could not run a launch: a form that it does not know, or a launch that no GPU takes."""

    def __init__(self, launch):
        super().__init__(launch.text())
        self.launch = launch


class Machine:
    """Where Triton's launches run between `start` and `stop`, or inside `with`.

    `launches`: what ran, the last `keep` of them; `findings`: all launches that trapped or whose checks found
    something. One machine is active in a process at a time; its threads share it.
    """

    def __init__(self, arch="sm_90", checks="none", *, repeats=False, origins=False, configs="first", limit=0,
                 unwritten=True, keep=10000, on_launch=None, imported="refuse"):
        if configs not in ("first", "all"):
            raise ValueError(f"configs is 'first' or 'all', not {configs!r}")
        self.gpu = gpus.find(arch)
        self.checks, self.repeats, self.origins = checks, repeats, origins
        self.configs, self.limit, self.unwritten, self.keep = configs, limit, unwritten, keep
        self.on_launch, self.imported = on_launch, imported
        self.launches, self.findings = [], []
        self.lane_instructions = self.launch_count = 0
        self._may_take, self.over_budget = None, False
        self.recorder = None  # told of each launch, before it and after it
        self.utils = Utils(self)
        self.tensor_map = getattr(assay.machine, "tensor_map", None)
        self._patches = self.devices = None
        self._lock = threading.Lock()
        self._thread = threading.local()

    # From outside.

    def start(self):
        """Sets Triton's driver, and torch's answers. Raises RuntimeError where another machine is active, or where
        a library was imported before and has kept other answers about the device."""
        global _active
        import torch
        import triton

        with _start:
            if _active is not None:
                raise RuntimeError(f"a machine is already active ({_active.gpu.name}): one at a time")
            self._refuse_kept_answers()
            self._patches, self.devices = Patches(), Devices(torch, self.gpu, self.unwritten)
            try:
                self._set_driver(triton)
                compiler.install(self._patches)
                autotuning.install(self._patches, self)
                cuda.install(self._patches, torch, self.gpu, self.devices)
                self.devices.install(self._patches)
            except BaseException:
                self._patches.undo()
                raise
            _active = self
        return self

    def stop(self):
        """Puts everything back. Tensors that were made are CPU tensors as any other."""
        global _active
        with _start:
            if _active is self:
                _active = None
                _told.update((name, self.gpu.name) for name, _ in kept_answers.kept() if name not in _told)
                self._patches.undo()

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        self.stop()
        return False

    def set_budget(self, lane_instructions):
        """All launches from now on may take so many together (None: any number); the next beyond raises
        assay.OverBudget, and `over_budget` is set."""
        self._may_take = None if lane_instructions is None else self.lane_instructions + lane_instructions
        self.over_budget = False

    def text(self) -> str:
        """What was found: a paragraph for each launch with a finding, then one line."""
        lines = [launch.text() for launch in self.findings]
        lines.append(self.summary(self.launch_count, self.lane_instructions, len(self.findings)))
        return "\n".join(lines)

    def summary(self, launches: int, lane_instructions: int, findings: int) -> str:
        """The line of so many launches on such a machine."""
        return (
            f"{launches} launches on {self.gpu.arch}, {lane_instructions / 1e6:.1f} M lane-instructions; "
            f"{findings} with a finding" + ("" if self.checks != "none" else " (no checks were asked for)")
        )

    # What Triton's side asks.

    @property
    def storages(self):
        return self.devices

    @property
    def rehearsing(self):
        return getattr(self._thread, "rehearsing", False)

    @contextlib.contextmanager
    def rehearsal(self):
        """Kernels are compiled and loaded, and not launched."""
        self._thread.rehearsing = True
        try:
            yield
        finally:
            self._thread.rehearsing = False

    @contextlib.contextmanager
    def configuration(self, name):
        self._thread.configuration = name
        try:
            yield
        finally:
            self._thread.configuration = ""

    def load(self, ptx, name):
        """Raises assay.BadInput where the text cannot be read."""
        return assay.machine.Module(ptx, path=name + ".ptx")

    def benchmark(self, call, quantiles=None, **ignored):
        """Triton's `do_bench`: runs once. Milliseconds, of no meaning."""
        call()
        return [1.0] * len(quantiles) if quantiles else 1.0

    def current_stream(self):
        import torch

        return torch.cuda.current_stream().cuda_stream

    def check_device(self, device):
        self.devices.check_device(device)

    def allocate_scratch(self, which, size, align, stream):
        """By the program's own allocator (`triton.set_allocator`) where it set one; zeros otherwise."""
        import torch
        from triton.runtime import _allocation

        chosen = _allocation._allocator if which == "global" else getattr(_allocation, "_profile_allocator", None)
        chosen = getattr(chosen, "get", lambda: chosen)()
        if chosen is None or type(chosen).__name__ == "NullAllocator":
            if which == "global":
                return chosen(size, align, stream)  # raises Triton's own sentence
            return torch.zeros(size, dtype=torch.int8, device="cuda")
        return chosen(size, align, stream)

    def run(self, module, entry, *, kernel, signature, grid, block, cluster, shared_bytes, arguments, tensors,
            cooperative, stack):
        launch = Launch(
            self._count(), kernel, entry, signature, grid, block, cluster, shared_bytes, self.gpu.arch, stack,
            configuration=getattr(self._thread, "configuration", ""),
        )
        try:
            done = assay.machine.run(
                module, entry, grid=grid, block=block, cluster=cluster, shared_bytes=shared_bytes,
                arguments=arguments, storages=self._storages_for(tensors), arch=self.gpu.arch, checks=self.checks,
                repeats=self.repeats, origins=self.origins, cooperative=cooperative, limit=self._limit(), name=kernel,
                recorder=self.recorder,
            )
        except assay.OverBudget:
            self.over_budget = True
            raise
        except assay.BadInput as error:
            launch.error = str(error)
            self._record(launch, False)
            raise LaunchError(launch) from None
        for attribute in ("lane_instructions", "seconds", "printed", "trap", "verification", "exponents"):
            setattr(launch, attribute, getattr(done, attribute))
        for line in done.printed:
            sys.stdout.write(line if line.endswith("\n") else line + "\n")
        self._record(launch, launch.finding)
        if launch.trap is not None:
            raise KernelTrap(launch)

    # Ours.

    def _limit(self):
        """Lane-instructions that a launch may take; 0: any number."""
        left = None if self._may_take is None else max(self._may_take - self.lane_instructions, 1)
        return min((n for n in (left, self.limit) if n), default=0)

    def _count(self):
        with self._lock:
            self.launch_count += 1
            return self.launch_count

    def _record(self, launch, found):
        with self._lock:
            self.launches.append(launch)
            del self.launches[: -self.keep]
            self.lane_instructions += launch.lane_instructions
            if found:
                self.findings.append(launch)
        if self.on_launch is not None:
            self.on_launch(launch)

    def _storages_for(self, tensors):
        """All that lives: the arguments' with names and shapes, the others as bytes."""
        found, seen = [], set()
        for name, value in tensors:
            base = getattr(value, "base", value)
            if hasattr(base, "untyped_storage"):
                storage = base.untyped_storage()
                if storage._cdata not in seen and storage.nbytes():
                    seen.add(storage._cdata)
                    found.append(assay.machine.Storage.of(base, name))
        for storage in self.devices.storages.live():
            if storage._cdata not in seen and storage.nbytes():
                found.append(assay.machine.Storage(storage.data_ptr(), storage.nbytes(), keep=storage))
        return found

    def _set_driver(self, triton):
        config = _driver_config(triton)
        kept = "_active" if "_active" in vars(config) else "active"  # Triton 3.4
        before = vars(config)[kept]
        self._patches.call(lambda: setattr(config, kept, before))
        config.set_active(make_driver(self))

    def _refuse_kept_answers(self):
        other = [(m, q) for m, q in kept_answers.kept() if _told.get(m) != self.gpu.name]
        if not other or self.imported != "refuse":
            return
        module, question = other[0]
        more = f" (and {len(other) - 1} more modules)" if len(other) > 1 else ""
        raise RuntimeError(
            f"{module}{more} was imported before the machine and has kept other answers about the device "
            f"({question}): import it after the machine starts, start with ASSAY_TRITON={self.gpu.arch}, or use "
            "another process for another architecture"
        )


_told = {}  # module -> the GPU that answered when it was imported


def _driver_config(triton):
    """Triton's own. `triton.runtime.driver` names the module or, in some versions, the object in it."""
    import triton.runtime.driver  # noqa: F401

    return sys.modules["triton.runtime.driver"].driver


def active():
    """The active machine, or None."""
    return _active
