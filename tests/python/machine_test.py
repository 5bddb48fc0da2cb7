"""assay.machine: launches on the process's own memory."""
import os
import signal
import threading
import time

import numpy
import pytest
from kernels import HEAD, MODULE, SCALE, UNKNOWN, scale, word

import assay
from assay import machine
from assay.machine import Module, Storage, run


def test_a_launch_changes_the_storage_in_place():
    x = numpy.arange(1000, dtype=numpy.float32)
    did = scale(x, 1000)
    assert did.trap is None and not did.finding and did.verification is None
    assert did.lane_instructions > 10_000
    assert (x == 2 * numpy.arange(1000)).all()


def test_an_entry_says_its_signature():
    entry = MODULE.entries["scale"]
    assert [(p.name, p.type, p.bytes, p.offset) for p in entry.parameters] == [
        ("p", ".u64", 8, 0),
        ("n", ".u32", 4, 8),
        ("f", ".f32", 4, 12),
    ]
    assert [p.is_pointer_sized for p in entry.parameters] == [True, False, False]
    assert entry.target == "sm_80" and entry.required_block is None and entry.refused == ""


def test_arguments_may_come_packed():
    x = numpy.ones(1000, dtype=numpy.float32)
    packed = word(x.ctypes.data) + word(1000, 4) + numpy.float32(3).tobytes()
    run(MODULE, "scale", grid=(8, 1, 1), block=(128, 1, 1), arguments=packed, storages=[Storage.of(x)])
    assert (x == 3).all()


def test_a_storage_is_the_whole_of_what_a_view_lies_in():
    whole = numpy.zeros(1024, dtype=numpy.float32)
    storage = Storage.of(whole[24:524:5], "view")
    assert (storage.address, storage.nbytes) == (whole.ctypes.data, 4096)


def test_memory_that_no_storage_names_is_out_of_bounds():
    whole = numpy.ones(2000, dtype=numpy.float32)
    own = Storage(whole.ctypes.data, 4 * 1000, "x", dtype="fp32", shape=(10, 100), dims=("B", "T"))
    did = scale(whole, 1001, storages=[own])
    assert did.trap is not None and did.trap.kind == "out-of-bounds" and did.finding
    assert "x [B=10,T=100]" in did.trap.message
    assert (whole[1000:] == 1).all()
    hidden = scale(whole, 1, storages=[])
    assert hidden.trap is not None and hidden.trap.kind == "out-of-bounds"


@pytest.mark.parametrize("checks", ["none", "all"])
def test_a_storage_that_is_not_writable_stays_as_it_was(checks):
    x = numpy.ones(1000, dtype=numpy.float32)
    x.flags.writeable = False
    did = scale(x, 1000, checks=checks)
    assert did.finding
    assert (x == 1).all()


@pytest.mark.parametrize("checks", ["none", "all"])
def test_addresses_inside_tensors_reach_their_storage(checks):
    x = numpy.zeros(4, dtype=numpy.float32)
    table = numpy.array([0, x.ctypes.data], dtype=numpy.int64)
    did = run(
        MODULE,
        "follow",
        grid=(1, 1, 1),
        block=(1, 1, 1),
        arguments=[word(table.ctypes.data)],
        storages=[Storage.of(table, "table"), Storage.of(x, "x")],
        checks=checks,
    )
    assert did.trap is None
    assert x.tolist() == [7, 0, 0, 0]


def test_checks_find_what_a_plain_launch_passes_over():
    # Every block writes all of x: a race where there is more than one.
    racing = Module(HEAD + SCALE.replace("mad.lo.s32 %r5, %r2, %r3, %r4", "mov.u32 %r5, %r4"))
    x = numpy.ones(128, dtype=numpy.float32)

    def launch(blocks, checks):
        return run(
            racing,
            "scale",
            grid=(blocks, 1, 1),
            block=(128, 1, 1),
            arguments=[word(x.ctypes.data), word(128, 4), numpy.float32(1).tobytes()],
            storages=[Storage.of(x, "x")],
            checks=checks,
        )

    assert not launch(2, "none").finding
    raced = launch(2, "races")
    assert raced.finding and raced.verification.verdict == "finding"
    assert {f.kind for f in raced.verification.checks.findings} == {"race"}
    assert not launch(1, "all").finding


def test_births_of_nan_are_told_where_they_are_asked_for():
    x = numpy.full(1000, 3e38, dtype=numpy.float32)
    did = scale(x, 1000, factor=10, origins=True)
    assert did.finding and did.verification.origin.instruction.startswith("mul.rn.f32")
    assert did.verification.origin.element == "x[0]"
    assert numpy.isinf(x).all()
    assert scale(numpy.full(1000, 3e38, dtype=numpy.float32), 1000, factor=10, checks="all").verification.origin is None


def test_storages_may_have_one_name_or_none():
    x, y = (numpy.ones(1000, dtype=numpy.float32) for _ in range(2))
    for name in ("x", ""):
        for checks in ("none", "all"):
            did = scale(x, 1001, storages=[Storage.of(y, name), Storage.of(x, name)], checks=checks)
            assert did.trap is not None and (name or "memory at 0x") in did.trap.message


def test_storages_that_overlap_are_one():
    x = numpy.ones(1000, dtype=numpy.float32)
    halves = [Storage(x.ctypes.data, 2400, "low"), Storage(x.ctypes.data + 1600, 2400, "high")]
    assert scale(x, 1000, storages=halves).trap is None
    assert (x == 2).all()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda x: scale(x, 1000, arch="sm_70"), "sm_70"),
        (lambda x: scale(x, 1000, checks="everything"), "everything"),
        (lambda x: run(MODULE, "scald", grid=(1, 1, 1), block=(1, 1, 1), arguments=b"", storages=[]), "scald"),
        (lambda x: run(MODULE, "scale", grid=(1, 1, 1), block=(1, 1, 1), arguments=b"", storages=[]), "0 bytes"),
        (lambda x: run(MODULE, "scale", grid=(1, 1, 1), block=(1, 1, 1), arguments=[b"12345678"], storages=[]), "1 arg"),
        (lambda x: run(MODULE, "scale", grid=(1, 1, 1), block=(1, 1, 1), arguments=[b"1"] * 3, storages=[]), "1 bytes"),
        (lambda x: run(MODULE, "scale", grid=(1, 1), block=(1, 1, 1), arguments=b"", storages=[]), "three numbers"),
        (lambda x: run(MODULE, "scale", grid=(-1, 1, 1), block=(1, 1, 1), arguments=b"", storages=[]), "three numbers"),
        (lambda x: Storage(0, 8, dtype="fp13", shape=(1,)), "fp13"),
        (lambda x: scale(x, 1, storages=[Storage(x.ctypes.data, 8, "x", dtype="fp32", shape=(3,))]), "storage"),
        (lambda x: Module("no PTX at all"), "kernel.ptx:1:1"),
        (lambda x: Module(b"\xff\xfe", path="bytes.ptx"), "bytes.ptx"),
        (
            lambda x: run(
                Module(HEAD + UNKNOWN), "unknown", grid=(1, 1, 1), block=(1, 1, 1), arguments=b"", storages=[]
            ),
            "frobnicate",
        ),
    ],
)
def test_bad_input_is_one_line_that_says_what(what, said):
    with pytest.raises(assay.BadInput) as raised:
        what(numpy.ones(1000, dtype=numpy.float32))
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_one_entry_that_cannot_be_read_refuses_no_other():
    module = Module(HEAD + SCALE + UNKNOWN)
    x = numpy.ones(8, dtype=numpy.float32)
    did = run(
        module,
        "scale",
        grid=(1, 1, 1),
        block=(8, 1, 1),
        arguments=[word(x.ctypes.data), word(8, 4), numpy.float32(2).tobytes()],
        storages=[Storage.of(x)],
    )
    assert did.trap is None and (x == 2).all()


def spin(**options):
    return run(MODULE, "spin", grid=(1, 1, 1), block=(32, 1, 1), arguments=b"", storages=[], **options)


def test_a_launch_stops_at_its_limit():
    with pytest.raises(machine.OverBudget):
        spin(limit=10_000_000)
    hung = spin(instruction_budget=100_000)
    assert hung.trap is not None and hung.trap.kind == "hang"


@pytest.fixture
def interruptible():
    """Python's own handler, which a process that was started in the background (`pytest &`) does not have: there SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("checks", ["none", "all"])
def test_ctrl_c_stops_a_launch(checks, interruptible):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        spin(checks=checks)
    assert time.monotonic() - start < 5


def test_other_threads_run_while_a_launch_does():
    seen = []

    def count():
        for _ in range(20):
            time.sleep(0.005)
            seen.append(time.monotonic())

    counter = threading.Thread(target=count)
    counter.start()
    spin(instruction_budget=1 << 27)
    end = time.monotonic()
    counter.join()
    # A launch that kept them out would let none but the first through; its length leaves room for all twenty.
    assert sum(at < end for at in seen) >= 10


def test_launches_of_several_threads_do_not_meet():
    arrays = [numpy.full(1000, i, dtype=numpy.float32) for i in range(8)]
    failures = []

    def work(x):
        try:
            for _ in range(10):
                scale(x, 1000)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for i, x in enumerate(arrays):
        assert (x == i * 1024).all()


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_launch_runs_after_a_fork():
    x = numpy.ones(1000, dtype=numpy.float32)
    scale(x, 1000)
    child = os.fork()
    if child == 0:
        try:
            scale(x, 1000)
            os._exit(0 if (x == 4).all() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (x == 2).all()


def test_a_tensor_map_is_what_the_driver_makes_of_it():
    made = machine.tensor_map(1 << 40, "bf16", [64, 128], [128], [64, 32], swizzle=3)
    assert len(made) == 128 and made == machine.tensor_map(1 << 40, "bf16", [64, 128], [128], [64, 32], [1, 1], swizzle=3)
    assert made != machine.tensor_map(1 << 40, "bf16", [64, 128], [128], [64, 32], swizzle=3, fill="nan")
    for wrong, said in (
        (lambda: machine.tensor_map((1 << 40) + 8, "bf16", [64, 128], [128], [64, 32]), "16"),
        (lambda: machine.tensor_map(1 << 40, "bf17", [64], [], [64]), "bf17"),
        (lambda: machine.tensor_map(1 << 40, "bf16", [64, 128], [], [64, 32]), "0 strides"),
        (lambda: machine.tensor_map(1 << 40, "bf16", [64], [], [64], swizzle=9), "swizzle 9"),
        (lambda: machine.tensor_map(1 << 40, "bf16", [64], [], [64], fill="ones"), "ones"),
    ):
        with pytest.raises(assay.BadInput, match=said):
            wrong()
