"""Calls that make no sense: a Python exception each, and never the end of the interpreter."""
import os
import random

import numpy
import pytest
from kernels import FOLLOW, HEAD, MODULE, SCALE, SPIN

import assay
from assay.machine import FORMATS, Module, Storage, run

#: Addresses are the test's own, so that a wrong storage is refused or harmless.
ROOM = numpy.zeros(1 << 16, dtype=numpy.uint8)
ALLOWED = (assay.BadInput, assay.OverBudget)


def any_tensor(r):
    shape = [r.choice([0, 1, 2, 3, 7, 16]) for _ in range(r.randrange(6))]
    dtype = r.choice(["f2", "f4", "f8", "i4", "i8", "u1", "?", "c8", "i2", ">f4", "U3", "O", "M8[s]"])
    x = numpy.zeros(shape, dtype=dtype)
    for _ in range(r.randrange(3)):
        if x.ndim:
            x = r.choice([x.T, x[::-1], x[..., ::2], x[1:], numpy.broadcast_to(x, (2, *x.shape))])
    return r.choice([x, x, x, x, None, r.random(), "x", [1.0], object(), lambda: 0])


def any_operator(r):
    op = r.choice(["gla", "simple_gla", "delta_rule", "hgrn", "gsa", "nothing", "", "gla.chunk", "gla.chunk@S1x", "\0"])
    if r.random() < 0.6:  # one thing is wrong, or none
        tensors = {name: numpy.full((1, 3, 2, 8), -0.5, dtype=numpy.float32) for name in "qkvg"}
        tensors[r.choice(["q", "k", "g", "x", "scale", "o"])] = any_tensor(r)
        return "gla", tensors
    names = r.sample(["q", "k", "v", "g", "x", "s", "beta", "o", "do", "initial_state", "cu_seqlens", "scale"], r.randrange(7))
    return op, {name: any_tensor(r) for name in names}


def any_storage(r):
    at = ROOM.ctypes.data + r.choice([0, 1, 8, 64])
    size = r.choice([0, 1, 7, 4096, 1 << 15])
    shape = r.choice([None, (), (r.randrange(2000),), (r.randrange(40), r.randrange(40)), (1,) * 8, (1 << 40, 1 << 40)])
    strides = None if shape is None or r.random() < 0.5 else tuple(r.choice([-1, 0, 1, 5, 1 << 60]) for _ in shape)
    dtype = r.choice([None, *FORMATS])
    return Storage(at, size, r.choice(["", "x", "\u2603", "a" * 5000]), dtype=dtype, shape=shape, strides=strides,
                   offset=r.choice([0, 0, 1, -1, 1 << 62]), writable=r.random() < 0.7)  # fmt: skip


def any_launch(r):
    text = HEAD + SCALE + FOLLOW + SPIN
    module = MODULE
    if r.random() < 0.3:
        at = r.randrange(len(text))
        module = Module(text[:at] + r.choice(["", "\0", "}", "%", "ret;", "\u2603", text[r.randrange(len(text)) :]]) + text[at + r.randrange(9) :])
    address = r.choice([0, ROOM.ctypes.data, ROOM.ctypes.data + 3, 1 << 63, 0x0900_0000_0000, 0x8000_0000_0000])
    words = [address.to_bytes(8, "little"), r.choice([0, 1, 1000, 1 << 31]).to_bytes(4, "little"), b"\0\0\x80\x3f"]
    return run(
        module,
        r.choice([*["scale"] * 9, "follow", "spin", "none"]),
        grid=tuple(r.choice([1, 1, 2, 8]) for _ in range(3)) if r.random() < 0.8 else (0, 1, 1 << 31),
        block=tuple(r.choice([1, 2, 5]) for _ in range(3)) if r.random() < 0.8 else (33, 5000, 1),
        cluster=r.choice([None, None, None, None, None, (1, 1, 1), (2, 1, 1), (0, 9, 1)]),
        shared_bytes=r.choice([0, 0, 16, 1 << 20]),
        arguments=r.choice([words, words, words, b"".join(words), words[:1], b"", []]),
        storages=r.choice([[Storage.of(ROOM)], [any_storage(r) for _ in range(r.randrange(4))]]),
        arch=r.choice(["sm_80", "sm_89", *["sm_90"] * 7, "sm_12"]),
        checks=r.choice([*["none"] * 6, "all", "races", "?"]),
        repeats=r.random() < 0.1,
        cooperative=r.random() < 0.1,
        limit=1_000_000,
        instruction_budget=10_000,
    )


CALLS = (
    *[any_launch] * 6,
    lambda r: (lambda op, x: assay.reference(op, **x))(*any_operator(r)),
    lambda r: (lambda op, x: assay.verify(op, outputs={"o": any_tensor(r)}, diagnose=False, **x))(*any_operator(r)),
    lambda r: assay.inspect(**any_operator(r)[1]),
    lambda r: assay.replay("".join(r.choice("gla.chunk/B1T9H-\0xs") for _ in range(20))),
    lambda r: assay.check(r.choice(["", "/", "/dev/null", "no.json", __file__])),
    lambda r: assay.check(MODULE, entry="scale", arguments=[any_tensor(r) for _ in range(3)]),
    lambda r: assay.machine.tensor_map(r.choice([0, 16, 1 << 70]), "bf16", [64] * r.randrange(7), [128] * r.randrange(7), [64]),
)


@pytest.mark.filterwarnings("ignore::assay.Rounded")
def test_no_call_ends_the_interpreter():
    seed = int(os.environ.get("ASSAY_MISUSE_SEED", "1"))
    count = 500 * int(os.environ.get("ASSAY_TEST_SCALE", "1"))
    refused = 0
    for i in range(count):
        r = random.Random(f"{seed}.{i}")
        try:
            r.choice(CALLS)(r)
        except ALLOWED as error:
            refused += 1
            assert str(error) and "\n" not in str(error), f"seed {seed}.{i}"
        except (TypeError, ValueError, OverflowError):  # Python's own
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}.{i}: {type(error).__name__}: {error}") from error
    assert count * 0.4 < refused < count * 0.95
