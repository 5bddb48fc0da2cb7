# Written by tools/generate_results.py from reports/schema.json. Do not edit.
"""Results as plain data: what `assay ... --json` writes, as dataclasses.

`Verification.from_json(document)` reads a parsed document, `.to_json()` gives it back. Documents print as the
command line prints, and as a page in notebooks; everything pickles.
"""
from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from ._record import Document, Record

__all__ = [
    "AccumulatedDecay", "Amplifier", "Births", "Case", "ChainLink", "CheckedPlace", "Checkout", "Checks",
    "ChecksFinding", "Diagnosis", "Dismissed", "ExponentRange", "Field", "Finding", "Formula", "FormulaElement",
    "FormulaOutput", "Fuzz", "FuzzBaseline", "FuzzBaselineGone", "FuzzCoverage", "FuzzKernelProperty", "FuzzProperty",
    "FuzzReached", "FuzzRerun", "FuzzTightness", "FuzzTooFew", "FuzzTool", "InspectedTensor", "Inspection",
    "InspectionTool", "Location", "Mutation", "MutationChange", "MutationMutant", "MutationTool", "Operand",
    "OperatorFit", "OperatorFitSizes", "Origin", "OriginGroup", "OriginInput", "Output", "OutputAxis", "Power",
    "PowerOutput", "Program", "ProgramSize", "RacingPair", "Repeat", "Rounding", "RoundingOutput", "RoundingPart",
    "SameDefect", "Shadow", "ShadowEdge", "ShadowElement", "ShadowLine", "ShadowOutput", "ShadowParting", "Slice",
    "SliceChain", "SliceInput", "SliceLine", "SliceNode", "SliceNodeOperand", "SuspectLine", "Sweep", "SweepCell",
    "SweepCellSetting", "SweepDimension", "SweepSample", "SweepTool", "Trap", "Trend", "TrendFinding", "TrendRun",
    "TrendRunRatio", "TrendTool", "Triage", "ValueClass", "Verification", "VerificationTool", "Worst", "WrittenTensor"
]

Dtype = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "i32", "i64", "u8"]
Direction = Literal["forward", "backward", "both"]
TrapKind = Literal[
    "out-of-bounds", "misaligned", "barrier", "hang", "launch", "unsupported", "unwritten-read", "warpgroup",
    "wgmma-race", "call", "branch", "assertion", "trap", "raised"
]
OriginKind = Literal[
    "exp-overflow", "zero-times-infinity", "infinity-minus-infinity", "infinity-divided-by-infinity",
    "division-by-zero", "logarithm-of-zero", "negative-argument", "infinite-argument", "conversion-overflow",
    "accumulation-overflow", "literal", "input", "unwritten-memory", "beyond"
]
Source = Literal["", "input", "literal", "unwritten-memory", "beyond"]
RacingPairKind = Literal[
    "race", "warp-race", "ended-block", "unwritten-branch", "unwritten-address", "unwritten-output",
    "unwritten-tensor-core", "never-written", "out-of-bounds", "index-wrap", "async-copy-race", "wgmma-race",
    "bulk-copy-race", "proxy-fence", "mbarrier-phase"
]
Check = Literal["races", "unwritten", "bounds", "wrap", "async"]
Quantity = Literal["argument", "result"]
Fault = Literal["none", "kernel", "compiler-or-hardware", "kernel and compiler-or-hardware", "race"]
RepeatKind = Literal["order", "poison", "architecture", "recorded"]
FindingVerdict = Literal["pass", "finding", "undecided", "domain"]
SweepCellVerdict = Literal["pass", "domain", "refused", "undecided", "finding"]
Outcome = Literal["killed", "within-bound", "equivalent", "survived", "untried"]


class Case(Record, absent="rates"):
    """
    blocks: blocks of each launch that ran; null: all. layout: how inputs lie in memory, as in heads-first or
    q=padded,k=4096:64:64:1; null: row by row. parameters: numbers of the operator, as in layer_idx=3,num_layers=12;
    null: all have their default. rates: the largest rate of a delta rule that is drawn.
    """
    kernel: str; B: int; T: int; H: int; HV: int; K: int; V: int; M: int; cu_seqlens: list[int]; dtype: Dtype
    gate_dtype: Dtype; decay: str; values: str; seed: int; scale: float | None; direction: Direction
    without: list[str]; initial_state: bool; final_state_gradient: bool; overrides: list[str]
    blocks: str | None = None; layout: str | None = None; parameters: str | None = None
    rates: float | None = None

class Worst(Record):
    """the first element of a wrong class, else the one of the largest error/bound"""
    element: str; flat: int; got: float; expected: float; expected_rounded: float; got_bits: str
    expected_bits: str; absolute: float; relative: float; ulp: float; bound: float; ratio: float

class Field(Record):
    """largest error/bound of the elements that share an index along one axis"""
    axis: str; max_ratio: list[float]

class OutputAxis(Record):
    name: str; size: int

class Output(Record, absent="by_formula"):
    """
    by_formula: of ok: elements whose bound is infinite, so that the formula alone decided; in no maximum.
    undecided_reason: why an enclosure stayed wide. histogram: elements by floor(log2(error/bound)) + 60; exact ones
    in bin 0, infinite ratios in bin 63.
    """
    name: str; axes: list[OutputAxis]; dtype: Dtype; elements: int; ok: int; violation: int; nonfinite: int
    wrong_class: int; undecided: int; by_formula: int | None = None; undecided_reason: str; worst: Worst
    max_ratio: float; max_tightness: float; max_relative_bound: float; max_enclosure: float; histogram: list[int]
    fields: list[Field]

class FormulaElement(Record):
    """the element of the largest difference / allowed

    exact: what the program's instructions give on real numbers. expected: the reference.
    """
    element: str; flat: int; exact: float; expected: float; difference: float; allowed: float

class FormulaOutput(Record):
    """
    judged: the others are not finite, or no shadow follows them. max_difference: relative to the root mean square of
    the output's reference. max_allowed: likewise: what a fault of the formula must exceed to be seen.
    """
    name: str; elements: int; judged: int; violation: int; worst: FormulaElement; max_difference: float
    max_allowed: float

class Formula(Record):
    """the program's outputs in exact arithmetic against the reference

    skipped: why nothing is judged. turned: comparisons that exact operands would have decided the other way. loss:
    the first instruction behind which nothing is judged.
    """
    outputs: list[FormulaOutput]; skipped: str; turned: int; loss: str; seconds: float

class RoundingPart(Record):
    """errors of one part of an output, relative to the root mean square of the exact values there

    error: root mean square of the errors. predicted: that of the declared roundings. ratio: error / predicted. slope:
    of the values on the exact ones. allowed_slope: how far from 1 it may be. bias: mean error. carried: errors alike
    from block to block, as a state carries them: standard deviations above what the declared roundings explain.
    excess: the largest of all over what is allowed of it; above 1 it is unlikely.
    """
    where: str; elements: int; error: float; predicted: float; ratio: float; allowed_ratio: float; slope: float
    allowed_slope: float; bias: float; allowed_bias: float; carried: float; allowed_carried: float; excess: float

class RoundingOutput(Record):
    """
    parts: parts that were judged. unlikely: of those, how many the declared roundings do not explain. worst: the part
    of the largest excess. all: the whole output. skipped: why the model says nothing of this output; empty where it
    does.
    """
    name: str; parts: int; unlikely: int; worst: RoundingPart; all: RoundingPart; skipped: str

class Rounding(Record):
    """whether the declared roundings explain the errors: a statistical verdict

    expected: outputs that the inputs' file holds. false_alarms: probability of one in the whole run, under the model.
    """
    outputs: list[RoundingOutput]; expected: list[RoundingOutput]; false_alarms: float; seconds: float

class PowerOutput(Record):
    """the smallest uniform relative error of an output that would have been seen

    by: the verdict that would have seen it: bound, statistic or formula. smallest_late: of an error in the last
    quarter of the tokens only. error: root mean square of the errors over that of the exact values. zeros: zeros in
    place of the output would have passed. flipped: the output with the other sign would have passed. inconclusive:
    zeros would have passed, where the exact values are not zero.
    """
    name: str; smallest: float; by: str; smallest_late: float; by_late: str; error: float; zeros: bool
    flipped: bool; inconclusive: bool

class Power(Record):
    """what the verdicts would have seen

    expected: outputs that the inputs' file holds.
    """
    outputs: list[PowerOutput]; expected: list[PowerOutput]

class Location(Record):
    file: str; line: int; ptx_line: int; function: str; frames: list[str] | None = field(default_factory=list)

class Trap(Record):
    kind: TrapKind; message: str; where: Location; block: list[int]; thread: list[int]

class Operand(Record):
    name: str; type: str; value: float; bits: str

class ChainLink(Record):
    where: Location; instruction: str; text: str

class OriginInput(Record):
    element: str; value: float; nearest_finite: str

class Origin(Record):
    element: str; kind: OriginKind; where: Location; source_text: str; instruction: str; operands: list[Operand]
    result: float; block: list[int]; thread: list[int]; inputs: list[OriginInput]; inputs_truncated: bool
    chain: list[ChainLink]; infinity_made_at: ChainLink | None; sentence: str

class AccumulatedDecay(Record):
    """where the errors of log decays, summed from the start of a sequence, are largest; in nats

    element: the last element summed. error: sum of kernel - exact.
    """
    element: str; steps: int; decay: float; error: float; bound: float

class OriginGroup(Record):
    """
    elements: non-finite output elements with an origin of this kind on this line.
    """
    origin: Origin; elements: int; outputs: list[str]

class SliceChain(Record):
    """
    times: rounds of a loop over this step and its neighbours with this count.
    """
    at: ChainLink; operands: list[Operand]; result: float; type: str; block: list[int]; thread: list[int]
    times: int

class SliceLine(Record, keys={"from_": "from"}):
    at: ChainLink; instances: int; smallest: float; largest: float; from_: list[int]

class SliceInput(Record):
    input: str; elements: int; first: str; last: str; largest: str; value: float

class SliceNodeOperand(Record):
    """
    made_by: index into nodes; -1: from outside, or not listed. input: the input's element.
    """
    name: str; type: str; bits: str; made_by: int; source: Source; input: str

class SliceNode(Record):
    """
    line: index into lines.
    """
    line: int; instruction: str; type: str; bits: str; value: float; block: list[int]; thread: list[int]
    operands: list[SliceNodeOperand]

class Slice(Record):
    """the instruction instances behind one output element

    blocks: run again, of blocks_of. chain: input first, output last: at each instance the operand that decides its
    size. nodes: instances, consumers before producers; of more than 16384 the nearest to the output. nodes_left_out:
    instances that are counted and are not among the nodes.
    """
    element: str; value: float; instances: int; truncated: bool; blocks: int; blocks_of: int; unwritten: bool
    chain: list[SliceChain]; lines: list[SliceLine]; inputs: list[SliceInput]; nodes: list[SliceNode]
    nodes_left_out: int | None = None

class Diagnosis(Record):
    cause: str; explanation: str; score: float; evidence: list[str]
    against: list[str] = field(default_factory=list)

class SuspectLine(Record):
    """a source line that may be what is wrong

    reason: what convinced.
    """
    at: ChainLink; reason: str

class ExponentRange(Record):
    where: Location; instruction: str; min: float; max: float; count: int; nans: int

class CheckedPlace(Record):
    """one thread at one instruction"""
    where: Location; block: list[int]; thread: list[int]; access: str

class RacingPair(Record):
    """a further pair of accesses that the same missing barrier leaves without an order"""
    kind: RacingPairKind; message: str; at: CheckedPlace; other: CheckedPlace; element: str; count: int

class ChecksFinding(Record):
    check: Check; kind: RacingPairKind; message: str; at: CheckedPlace; other: CheckedPlace | None; element: str
    count: int; also: list[RacingPair] = field(default_factory=list)

class Dismissed(ChecksFinding):
    """what a check met that is no finding, and why"""
    reason: str

class Checks(Record):
    """what the checking machine found

    skipped: why some checks did not run; else empty.
    """
    ran: list[Check]; skipped: str; findings: list[ChecksFinding]
    dismissed: list[Dismissed] = field(default_factory=list); lane_instructions: int; seconds: float

class Amplifier(Record):
    """a source line that makes large relative errors out of small ones

    error: relative, of its results: where the binade begins that an eighth of them reaches. growth: times the largest
    relative error of their operands: of the median; around a loop, times the error that came back to it at the start:
    the median's.
    """
    where: Location; instruction: str; error: float; growth: float; value: float; exact: float; block: list[int]
    thread: list[int]

class ShadowOutput(Record):
    name: str; elements: int; followed: int; nonfinite: int; max_error: float; rms_error: float; rms_exact: float
    worst: str; value: float; exact: float; bound: float

class ShadowElement(Record):
    element: str; value: float; exact: float; bound: float

class ShadowEdge(Record):
    """
    distance: binades left; 0 or less: reached.
    """
    where: Location; instruction: str; quantity: Quantity; format: str; extreme: float; limit: float
    distance: float; text: str

class ShadowLine(Record):
    where: Location; instruction: str; share: float; roundings: int; largest: float

class ShadowParting(Record):
    where: Location; instruction: str; block: list[int]; thread: list[int]; value: float; exact: float
    threshold: float

class Shadow(Record):
    """the run beside exact arithmetic: the same instructions on real numbers

    edges: how near each instruction came to where its format ends, nearest first. amplifiers: lines that make large
    relative errors out of small ones, the strongest first.
    """
    outputs: list[ShadowOutput]; element: ShadowElement | None = None
    edges: list[ShadowEdge] = field(default_factory=list); lines: list[ShadowLine]
    amplifiers: list[Amplifier] = field(default_factory=list); parting: ShadowParting | None; ended: int
    lane_instructions: int; seconds: float; seconds_by_line: float

class Triage(Record):
    """whose fault it is, where a GPU ran beside the machine"""
    fault: Fault; explanation: str; evidence: list[str]

class WrittenTensor(Record):
    """a tensor that the run wrote

    born: of those, elements whose value an instruction of the program made.
    """
    name: str; shape: str; elements: int; smallest: float; largest: float; nans: int; infinities: int; born: int

class ProgramSize(Record):
    name: str; value: int

class Program(Record):
    """what ran, where no operator is claimed"""
    file: str; launches: list[str]; sizes: list[ProgramSize]; seed: int; written: list[WrittenTensor]

class Births(Record):
    """special values that a source line made out of others"""
    where: Location; instruction: str; nans: int; infinities: int; subnormals: int; divisions_by_zero: int
    block: list[int]; thread: list[int]; example: str

class Repeat(Record):
    """the run once more, and what came out otherwise

    largest: largest difference over the tensor's root mean square. by_order_of_sums: it comes of the order in which
    atomics added floats, and of nothing else. expected: no finding: the architectures' own roundings explain it.
    departure: where the runs part first.
    """
    kind: RepeatKind; how: str; differing: int; element: str; largest: float; by_order_of_sums: bool
    expected: bool; departure: str; where: Location | None; note: str

class Checkout(Record):
    """the sources that were tested

    branch: empty: none is checked out. dirty: tracked files differ from the commit.
    """
    commit: str; branch: str; dirty: bool

class SameDefect(Record):
    """a further finding of the run that shows the same defect"""
    cause: str; sentence: str; replay: str; identity: str

class Finding(Record, absent="source_shape"):
    """
    token: the case in one line; replays it. replay: the command that repeats the run. cause: verdict kind / output /
    origin; empty for a pass. source_shape: of the line that the cause ends with: its text without what is changed for
    looks. expected_outputs: outputs that the inputs' file holds, in place of the kernel's. domain: inputs outside the
    operator's domain. lines: source lines that may have made finite values wrong, the likeliest first. unexplained:
    of a finding whose explanation had no time, or not enough: why; its replay explains it. partial: where only some
    blocks ran: which, and what is judged. bits_differ: elements that differ between GPU and machine; -1: not
    compared. entry: where the kernel's first entry begins, of a finding whose place is not known better. births:
    special values by the source line that made them. repeats: the run in other orders, with other poison, on other
    architectures. known: the baseline has it too; null: no baseline was given. identity: what is the same for one
    finding in several runs: kernel, cause, diagnosis.
    """
    kernel: str; case: Case; token: str; replay: str; backend: str; arithmetic: str; verdict: FindingVerdict
    cause: str; source_shape: str | None = None; outputs: list[Output]; formula: Formula | None = None
    rounding: Rounding | None = None; power: Power | None = None
    expected_outputs: list[Output] = field(default_factory=list); properties_failed: list[str]; domain: list[str]
    trap: Trap | None; origin: Origin | None
    accumulated_decay: list[AccumulatedDecay] = field(default_factory=list)
    origins: list[OriginGroup] = field(default_factory=list); slice: Slice | None = None
    diagnosis: list[Diagnosis]; lines: list[SuspectLine] = field(default_factory=list)
    unexplained: str | None = None; exponents: list[ExponentRange]; partial: str | None = None
    checks: Checks | None = None; shadow: Shadow | None = None; lane_instructions: int; seconds_reference: float
    seconds_kernel: float; triage: Triage | None = None; bits_differ: int; entry: Location | None = None
    program: Program | None = None; births: list[Births] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list); checkout: Checkout | None = None
    also: list[SameDefect] = field(default_factory=list); known: bool | None = None; identity: str | None = None

class VerificationTool(Record):
    name: str; version: str; commit: str

class Verification(Document, Finding):
    schema: int = 1; kind: str = 'verification'; tool: VerificationTool

class FuzzTool(Record):
    name: str; version: str; commit: str

class FuzzProperty(Record):
    name: str; checked: int; failed: int

class FuzzCoverage(Record):
    feature: str; value: str; cases: int

class FuzzTightness(Record, absent="undecided"):
    """
    undecided: further cases, with an element that nothing could be said of: in no maximum.
    """
    kernel: str; output: str; dtype: str; decay: str; length_class: str; cases: int; max_ratio: float
    max_tightness: float; max_relative_bound: float; undecided: int | None = None

class FuzzReached(Record):
    kernel: str; what: str; reached: int; of: int

class FuzzRerun(Record):
    kernel: str; token: str; outcome: str

class FuzzBaselineGone(Record):
    kernel: str; cause: str; token: str; outcome: str; replay: str

class FuzzBaseline(Record):
    source: str; gone: list[FuzzBaselineGone]

class FuzzTooFew(Record):
    kernel: str; cases: int

class FuzzKernelProperty(Record):
    kernel: str; name: str; checked: int; failed: int

class Fuzz(Document, absent="ended_early min_cases not_shrunk database_lost"):
    """
    reruns: findings of earlier runs whose cases were run again. ended_early: why the run ended before its budget was
    spent; empty: it did not. min_cases: that should have been judged of each kernel. too_few: kernels of which fewer
    were judged: the run is inconclusive. kernel_properties: properties by kernel. checkout: the sources that were
    tested. not_shrunk: findings kept as they were found, as the time was over. database_lost: why nothing more could
    be stored while the run went on; else empty.
    """
    schema: int = 1; kind: str = 'fuzz'; tool: FuzzTool; kernels: list[str]; backend: str; seed: int; cases: int
    passed: int; undecided: int; domain: int; seconds: float; findings: list[Finding]
    properties: list[FuzzProperty]; coverage: list[FuzzCoverage]; tightness: list[FuzzTightness]
    reached: list[FuzzReached]; reruns: list[FuzzRerun] = field(default_factory=list)
    baseline: FuzzBaseline | None = None; ended_early: str | None = None; min_cases: int | None = None
    too_few: list[FuzzTooFew] = field(default_factory=list)
    kernel_properties: list[FuzzKernelProperty] = field(default_factory=list); checkout: Checkout | None = None
    not_shrunk: int | None = None; database_lost: str | None = None

class SweepSample(Record):
    """one seed of a cell; errors are |got - exact| in the unit of the output, over its finite elements"""
    seed: int; max_error: float; p99_error: float; max_bound: float; p99_bound: float; max_ratio: float
    p99_ratio: float; max_ulp: float; p99_ulp: float; rms_error: float; rms_exact: float; bias: float
    shrinkage: float

class SweepCellSetting(Record):
    option: str; value: str

class SweepCell(Record):
    """one output of one kernel at one setting of everything swept, over all seeds

    output: empty where the point was refused. verdict: the worst of the seeds. note: the cause of a finding; why a
    cell did not pass. over_seeds: the largest; of bias and shrinkage the mean. gate_min: of the log decays drawn; 0
    where there are none. token: of the seed with the worst verdict, of several the one with the largest ratio.
    """
    kernel: str; settings: list[SweepCellSetting]; output: str; verdict: SweepCellVerdict; note: str
    elements: int; violation: int; nonfinite: int; wrong_class: int; undecided: int; over_seeds: SweepSample
    samples: list[SweepSample]; gated: bool; gate_min: float; gate_max: float; seconds_kernel: float
    seconds_reference: float; token: str

class SweepTool(Record):
    name: str; version: str; commit: str

class SweepDimension(Record):
    option: str; values: list[str]

class Sweep(Document):
    """assay sweep: errors and bounds over options of a case

    base: token of the case that everything not swept is taken from. tolerance: of the largest error / root mean
    square of the output; 0: by format. worst: of each kernel and format the cell of the largest ratio, in full.
    """
    schema: int = 1; kind: str = 'sweep'; tool: SweepTool; kernels: list[str]; dimensions: list[SweepDimension]
    seeds: list[int]; base: str; backend: str; tolerance: float; complete: bool; seconds: float
    cells: list[SweepCell]; worst: list[Verification]

class MutationTool(Record):
    name: str; version: str; commit: str

class MutationChange(Record):
    change: str; killed: int; within_bound: int; equivalent: int; survived: int

class MutationMutant(Record):
    """
    id: KERNEL%id is a kernel. replacement: empty: nothing. token: of the kernel's case that shows it; empty: none
    does.
    """
    id: str; change: str; where: Location; source_text: str; original: str; replacement: str; outcome: Outcome
    reason: str; token: str; cases: int; reached_by: int

class Mutation(Document):
    """assay mutate: what became of single changed instructions

    places: pairs of source line and change. score: killed of killed and survived, in percent; 0 where there are none.
    """
    schema: int = 1; kind: str = 'mutation'; tool: MutationTool; kernel: str; backend: str; seed: int; asked: int
    possible: int; places: int; cases: int; instructions: int; instructions_reached: int; seconds: float
    set_aside: list[str]; killed: int; within_bound: int; equivalent: int; survived: int; score: float
    changes: list[MutationChange]; mutants: list[MutationMutant]

class TrendTool(Record):
    name: str; version: str; commit: str

class TrendRunRatio(Record):
    kernel: str; dtype: str; max_ratio: float

class TrendRun(Record):
    """
    commit: of the sources that were tested; where they lie in no checkout, "assay" and that of the program that ran.
    started: UTC. ratios: largest error/bound of each kernel and format, before the output itself is rounded.
    """
    commit: str; started: str; kernels: list[str]; backend: str; cases: int; passed: int; undecided: int
    findings: int; ratios: list[TrendRunRatio]

class TrendFinding(Record):
    """
    replay: of the latest run that had it. runs: places in the list of runs.
    """
    identity: str; kernel: str; replay: str; runs: list[int]

class Trend(Document):
    """assay report --trend: the fuzz runs of a database, the oldest first"""
    schema: int = 1; kind: str = 'trend'; tool: TrendTool; runs: list[TrendRun]; findings: list[TrendFinding]

class ValueClass(Record):
    """
    first: index of the first such element.
    """
    count: int; first: list[int] | None

class InspectedTensor(Record, keys={"minus_inf": "-inf"}):
    """
    min: of the finite values; null where there is none. exponents: finite values other than zero by their binary
    exponent e, 2^e <= |x| < 2^(e+1); empty for integers.
    """
    dtype: Dtype; shape: list[int]; elements: int; min: float | None; max: float | None; zeros: int
    subnormals: int; exponents: dict[str, int]; nan: ValueClass; inf: ValueClass; minus_inf: ValueClass

class OperatorFitSizes(Record):
    """where it fits"""
    B: int; T: int; H: int; HV: int; K: int; V: int; M: int; N: int

class OperatorFit(Record, absent="sizes layout direction"):
    """
    matched: inputs that a tensor is named after. expected: outputs that a tensor is named after. missing: inputs that
    are needed and not there. unused: tensors that are neither. complaint: why the tensors do not go together; empty
    where they do. notes: in which order tensors are held. sizes: where it fits. layout: where it fits: as --layout
    takes it. direction: where it fits.
    """
    operator: str; fits: bool; matched: list[str]; expected: list[str]; missing: list[str]; unused: list[str]
    complaint: str; notes: list[str]; sizes: OperatorFitSizes | None = None; layout: str | None = None
    direction: Direction | None = None

class InspectionTool(Record):
    name: str; version: str; commit: str

class Inspection(Document):
    """assay inspect: what the tensors of a file are, and the operators, the nearest first"""
    schema: int = 1; kind: str = 'inspection'; tool: InspectionTool; file: str
    tensors: dict[str, InspectedTensor]; operators: list[OperatorFit]
