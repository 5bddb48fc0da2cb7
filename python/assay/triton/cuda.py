"""`torch.cuda`, answering as one GPU would. Work is done when a call returns, so that streams and events only
exist; what cannot be pretended raises one clear line."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
import uuid
from types import SimpleNamespace

_CANNOT = {
    "CUDAGraph": "CUDA graphs",
    "graph": "CUDA graphs",
    "make_graphed_callables": "CUDA graphs",
    "graph_pool_handle": "CUDA graphs",
    "cudart": "the CUDA runtime",
    "caching_allocator_alloc": "memory of the CUDA allocator",
    "MemPool": "pools of the CUDA allocator",
    "use_mem_pool": "pools of the CUDA allocator",
    "CUDAPluggableAllocator": "another CUDA allocator",
    "change_current_allocator": "another CUDA allocator",
    "ExternalStream": "streams of others",
    "memory_snapshot": "the CUDA allocator's history",
}
_NOTHING_HAPPENS = (
    "init _lazy_init empty_cache ipc_collect reset_peak_memory_stats reset_max_memory_allocated "
    "reset_max_memory_cached reset_accumulated_memory_stats set_per_process_memory_fraction set_sync_debug_mode"
).split()
_NO_BYTES = (
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached "
    "get_sync_debug_mode utilization memory_usage temperature power_draw"
).split()


class NotPretended(NotImplementedError):
    """The program asked the pretended GPU for what it does not have."""


def properties(gpu):
    """What `torch.cuda.get_device_properties` gives."""
    major, minor = gpu.capability
    return SimpleNamespace(
        name=gpu.name,
        major=major,
        minor=minor,
        multi_processor_count=gpu.multiprocessors,
        total_memory=gpu.total_memory,
        is_integrated=0,
        is_multi_gpu_board=0,
        max_threads_per_multi_processor=gpu.threads_per_multiprocessor,
        max_threads_per_block=gpu.threads_per_block,
        warp_size=gpu.warp_size,
        uuid=uuid.UUID(int=0),
        L2_cache_size=gpu.l2_cache,
        clock_rate=gpu.clock,
        memory_clock_rate=gpu.memory_clock,
        memory_bus_width=gpu.memory_bus,
        shared_memory_per_block=gpu.shared_memory,
        shared_memory_per_multiprocessor=gpu.shared_memory_per_multiprocessor,
        shared_memory_per_block_optin=gpu.shared_memory_optin,
        regs_per_multiprocessor=gpu.registers,
        gcnArchName="",
    )


def install(patches, torch, gpu, devices):
    """`torch.cuda` is the pretended `gpu` while `patches` last."""
    cuda = torch.cuda
    answers = {
        **{name: _refuses(name, what, getattr(cuda, name, None)) for name, what in _CANNOT.items()},
        "jiterator": _jiterator(),
        **{name: lambda *args, **kwargs: None for name in _NOTHING_HAPPENS},
        **{name: lambda *args, **kwargs: 0 for name in _NO_BYTES},
        **_about_the_device(torch, gpu, devices),
        **_random_numbers(torch, devices),
        **_streams(torch, devices),
    }
    for name, answer in answers.items():
        if hasattr(cuda, name) or name in ("device_count", "Stream", "Event"):
            patches.set(cuda, name, _like(getattr(cuda, name, None), answer))
    for module, name in ((cuda.random, "get_rng_state"), (cuda.random, "set_rng_state")):
        patches.set(module, name, answers[name])
    _install_accelerator(patches, torch, answers)
    if torch.version.cuda is None:
        patches.set(torch.version, "cuda", "12.8")
    _install_autocast(patches, torch)


def _install_accelerator(patches, torch, answers):
    """`torch.accelerator`, where this version has it, says of the device what `torch.cuda` says; optimizers ask it."""
    accelerator = getattr(torch, "accelerator", None)
    same = {name: answers[name] for name in ("is_available", "device_count", "current_stream", "set_stream", "synchronize", "empty_cache")}
    index = {name: answers["current_device"] for name in ("current_device_index", "current_device_idx")}
    choose = {name: answers["set_device"] for name in ("set_device_index", "set_device_idx")}
    device = {"current_accelerator": lambda check_available=False: torch.device("cuda")}
    for name, answer in {**same, **index, **choose, **device}.items():
        if hasattr(accelerator, name):
            patches.set(accelerator, name, answer)


def _jiterator():
    """Libraries make such functions when they are imported; called, they are refused."""
    make = lambda *args, **kwargs: _refuses("jiterator", "CUDA code made from strings", None)  # noqa: E731
    return SimpleNamespace(_create_jit_fn=make, _create_multi_output_jit_fn=make)


def _refuses(name, what, original):
    def refuse(*args, **kwargs):
        raise NotPretended(f"torch.cuda.{name}: the machine has no {what}; run this part on a GPU")

    if isinstance(original, type):  # others may derive from it, or ask for its instances
        return type(original.__name__, (original,), {"__new__": refuse})
    return refuse


def _like(original, answer):
    """`answer` under `original`'s name and signature, which torch itself looks at."""
    return functools.wraps(original)(answer) if _is_function(original) and _is_function(answer) else answer


def _is_function(value):
    return callable(value) and not isinstance(value, type)


def _about_the_device(torch, gpu, devices):
    check = devices.check_device
    known = properties(gpu)

    def of_device(answer):
        def ask(device=None):
            check(device)
            return answer

        return ask

    class CurrentDevice:
        """The context managers `device` and `device_of`: there is one."""

        def __init__(self, device):
            if not isinstance(device, torch.Tensor):
                check(device)
            self.idx, self.prev_idx = 0, -1

        def __enter__(self):
            return None

        def __exit__(self, *error):
            return False

    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_compiled": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: check(device),
        "get_device_properties": of_device(known),
        "get_device_name": of_device(gpu.name),
        "get_device_capability": of_device(gpu.capability),
        "get_arch_list": lambda: [gpu.arch],
        "get_gencode_flags": lambda: f"-gencode compute=compute_{gpu.arch[3:]},code={gpu.arch}",
        "is_bf16_supported": lambda *args, **kwargs: True,
        "is_tf32_supported": lambda: True,
        "can_device_access_peer": lambda *args: False,
        "mem_get_info": of_device((gpu.total_memory, gpu.total_memory)),
        "memory_stats": lambda device=None: {},
        "memory_summary": lambda *args, **kwargs: "the machine has no CUDA allocator",
        "clock_rate": of_device(gpu.clock // 1000),
        "synchronize": of_device(None),
        "device": CurrentDevice,
        "device_of": CurrentDevice,
        "_exchange_device": lambda index: 0,
        "_maybe_exchange_device": lambda index: 0,
    }


def _random_numbers(torch, devices):
    """The GPU draws the numbers of the CPU's generator."""
    states = {
        "get_rng_state": lambda device="cuda": torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state": lambda state, device="cuda": torch.set_rng_state(state),
        "set_rng_state_all": lambda all_states: torch.set_rng_state(list(all_states)[0]),
        "initial_seed": lambda: torch.initial_seed(),
        "default_generators": (torch.default_generator,),
    }
    seeds = {name: lambda seed: _seed(torch, seed) for name in ("manual_seed", "manual_seed_all")}
    return {**states, **seeds, "seed": lambda: torch.default_generator.seed(), "seed_all": lambda: None}


def _seed(torch, seed):
    torch.default_generator.manual_seed(int(seed))


def _streams(torch, devices):
    numbers = itertools.count(1)

    class Stream:
        """A stream of the machine: work on it is done when the call that gave it returns."""

        def __init__(self, device=None, priority=0, **kwargs):
            devices.check_device(device)
            self.device, self.priority = torch.device("cuda", 0), priority
            self.device_index, self.device_type = 0, 1
            self.cuda_stream = self.stream_id = kwargs.get("stream_id", next(numbers))

        def query(self):
            return True

        def synchronize(self):
            pass

        def is_capturing(self):
            return False

        wait_event = wait_stream = lambda self, other: None

        def record_event(self, event=None):
            event = event or Event(enable_timing=True)
            event.record(self)
            return event

        def __enter__(self):
            self._inside = stream(self)
            self._inside.__enter__()
            return self

        def __exit__(self, *error):
            return self._inside.__exit__(*error)

    class Event:
        """An event of the machine: over when recorded. Times are those of this process, in milliseconds."""

        def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
            if interprocess:
                raise NotPretended("torch.cuda.Event(interprocess=True): the machine is in one process")
            self._at, self.device, self.cuda_event = None, torch.device("cuda", 0), 0

        def record(self, stream=None):
            self._at = time.perf_counter()

        def elapsed_time(self, end):
            if self._at is None or end._at is None:
                raise RuntimeError("both events must be recorded before the time between them is asked")
            return max(1e3 * (end._at - self._at), 1e-3)

        def query(self):
            return True

        def wait(self, stream=None):
            pass

        def synchronize(self):
            pass

    default = Stream(stream_id=0)
    current = [default]

    @contextlib.contextmanager
    def stream(chosen):
        before, current[0] = current[0], chosen or current[0]
        try:
            yield
        finally:
            current[0] = before

    def set_stream(chosen):
        current[0] = chosen or current[0]

    return {
        "Stream": Stream,
        "Event": Event,
        "stream": stream,
        "StreamContext": stream,
        "current_stream": lambda device=None: current[0],
        "default_stream": lambda device=None: default,
        "set_stream": set_stream,
        "is_current_stream_capturing": lambda: False,
    }


def _install_autocast(patches, torch):
    """`torch.autocast("cuda")` rounds what runs here: it is the CPU's as well."""
    enable, choose = torch.set_autocast_enabled, torch.set_autocast_dtype

    def set_enabled(device, enabled=None):
        if enabled is None:  # the old form, of the GPU
            device, enabled = "cuda", device
        enable(device, enabled)
        if device == "cuda":
            enable("cpu", enabled)

    def set_dtype(device, dtype):
        choose(device, dtype)
        if device == "cuda":
            choose("cpu", dtype)

    patches.set(torch, "set_autocast_enabled", set_enabled)
    patches.set(torch, "set_autocast_dtype", set_dtype)
