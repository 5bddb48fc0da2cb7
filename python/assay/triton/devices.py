"""`device="cuda"` is the CPU's memory, and tensors there say that they are on the GPU.

Attributes and functions of torch are replaced for the whole process, so that every thread sees the same. A tensor
made without a device, or moved by `.cpu()`, is remembered as the host's (its storage is); every other CPU tensor is
the GPU's. Moving between the two copies, as it would.
"""

from __future__ import annotations

import functools

from assay.triton.storages import Storages

_FACTORIES = (
    "empty empty_permuted empty_strided ones arange bartlett_window blackman_window eye full hamming_window hann_window "
    "kaiser_window linspace logspace rand randn randint randperm range sparse_coo_tensor sparse_compressed_tensor "
    "sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor tril_indices triu_indices zeros asarray "
    "tensor as_tensor scalar_tensor"
).split()
_LIKE = "empty_like zeros_like ones_like full_like rand_like randn_like randint_like".split()
_METHODS = "new_empty new_empty_strided new_full new_ones new_tensor new_zeros new".split()
_FILLED_WITH_NAN = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}


class Devices:
    """Which CPU tensors are the host's, and what torch's functions make of devices.

    `unwritten`: memory that is allocated and not filled holds NaN (bytes 0xff), so that who reads it sees it.
    """

    def __init__(self, torch, gpu, unwritten=True):
        self.torch = torch
        self.storages = Storages(torch)
        self._host = Storages(torch)
        self._unwritten = unwritten
        self._device_of = torch._C.TensorBase.device.__get__
        self._cuda = torch.device("cuda", 0)
        self._cpu = torch.device("cpu")

    # What tensors are.

    def is_pretended(self, tensor):
        """Whether `tensor` says that it is on the GPU."""
        return self._device_of(tensor) == self._cpu and not self.is_left_on_cpu(tensor)

    def is_left_on_cpu(self, tensor):
        try:
            return self._host.holds(tensor.untyped_storage())
        except (AttributeError, NotImplementedError, RuntimeError):
            return False

    def leave_on_cpu(self, tensor):
        try:
            self._host.know(tensor.untyped_storage())
        except (NotImplementedError, RuntimeError):
            pass  # sparse, meta or fake: no storage of its own
        return tensor

    def real(self, device):
        """(device for torch, whether it is the GPU): of a torch.device, a string, an index; None stays."""
        if device is None:
            return None, False
        wanted = self.torch.device("cuda", device) if isinstance(device, int) else self.torch.device(device)
        if wanted.type != "cuda":
            return wanted, False
        self.check_index(wanted.index)
        return self._cpu, True

    def check_device(self, device):
        """Raises as CUDA does when `device` (an index, a name, a torch.device, None) is not cuda:0."""
        if device is not None:
            self.real(device)

    def check_index(self, index):
        if index not in (None, 0, -1):
            raise RuntimeError(f"CUDA error: invalid device ordinal (the machine is one GPU, cuda:0; not cuda:{index})")

    def _makes_on_gpu(self):
        """Whether a tensor made without a device would be on the GPU."""
        default = getattr(self.torch, "get_default_device", None)
        return default is not None and default().type == "cuda"

    # What replaces torch's own.

    def install(self, patches):
        torch = self.torch
        for name in _FACTORIES:
            if hasattr(torch, name):
                patches.set(torch, name, self._factory(getattr(torch, name), name))
        for name in _LIKE:
            if hasattr(torch, name):
                patches.set(torch, name, self._like(getattr(torch, name), name))
        for name in _METHODS:
            if hasattr(torch.Tensor, name):
                patches.set(torch.Tensor, name, self._like(getattr(torch.Tensor, name), name))
        for name in ("fftfreq", "rfftfreq"):
            patches.set(torch.fft, name, self._factory(getattr(torch.fft, name), name))
        for name in ("from_numpy", "frombuffer"):
            patches.set(torch, name, self._of_the_host(getattr(torch, name)))
        self._install_moves(patches)
        self._install_attributes(patches)
        self._install_addresses(patches)
        self._install_loading(patches)

    def _factory(self, original, name):
        fill = self._unwritten and name in _FILLED_WITH_NAN

        @functools.wraps(original)
        def make(*args, **kwargs):
            device, on_gpu = self.real(kwargs.get("device"))
            if device is None:
                on_gpu = self._makes_on_gpu()
                if on_gpu:
                    kwargs["device"] = self._cpu  # else the default would be added below
            else:
                kwargs["device"] = device
            made = original(*args, **kwargs)
            if not on_gpu and kwargs.get("out") is None and self._device_of(made) == self._cpu:
                if not (name in ("asarray", "as_tensor") and args and isinstance(args[0], self.torch.Tensor)):
                    self.leave_on_cpu(made)
            elif fill:
                _fill_with_nan(self.torch, made)
            return made

        return make

    def _like(self, original, name):
        fill = self._unwritten and name in _FILLED_WITH_NAN

        @functools.wraps(original)
        def make(like, *args, **kwargs):
            device, on_gpu = self.real(kwargs.get("device"))
            if device is None:
                on_gpu = not self.is_left_on_cpu(like)
            else:
                kwargs["device"] = device
            made = original(like, *args, **kwargs)
            if not on_gpu and self._device_of(made) == self._cpu:
                self.leave_on_cpu(made)
            elif fill and self._device_of(made) == self._cpu:
                _fill_with_nan(self.torch, made)
            return made

        return make

    def _of_the_host(self, original):
        @functools.wraps(original)
        def make(*args, **kwargs):
            return self.leave_on_cpu(original(*args, **kwargs))

        return make

    def _install_moves(self, patches):
        tensor = self.torch.Tensor
        to, pin = tensor.to, tensor.pin_memory

        def moved(self_, device, change):
            """`change(device)` on the side that `device` names; a copy where it is the other one."""
            device, on_gpu = self.real(device)
            if device is None:
                return change(None)
            changed = change(device)
            if device != self._cpu or self._device_of(self_) != self._cpu or on_gpu == self.is_pretended(self_):
                return changed if on_gpu or device != self._cpu else self.leave_on_cpu(changed)
            if _share_storage(changed, self_):
                changed = changed.clone()
            return changed if on_gpu else self.leave_on_cpu(changed)

        @functools.wraps(to)
        def to_(self_, *args, **kwargs):
            args, other = list(args), kwargs.pop("other", None)
            if args and isinstance(args[0], self.torch.Tensor):
                other = args.pop(0)
            if other is not None:
                kwargs.setdefault("dtype", other.dtype)
                return moved(self_, other.device, lambda d: to(self_, d, *args, **kwargs))
            if args and not isinstance(args[0], self.torch.dtype) and args[0] is not None:
                device = args.pop(0)
            else:
                device = kwargs.pop("device", None)
                if args and args[0] is None:
                    args.pop(0)
            if device is None:
                kept = to(self_, *args, **kwargs)
                return self.leave_on_cpu(kept) if self.is_left_on_cpu(self_) else kept
            return moved(self_, device, lambda d: to(self_, d, *args, **kwargs))

        def cuda(self_, device=None, non_blocking=False, memory_format=self.torch.preserve_format):
            return to_(self_, self._cuda if device is None else device, memory_format=memory_format)

        def cpu(self_, memory_format=self.torch.preserve_format):
            return to_(self_, self._cpu, memory_format=memory_format)

        def pin_memory(self_, device=None):
            pinned = self_.clone()  # the host's, yet kernels may read it: so it is the GPU's here
            return pinned

        patches.set(tensor, "to", to_)
        patches.set(tensor, "cuda", cuda)
        patches.set(tensor, "cpu", cpu)
        patches.set(tensor, "pin_memory", functools.wraps(pin)(pin_memory))

    def _install_attributes(self, patches):
        tensor = self.torch.Tensor
        get_device = tensor.get_device

        def device(self_):
            real = self._device_of(self_)
            return self._cuda if real == self._cpu and not self.is_left_on_cpu(self_) else real

        def attribute(read, original):
            return property(read, original.__set__ if hasattr(original, "__set__") else None)

        patches.set(tensor, "device", property(device))
        patches.set(tensor, "is_cuda", property(self.is_pretended))
        patches.set(
            tensor, "is_cpu", property(lambda self_: self._device_of(self_) == self._cpu and self.is_left_on_cpu(self_))
        )
        patches.set(tensor, "get_device", lambda self_: 0 if self.is_pretended(self_) else get_device(self_))

    def _install_addresses(self, patches):
        storage, tensor = self.torch.UntypedStorage, self.torch.Tensor
        of_tensor, of_storage = tensor.data_ptr, storage.data_ptr

        def tensor_address(self_):
            address = of_tensor(self_)
            if address and self._device_of(self_) == self._cpu:
                self.storages.know(self_.untyped_storage())
            return address

        def storage_address(self_):
            address = of_storage(self_)
            if address and self_.device == self._cpu:
                self.storages.know(self_)
            return address

        patches.set(tensor, "data_ptr", functools.wraps(of_tensor)(tensor_address))
        patches.set(storage, "data_ptr", functools.wraps(of_storage)(storage_address))

    def _install_loading(self, patches):
        torch = self.torch
        load, generator = torch.load, torch.Generator

        @functools.wraps(load)
        def load_(f, map_location=None, *args, **kwargs):
            if isinstance(map_location, (str, torch.device)):
                map_location, _ = self.real(map_location)
            elif map_location is None:
                map_location = self._cpu
            return load(f, map_location, *args, **kwargs)

        class Generator(generator):
            """torch.Generator; one of the GPU draws the CPU's numbers."""

            def __new__(cls, device="cpu"):
                return super().__new__(cls, self.real(device)[0])

        patches.set(torch, "load", load_)
        patches.set(torch, "Generator", Generator)


def _fill_with_nan(torch, made):
    if made.layout == torch.strided and made.numel():
        with torch.no_grad():
            made.untyped_storage().fill_(0xFF)


def _share_storage(a, b):
    try:
        return a.untyped_storage()._cdata == b.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return False
