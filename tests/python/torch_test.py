"""PyTorch's tensors, where it is installed (ASSAY_PYTHON names an interpreter that has it)."""
import pytest
from kernels import MODULE

import assay
from assay.machine import Storage

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def gla():
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 20, 2, 16).to(torch.bfloat16) for _ in range(3))
    return {"q": q, "k": k, "v": v, "g": -torch.rand(1, 20, 2, 16)}


class OnlyDlpack:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_bf16_is_read_as_it_is():
    tensors = gla()
    exact = assay.reference("gla", **tensors)
    as_fp32 = {name: x.float().numpy() for name, x in tensors.items()}
    assert (assay.reference("gla", **as_fp32).o.mid == exact.o.mid).all()
    o = torch.from_numpy(exact.o.mid)
    assert assay.verify("gla", outputs={"o": o.to(torch.bfloat16)}, **tensors).verdict == "pass"
    assert assay.verify("gla", outputs={"o": o.to(torch.bfloat16) * 1.1}, **tensors).verdict == "finding"


def test_any_strides_and_dlpack_give_the_same():
    tensors = gla()
    exact = assay.reference("gla", **tensors)
    q = tensors["q"]
    wide = torch.full((1, 20, 2, 32), float("nan"), dtype=torch.bfloat16)
    wide[..., 1::2] = q
    heads_first = q.transpose(1, 2).contiguous().transpose(1, 2)
    for view in (wide[..., 1::2], heads_first, OnlyDlpack(q), OnlyDlpack(heads_first), q.clone().requires_grad_()):
        assert (assay.reference("gla", **{**tensors, "q": view}).o.mid == exact.o.mid).all()


def test_a_storage_is_the_tensors_whole_storage():
    x = torch.zeros(100, dtype=torch.bfloat16)
    storage = Storage.of(x[10:20:2], "x")
    assert (storage.address, storage.nbytes) == (x.data_ptr(), 200)
    y = torch.ones(8, 8)
    assay.check(MODULE, entry="scale", grid=(1, 1, 1), block=(32, 1, 1), arguments=[y[4:], 32, 2.0])
    assert y[4:].eq(2).all() and y[:4].eq(1).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x.to("meta"), "meta"),
        (lambda x: x.to_sparse(), "to_dense"),
        (lambda x: x.float(), "expected bf16"),
        (lambda x: torch.complex(x.float(), x.float()), "complex64"),
        (lambda x: x[0], "expected"),
    ],
)
def test_a_tensor_that_does_not_fit_is_one_line(change, said):
    tensors = gla()
    with pytest.raises(assay.BadInput) as raised:
        assay.reference("gla", **{**tensors, "k": change(tensors["k"])})
    assert said in str(raised.value) and "\n" not in str(raised.value)
