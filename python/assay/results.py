# Written by tools/generate_results.py from reports/schema.json. Do not edit.
"""Results as plain data: what `assay ... --json` writes, as dataclasses.

`Verification.from_json(document)` reads a parsed document, `.to_json()` gives it back. Documents print as the
command line prints, and as a page in notebooks; everything pickles.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ._record import Document, Record

__all__ = [
    "AccumulatedDecay",
    "Amplifier",
    "Births",
    "Case",
    "ChainLink",
    "CheckedPlace",
    "Checkout",
    "Checks",
    "ChecksFinding",
    "Diagnosis",
    "ExponentRange",
    "Field",
    "Finding",
    "Formula",
    "FormulaElement",
    "FormulaOutput",
    "Fuzz",
    "FuzzBaseline",
    "FuzzBaselineGone",
    "FuzzCoverage",
    "FuzzKernelProperty",
    "FuzzProperty",
    "FuzzReached",
    "FuzzRerun",
    "FuzzTightness",
    "FuzzTooFew",
    "FuzzTool",
    "InspectedTensor",
    "Inspection",
    "InspectionTool",
    "Location",
    "Mutation",
    "MutationChange",
    "MutationMutant",
    "MutationTool",
    "Operand",
    "OperatorFit",
    "OperatorFitSizes",
    "Origin",
    "OriginGroup",
    "OriginInput",
    "Output",
    "OutputAxis",
    "Power",
    "PowerOutput",
    "Program",
    "ProgramSize",
    "Repeat",
    "Rounding",
    "RoundingOutput",
    "RoundingPart",
    "SameDefect",
    "Shadow",
    "ShadowEdge",
    "ShadowElement",
    "ShadowLine",
    "ShadowOutput",
    "ShadowParting",
    "Slice",
    "SliceChain",
    "SliceInput",
    "SliceLine",
    "SliceNode",
    "SliceNodeOperand",
    "SuspectLine",
    "Sweep",
    "SweepCell",
    "SweepCellSetting",
    "SweepDimension",
    "SweepSample",
    "SweepTool",
    "Trap",
    "Trend",
    "TrendFinding",
    "TrendRun",
    "TrendRunRatio",
    "TrendTool",
    "Triage",
    "ValueClass",
    "Verification",
    "VerificationTool",
    "Worst",
    "WrittenTensor",
]


@dataclass(kw_only=True)
class Case(Record):
    """Case"""

    kernel: str
    B: int
    T: int
    H: int
    HV: int
    K: int
    V: int
    M: int
    cu_seqlens: list[int]
    dtype: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "i32", "i64", "u8"]
    gate_dtype: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "i32", "i64", "u8"]
    decay: str
    values: str
    seed: int
    scale: float | None
    direction: Literal["forward", "backward", "both"]
    without: list[str]
    initial_state: bool
    final_state_gradient: bool
    overrides: list[str]
    blocks: str | None = None
    """blocks of each launch that ran; null: all"""
    layout: str | None = None
    """how inputs lie in memory, as in heads-first or q=padded,k=4096:64:64:1; null: row by row"""
    parameters: str | None = None
    """numbers of the operator, as in layer_idx=3,num_layers=12; null: all have their default"""

    _kinds = {
        "kernel": ("kernel", None),
        "B": ("B", None),
        "T": ("T", None),
        "H": ("H", None),
        "HV": ("HV", None),
        "K": ("K", None),
        "V": ("V", None),
        "M": ("M", None),
        "cu_seqlens": ("cu_seqlens", ("list", None)),
        "dtype": ("dtype", None),
        "gate_dtype": ("gate_dtype", None),
        "decay": ("decay", None),
        "values": ("values", None),
        "seed": ("seed", None),
        "scale": ("scale", ("optional", float)),
        "direction": ("direction", None),
        "without": ("without", ("list", None)),
        "initial_state": ("initial_state", None),
        "final_state_gradient": ("final_state_gradient", None),
        "overrides": ("overrides", ("list", None)),
        "blocks": ("blocks", ("optional", None)),
        "layout": ("layout", ("optional", None)),
        "parameters": ("parameters", ("optional", None)),
    }


@dataclass(kw_only=True)
class Worst(Record):
    """the first element of a wrong class, else the one of the largest error/bound"""

    element: str
    flat: int
    got: float
    expected: float
    expected_rounded: float
    got_bits: str
    expected_bits: str
    absolute: float
    relative: float
    ulp: float
    bound: float
    ratio: float

    _kinds = {
        "element": ("element", None),
        "flat": ("flat", None),
        "got": ("got", float),
        "expected": ("expected", float),
        "expected_rounded": ("expected_rounded", float),
        "got_bits": ("got_bits", None),
        "expected_bits": ("expected_bits", None),
        "absolute": ("absolute", float),
        "relative": ("relative", float),
        "ulp": ("ulp", float),
        "bound": ("bound", float),
        "ratio": ("ratio", float),
    }


@dataclass(kw_only=True)
class Field(Record):
    """largest error/bound of the elements that share an index along one axis"""

    axis: str
    max_ratio: list[float]

    _kinds = {
        "axis": ("axis", None),
        "max_ratio": ("max_ratio", ("list", float)),
    }


@dataclass(kw_only=True)
class OutputAxis(Record):
    """OutputAxi"""

    name: str
    size: int

    _kinds = {
        "name": ("name", None),
        "size": ("size", None),
    }


@dataclass(kw_only=True)
class Output(Record):
    """Output"""

    name: str
    axes: list[OutputAxis]
    dtype: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "i32", "i64", "u8"]
    elements: int
    ok: int
    violation: int
    nonfinite: int
    wrong_class: int
    undecided: int
    undecided_reason: str
    """why an enclosure stayed wide"""
    worst: Worst
    max_ratio: float
    max_tightness: float
    max_relative_bound: float
    max_enclosure: float
    histogram: list[int]
    """elements by floor(log2(error/bound)) + 60; exact ones in bin 0, infinite ratios in bin 63"""
    fields: list[Field]

    _kinds = {
        "name": ("name", None),
        "axes": ("axes", ("list", OutputAxis)),
        "dtype": ("dtype", None),
        "elements": ("elements", None),
        "ok": ("ok", None),
        "violation": ("violation", None),
        "nonfinite": ("nonfinite", None),
        "wrong_class": ("wrong_class", None),
        "undecided": ("undecided", None),
        "undecided_reason": ("undecided_reason", None),
        "worst": ("worst", Worst),
        "max_ratio": ("max_ratio", float),
        "max_tightness": ("max_tightness", float),
        "max_relative_bound": ("max_relative_bound", float),
        "max_enclosure": ("max_enclosure", float),
        "histogram": ("histogram", ("list", None)),
        "fields": ("fields", ("list", Field)),
    }


@dataclass(kw_only=True)
class FormulaElement(Record):
    """the element of the largest difference / allowed"""

    element: str
    flat: int
    exact: float
    """what the program's instructions give on real numbers"""
    expected: float
    """the reference"""
    difference: float
    allowed: float

    _kinds = {
        "element": ("element", None),
        "flat": ("flat", None),
        "exact": ("exact", float),
        "expected": ("expected", float),
        "difference": ("difference", float),
        "allowed": ("allowed", float),
    }


@dataclass(kw_only=True)
class FormulaOutput(Record):
    """FormulaOutput"""

    name: str
    elements: int
    judged: int
    """the others are not finite, or no shadow follows them"""
    violation: int
    worst: FormulaElement
    max_difference: float
    """relative to the root mean square of the output's reference"""
    max_allowed: float
    """likewise: what a fault of the formula must exceed to be seen"""

    _kinds = {
        "name": ("name", None),
        "elements": ("elements", None),
        "judged": ("judged", None),
        "violation": ("violation", None),
        "worst": ("worst", FormulaElement),
        "max_difference": ("max_difference", float),
        "max_allowed": ("max_allowed", float),
    }


@dataclass(kw_only=True)
class Formula(Record):
    """the program's outputs in exact arithmetic against the reference"""

    outputs: list[FormulaOutput]
    skipped: str
    """why nothing is judged"""
    turned: int
    """comparisons that exact operands would have decided the other way"""
    loss: str
    """the first instruction behind which nothing is judged"""
    seconds: float

    _kinds = {
        "outputs": ("outputs", ("list", FormulaOutput)),
        "skipped": ("skipped", None),
        "turned": ("turned", None),
        "loss": ("loss", None),
        "seconds": ("seconds", float),
    }


@dataclass(kw_only=True)
class RoundingPart(Record):
    """errors of one part of an output, relative to the root mean square of the exact values there"""

    where: str
    elements: int
    error: float
    """root mean square of the errors"""
    predicted: float
    """that of the declared roundings"""
    ratio: float
    """error / predicted"""
    allowed_ratio: float
    slope: float
    """of the values on the exact ones"""
    allowed_slope: float
    """how far from 1 it may be"""
    bias: float
    """mean error"""
    allowed_bias: float
    carried: float
    """errors alike from block to block, as a state carries them: standard deviations above what the declared roundings explain"""
    allowed_carried: float
    excess: float
    """the largest of all over what is allowed of it; above 1 it is unlikely"""

    _kinds = {
        "where": ("where", None),
        "elements": ("elements", None),
        "error": ("error", float),
        "predicted": ("predicted", float),
        "ratio": ("ratio", float),
        "allowed_ratio": ("allowed_ratio", float),
        "slope": ("slope", float),
        "allowed_slope": ("allowed_slope", float),
        "bias": ("bias", float),
        "allowed_bias": ("allowed_bias", float),
        "carried": ("carried", float),
        "allowed_carried": ("allowed_carried", float),
        "excess": ("excess", float),
    }


@dataclass(kw_only=True)
class RoundingOutput(Record):
    """RoundingOutput"""

    name: str
    parts: int
    """parts that were judged"""
    unlikely: int
    """of those, how many the declared roundings do not explain"""
    worst: RoundingPart
    """the part of the largest excess"""
    all: RoundingPart
    """the whole output"""
    skipped: str
    """why the model says nothing of this output; empty where it does"""

    _kinds = {
        "name": ("name", None),
        "parts": ("parts", None),
        "unlikely": ("unlikely", None),
        "worst": ("worst", RoundingPart),
        "all": ("all", RoundingPart),
        "skipped": ("skipped", None),
    }


@dataclass(kw_only=True)
class Rounding(Record):
    """whether the declared roundings explain the errors: a statistical verdict"""

    outputs: list[RoundingOutput]
    expected: list[RoundingOutput]
    """outputs that the inputs' file holds"""
    false_alarms: float
    """probability of one in the whole run, under the model"""
    seconds: float

    _kinds = {
        "outputs": ("outputs", ("list", RoundingOutput)),
        "expected": ("expected", ("list", RoundingOutput)),
        "false_alarms": ("false_alarms", float),
        "seconds": ("seconds", float),
    }


@dataclass(kw_only=True)
class PowerOutput(Record):
    """the smallest uniform relative error of an output that would have been seen"""

    name: str
    smallest: float
    by: str
    """the verdict that would have seen it: bound, statistic or formula"""
    smallest_late: float
    """of an error in the last quarter of the tokens only"""
    by_late: str
    error: float
    """root mean square of the errors over that of the exact values"""
    zeros: bool
    """zeros in place of the output would have passed"""
    flipped: bool
    """the output with the other sign would have passed"""
    inconclusive: bool
    """zeros would have passed, where the exact values are not zero"""

    _kinds = {
        "name": ("name", None),
        "smallest": ("smallest", float),
        "by": ("by", None),
        "smallest_late": ("smallest_late", float),
        "by_late": ("by_late", None),
        "error": ("error", float),
        "zeros": ("zeros", None),
        "flipped": ("flipped", None),
        "inconclusive": ("inconclusive", None),
    }


@dataclass(kw_only=True)
class Power(Record):
    """what the verdicts would have seen"""

    outputs: list[PowerOutput]
    expected: list[PowerOutput]
    """outputs that the inputs' file holds"""

    _kinds = {
        "outputs": ("outputs", ("list", PowerOutput)),
        "expected": ("expected", ("list", PowerOutput)),
    }


@dataclass(kw_only=True)
class Location(Record):
    """Location"""

    file: str
    line: int
    ptx_line: int
    function: str
    frames: list[str] | None = field(default_factory=list)

    _kinds = {
        "file": ("file", None),
        "line": ("line", None),
        "ptx_line": ("ptx_line", None),
        "function": ("function", None),
        "frames": ("frames", ("optional", ("list", None))),
    }


@dataclass(kw_only=True)
class Trap(Record):
    """Trap"""

    kind: Literal["out-of-bounds", "misaligned", "barrier", "hang", "launch", "unsupported", "unwritten-read", "warpgroup", "wgmma-race", "call", "branch", "assertion", "trap", "raised"]
    message: str
    where: Location
    block: list[int]
    thread: list[int]

    _kinds = {
        "kind": ("kind", None),
        "message": ("message", None),
        "where": ("where", Location),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
    }


@dataclass(kw_only=True)
class Operand(Record):
    """Operand"""

    name: str
    type: str
    value: float
    bits: str

    _kinds = {
        "name": ("name", None),
        "type": ("type", None),
        "value": ("value", float),
        "bits": ("bits", None),
    }


@dataclass(kw_only=True)
class ChainLink(Record):
    """ChainLink"""

    where: Location
    instruction: str
    text: str

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "text": ("text", None),
    }


@dataclass(kw_only=True)
class OriginInput(Record):
    """OriginInput"""

    element: str
    value: float
    nearest_finite: str

    _kinds = {
        "element": ("element", None),
        "value": ("value", float),
        "nearest_finite": ("nearest_finite", None),
    }


@dataclass(kw_only=True)
class Origin(Record):
    """Origin"""

    element: str
    kind: Literal["exp-overflow", "zero-times-infinity", "infinity-minus-infinity", "infinity-divided-by-infinity", "division-by-zero", "logarithm-of-zero", "negative-argument", "infinite-argument", "conversion-overflow", "accumulation-overflow", "literal", "input", "unwritten-memory", "beyond"]
    where: Location
    source_text: str
    instruction: str
    operands: list[Operand]
    result: float
    block: list[int]
    thread: list[int]
    inputs: list[OriginInput]
    inputs_truncated: bool
    chain: list[ChainLink]
    infinity_made_at: ChainLink | None
    sentence: str

    _kinds = {
        "element": ("element", None),
        "kind": ("kind", None),
        "where": ("where", Location),
        "source_text": ("source_text", None),
        "instruction": ("instruction", None),
        "operands": ("operands", ("list", Operand)),
        "result": ("result", float),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
        "inputs": ("inputs", ("list", OriginInput)),
        "inputs_truncated": ("inputs_truncated", None),
        "chain": ("chain", ("list", ChainLink)),
        "infinity_made_at": ("infinity_made_at", ("optional", ChainLink)),
        "sentence": ("sentence", None),
    }


@dataclass(kw_only=True)
class AccumulatedDecay(Record):
    """where the errors of log decays, summed from the start of a sequence, are largest; in nats"""

    element: str
    """the last element summed"""
    steps: int
    decay: float
    error: float
    """sum of kernel - exact"""
    bound: float

    _kinds = {
        "element": ("element", None),
        "steps": ("steps", None),
        "decay": ("decay", float),
        "error": ("error", float),
        "bound": ("bound", float),
    }


@dataclass(kw_only=True)
class OriginGroup(Record):
    """OriginGroup"""

    origin: Origin
    elements: int
    """non-finite output elements with an origin of this kind on this line"""
    outputs: list[str]

    _kinds = {
        "origin": ("origin", Origin),
        "elements": ("elements", None),
        "outputs": ("outputs", ("list", None)),
    }


@dataclass(kw_only=True)
class SliceChain(Record):
    """SliceChain"""

    at: ChainLink
    operands: list[Operand]
    result: float
    type: str
    block: list[int]
    thread: list[int]
    times: int
    """rounds of a loop over this step and its neighbours with this count"""

    _kinds = {
        "at": ("at", ChainLink),
        "operands": ("operands", ("list", Operand)),
        "result": ("result", float),
        "type": ("type", None),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
        "times": ("times", None),
    }


@dataclass(kw_only=True)
class SliceLine(Record):
    """SliceLine"""

    at: ChainLink
    instances: int
    smallest: float
    largest: float
    from_: list[int]

    _kinds = {
        "at": ("at", ChainLink),
        "instances": ("instances", None),
        "smallest": ("smallest", float),
        "largest": ("largest", float),
        "from_": ("from", ("list", None)),
    }


@dataclass(kw_only=True)
class SliceInput(Record):
    """SliceInput"""

    input: str
    elements: int
    first: str
    last: str
    largest: str
    value: float

    _kinds = {
        "input": ("input", None),
        "elements": ("elements", None),
        "first": ("first", None),
        "last": ("last", None),
        "largest": ("largest", None),
        "value": ("value", float),
    }


@dataclass(kw_only=True)
class SliceNodeOperand(Record):
    """SliceNodeOperand"""

    name: str
    type: str
    bits: str
    made_by: int
    """index into nodes; -1: from outside, or not listed"""
    source: Literal["", "input", "literal", "unwritten-memory", "beyond"]
    input: str
    """the input's element"""

    _kinds = {
        "name": ("name", None),
        "type": ("type", None),
        "bits": ("bits", None),
        "made_by": ("made_by", None),
        "source": ("source", None),
        "input": ("input", None),
    }


@dataclass(kw_only=True)
class SliceNode(Record):
    """SliceNode"""

    line: int
    """index into lines"""
    instruction: str
    type: str
    bits: str
    value: float
    block: list[int]
    thread: list[int]
    operands: list[SliceNodeOperand]

    _kinds = {
        "line": ("line", None),
        "instruction": ("instruction", None),
        "type": ("type", None),
        "bits": ("bits", None),
        "value": ("value", float),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
        "operands": ("operands", ("list", SliceNodeOperand)),
    }


@dataclass(kw_only=True)
class Slice(Record):
    """the instruction instances behind one output element"""

    element: str
    value: float
    instances: int
    truncated: bool
    blocks: int
    """run again, of blocks_of"""
    blocks_of: int
    unwritten: bool
    chain: list[SliceChain]
    """input first, output last: at each instance the operand that decides its size"""
    lines: list[SliceLine]
    inputs: list[SliceInput]
    nodes: list[SliceNode]
    """instances, consumers before producers; of more than 16384 the nearest to the output"""
    nodes_left_out: int | None = None
    """instances that are counted and are not among the nodes"""

    _kinds = {
        "element": ("element", None),
        "value": ("value", float),
        "instances": ("instances", None),
        "truncated": ("truncated", None),
        "blocks": ("blocks", None),
        "blocks_of": ("blocks_of", None),
        "unwritten": ("unwritten", None),
        "chain": ("chain", ("list", SliceChain)),
        "lines": ("lines", ("list", SliceLine)),
        "inputs": ("inputs", ("list", SliceInput)),
        "nodes": ("nodes", ("list", SliceNode)),
        "nodes_left_out": ("nodes_left_out", ("optional", None)),
    }


@dataclass(kw_only=True)
class Diagnosis(Record):
    """Diagnosi"""

    cause: str
    explanation: str
    score: float
    evidence: list[str]
    against: list[str] = field(default_factory=list)

    _kinds = {
        "cause": ("cause", None),
        "explanation": ("explanation", None),
        "score": ("score", float),
        "evidence": ("evidence", ("list", None)),
        "against": ("against", ("list", None)),
    }


@dataclass(kw_only=True)
class SuspectLine(Record):
    """a source line that may be what is wrong"""

    at: ChainLink
    reason: str
    """what convinced"""

    _kinds = {
        "at": ("at", ChainLink),
        "reason": ("reason", None),
    }


@dataclass(kw_only=True)
class ExponentRange(Record):
    """ExponentRange"""

    where: Location
    instruction: str
    min: float
    max: float
    count: int
    nans: int

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "min": ("min", float),
        "max": ("max", float),
        "count": ("count", None),
        "nans": ("nans", None),
    }


@dataclass(kw_only=True)
class CheckedPlace(Record):
    """one thread at one instruction"""

    where: Location
    block: list[int]
    thread: list[int]
    access: str

    _kinds = {
        "where": ("where", Location),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
        "access": ("access", None),
    }


@dataclass(kw_only=True)
class ChecksFinding(Record):
    """ChecksFinding"""

    check: Literal["races", "unwritten", "bounds", "wrap", "async"]
    kind: Literal["race", "warp-race", "unwritten-branch", "unwritten-address", "unwritten-output", "unwritten-tensor-core", "never-written", "out-of-bounds", "index-wrap", "async-copy-race", "wgmma-race", "bulk-copy-race", "proxy-fence", "mbarrier-phase"]
    message: str
    at: CheckedPlace
    other: CheckedPlace | None
    element: str
    count: int

    _kinds = {
        "check": ("check", None),
        "kind": ("kind", None),
        "message": ("message", None),
        "at": ("at", CheckedPlace),
        "other": ("other", ("optional", CheckedPlace)),
        "element": ("element", None),
        "count": ("count", None),
    }


@dataclass(kw_only=True)
class Checks(Record):
    """what the checking machine found"""

    ran: list[Literal["races", "unwritten", "bounds", "wrap", "async"]]
    skipped: str
    """why some checks did not run; else empty"""
    findings: list[ChecksFinding]
    lane_instructions: int
    seconds: float

    _kinds = {
        "ran": ("ran", ("list", None)),
        "skipped": ("skipped", None),
        "findings": ("findings", ("list", ChecksFinding)),
        "lane_instructions": ("lane_instructions", None),
        "seconds": ("seconds", float),
    }


@dataclass(kw_only=True)
class Amplifier(Record):
    """a source line that makes large relative errors out of small ones"""

    where: Location
    instruction: str
    error: float
    """relative, of its results: where the median's binade begins"""
    growth: float
    """times the largest relative error of their operands: likewise"""
    value: float
    exact: float
    block: list[int]
    thread: list[int]

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "error": ("error", float),
        "growth": ("growth", float),
        "value": ("value", float),
        "exact": ("exact", float),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
    }


@dataclass(kw_only=True)
class ShadowOutput(Record):
    """ShadowOutput"""

    name: str
    elements: int
    followed: int
    nonfinite: int
    max_error: float
    rms_error: float
    rms_exact: float
    worst: str
    value: float
    exact: float
    bound: float

    _kinds = {
        "name": ("name", None),
        "elements": ("elements", None),
        "followed": ("followed", None),
        "nonfinite": ("nonfinite", None),
        "max_error": ("max_error", float),
        "rms_error": ("rms_error", float),
        "rms_exact": ("rms_exact", float),
        "worst": ("worst", None),
        "value": ("value", float),
        "exact": ("exact", float),
        "bound": ("bound", float),
    }


@dataclass(kw_only=True)
class ShadowElement(Record):
    """ShadowElement"""

    element: str
    value: float
    exact: float
    bound: float

    _kinds = {
        "element": ("element", None),
        "value": ("value", float),
        "exact": ("exact", float),
        "bound": ("bound", float),
    }


@dataclass(kw_only=True)
class ShadowEdge(Record):
    """ShadowEdge"""

    where: Location
    instruction: str
    quantity: Literal["argument", "result"]
    format: str
    extreme: float
    limit: float
    distance: float
    """binades left; 0 or less: reached"""
    text: str

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "quantity": ("quantity", None),
        "format": ("format", None),
        "extreme": ("extreme", float),
        "limit": ("limit", float),
        "distance": ("distance", float),
        "text": ("text", None),
    }


@dataclass(kw_only=True)
class ShadowLine(Record):
    """ShadowLine"""

    where: Location
    instruction: str
    share: float
    roundings: int
    largest: float

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "share": ("share", float),
        "roundings": ("roundings", None),
        "largest": ("largest", float),
    }


@dataclass(kw_only=True)
class ShadowParting(Record):
    """ShadowParting"""

    where: Location
    instruction: str
    block: list[int]
    thread: list[int]
    value: float
    exact: float
    threshold: float

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
        "value": ("value", float),
        "exact": ("exact", float),
        "threshold": ("threshold", float),
    }


@dataclass(kw_only=True)
class Shadow(Record):
    """the run beside exact arithmetic: the same instructions on real numbers"""

    outputs: list[ShadowOutput]
    element: ShadowElement | None = None
    edges: list[ShadowEdge] = field(default_factory=list)
    """how near each instruction came to where its format ends, nearest first"""
    lines: list[ShadowLine]
    amplifiers: list[Amplifier] = field(default_factory=list)
    """lines that make large relative errors out of small ones, the strongest first"""
    parting: ShadowParting | None
    ended: int
    lane_instructions: int
    seconds: float
    seconds_by_line: float

    _kinds = {
        "outputs": ("outputs", ("list", ShadowOutput)),
        "element": ("element", ("optional", ShadowElement)),
        "edges": ("edges", ("list", ShadowEdge)),
        "lines": ("lines", ("list", ShadowLine)),
        "amplifiers": ("amplifiers", ("list", Amplifier)),
        "parting": ("parting", ("optional", ShadowParting)),
        "ended": ("ended", None),
        "lane_instructions": ("lane_instructions", None),
        "seconds": ("seconds", float),
        "seconds_by_line": ("seconds_by_line", float),
    }


@dataclass(kw_only=True)
class Triage(Record):
    """whose fault it is, where a GPU ran beside the machine"""

    fault: Literal["none", "kernel", "compiler-or-hardware", "kernel and compiler-or-hardware", "race"]
    explanation: str
    evidence: list[str]

    _kinds = {
        "fault": ("fault", None),
        "explanation": ("explanation", None),
        "evidence": ("evidence", ("list", None)),
    }


@dataclass(kw_only=True)
class WrittenTensor(Record):
    """a tensor that the run wrote"""

    name: str
    shape: str
    elements: int
    smallest: float
    largest: float
    nans: int
    infinities: int
    born: int
    """of those, elements whose value an instruction of the program made"""

    _kinds = {
        "name": ("name", None),
        "shape": ("shape", None),
        "elements": ("elements", None),
        "smallest": ("smallest", float),
        "largest": ("largest", float),
        "nans": ("nans", None),
        "infinities": ("infinities", None),
        "born": ("born", None),
    }


@dataclass(kw_only=True)
class ProgramSize(Record):
    """ProgramSize"""

    name: str
    value: int

    _kinds = {
        "name": ("name", None),
        "value": ("value", None),
    }


@dataclass(kw_only=True)
class Program(Record):
    """what ran, where no operator is claimed"""

    file: str
    launches: list[str]
    sizes: list[ProgramSize]
    seed: int
    written: list[WrittenTensor]

    _kinds = {
        "file": ("file", None),
        "launches": ("launches", ("list", None)),
        "sizes": ("sizes", ("list", ProgramSize)),
        "seed": ("seed", None),
        "written": ("written", ("list", WrittenTensor)),
    }


@dataclass(kw_only=True)
class Births(Record):
    """special values that a source line made out of others"""

    where: Location
    instruction: str
    nans: int
    infinities: int
    subnormals: int
    divisions_by_zero: int
    block: list[int]
    thread: list[int]
    example: str

    _kinds = {
        "where": ("where", Location),
        "instruction": ("instruction", None),
        "nans": ("nans", None),
        "infinities": ("infinities", None),
        "subnormals": ("subnormals", None),
        "divisions_by_zero": ("divisions_by_zero", None),
        "block": ("block", ("list", None)),
        "thread": ("thread", ("list", None)),
        "example": ("example", None),
    }


@dataclass(kw_only=True)
class Repeat(Record):
    """the run once more, and what came out otherwise"""

    kind: Literal["order", "poison", "architecture", "recorded"]
    how: str
    differing: int
    element: str
    largest: float
    """largest difference over the tensor's root mean square"""
    by_order_of_sums: bool
    """it comes of the order in which atomics added floats, and of nothing else"""
    expected: bool
    """no finding: the architectures' own roundings explain it"""
    departure: str
    """where the runs part first"""
    where: Location | None
    note: str

    _kinds = {
        "kind": ("kind", None),
        "how": ("how", None),
        "differing": ("differing", None),
        "element": ("element", None),
        "largest": ("largest", float),
        "by_order_of_sums": ("by_order_of_sums", None),
        "expected": ("expected", None),
        "departure": ("departure", None),
        "where": ("where", ("optional", Location)),
        "note": ("note", None),
    }


@dataclass(kw_only=True)
class Checkout(Record):
    """the sources that were tested"""

    commit: str
    branch: str
    """empty: none is checked out"""
    dirty: bool
    """tracked files differ from the commit"""

    _kinds = {
        "commit": ("commit", None),
        "branch": ("branch", None),
        "dirty": ("dirty", None),
    }


@dataclass(kw_only=True)
class SameDefect(Record):
    """a further finding of the run that shows the same defect"""

    cause: str
    sentence: str
    replay: str
    identity: str

    _kinds = {
        "cause": ("cause", None),
        "sentence": ("sentence", None),
        "replay": ("replay", None),
        "identity": ("identity", None),
    }


@dataclass(kw_only=True)
class VerificationTool(Record):
    """VerificationTool"""

    name: str
    version: str
    commit: str

    _kinds = {
        "name": ("name", None),
        "version": ("version", None),
        "commit": ("commit", None),
    }


@dataclass(kw_only=True)
class Verification(Document):
    """Verification"""

    schema: int = 1
    kind: str = 'verification'
    tool: VerificationTool
    kernel: str
    case: Case
    token: str
    """the case in one line; replays it"""
    replay: str
    """the command that repeats the run"""
    backend: str
    arithmetic: str
    verdict: Literal["pass", "finding", "undecided", "domain"]
    cause: str
    """verdict kind / output / origin; empty for a pass"""
    source_shape: str | None = None
    """of the line that the cause ends with: its text without what is changed for looks"""
    outputs: list[Output]
    formula: Formula | None = None
    rounding: Rounding | None = None
    power: Power | None = None
    expected_outputs: list[Output] = field(default_factory=list)
    """outputs that the inputs' file holds, in place of the kernel's"""
    properties_failed: list[str]
    domain: list[str]
    """inputs outside the operator's domain"""
    trap: Trap | None
    origin: Origin | None
    accumulated_decay: list[AccumulatedDecay] = field(default_factory=list)
    origins: list[OriginGroup] = field(default_factory=list)
    slice: Slice | None = None
    diagnosis: list[Diagnosis]
    lines: list[SuspectLine] = field(default_factory=list)
    """source lines that may have made finite values wrong, the likeliest first"""
    exponents: list[ExponentRange]
    partial: str | None = None
    """where only some blocks ran: which, and what is judged"""
    checks: Checks | None = None
    shadow: Shadow | None = None
    lane_instructions: int
    seconds_reference: float
    seconds_kernel: float
    triage: Triage | None = None
    bits_differ: int
    """elements that differ between GPU and machine; -1: not compared"""
    entry: Location | None = None
    """where the kernel's first entry begins, of a finding whose place is not known better"""
    program: Program | None = None
    births: list[Births] = field(default_factory=list)
    """special values by the source line that made them"""
    repeats: list[Repeat] = field(default_factory=list)
    """the run in other orders, with other poison, on other architectures"""
    checkout: Checkout | None = None
    also: list[SameDefect] = field(default_factory=list)
    known: bool | None = None
    """the baseline has it too; null: no baseline was given"""
    identity: str | None = None
    """what is the same for one finding in several runs: kernel, cause, diagnosis"""

    _kinds = {
        "schema": ("schema", None),
        "kind": ("kind", None),
        "tool": ("tool", VerificationTool),
        "kernel": ("kernel", None),
        "case": ("case", Case),
        "token": ("token", None),
        "replay": ("replay", None),
        "backend": ("backend", None),
        "arithmetic": ("arithmetic", None),
        "verdict": ("verdict", None),
        "cause": ("cause", None),
        "source_shape": ("source_shape", None),
        "outputs": ("outputs", ("list", Output)),
        "formula": ("formula", ("optional", Formula)),
        "rounding": ("rounding", ("optional", Rounding)),
        "power": ("power", ("optional", Power)),
        "expected_outputs": ("expected_outputs", ("list", Output)),
        "properties_failed": ("properties_failed", ("list", None)),
        "domain": ("domain", ("list", None)),
        "trap": ("trap", ("optional", Trap)),
        "origin": ("origin", ("optional", Origin)),
        "accumulated_decay": ("accumulated_decay", ("list", AccumulatedDecay)),
        "origins": ("origins", ("list", OriginGroup)),
        "slice": ("slice", ("optional", Slice)),
        "diagnosis": ("diagnosis", ("list", Diagnosis)),
        "lines": ("lines", ("list", SuspectLine)),
        "exponents": ("exponents", ("list", ExponentRange)),
        "partial": ("partial", ("optional", None)),
        "checks": ("checks", ("optional", Checks)),
        "shadow": ("shadow", ("optional", Shadow)),
        "lane_instructions": ("lane_instructions", None),
        "seconds_reference": ("seconds_reference", float),
        "seconds_kernel": ("seconds_kernel", float),
        "triage": ("triage", ("optional", Triage)),
        "bits_differ": ("bits_differ", None),
        "entry": ("entry", ("optional", Location)),
        "program": ("program", ("optional", Program)),
        "births": ("births", ("list", Births)),
        "repeats": ("repeats", ("list", Repeat)),
        "checkout": ("checkout", ("optional", Checkout)),
        "also": ("also", ("list", SameDefect)),
        "known": ("known", ("optional", None)),
        "identity": ("identity", ("optional", None)),
    }


@dataclass(kw_only=True)
class Finding(Record):
    """Finding"""

    kernel: str
    case: Case
    token: str
    """the case in one line; replays it"""
    replay: str
    """the command that repeats the run"""
    backend: str
    arithmetic: str
    verdict: Literal["pass", "finding", "undecided", "domain"]
    cause: str
    """verdict kind / output / origin; empty for a pass"""
    source_shape: str | None = None
    """of the line that the cause ends with: its text without what is changed for looks"""
    outputs: list[Output]
    formula: Formula | None = None
    rounding: Rounding | None = None
    power: Power | None = None
    expected_outputs: list[Output] = field(default_factory=list)
    """outputs that the inputs' file holds, in place of the kernel's"""
    properties_failed: list[str]
    domain: list[str]
    """inputs outside the operator's domain"""
    trap: Trap | None
    origin: Origin | None
    accumulated_decay: list[AccumulatedDecay] = field(default_factory=list)
    origins: list[OriginGroup] = field(default_factory=list)
    slice: Slice | None = None
    diagnosis: list[Diagnosis]
    lines: list[SuspectLine] = field(default_factory=list)
    """source lines that may have made finite values wrong, the likeliest first"""
    exponents: list[ExponentRange]
    partial: str | None = None
    """where only some blocks ran: which, and what is judged"""
    checks: Checks | None = None
    shadow: Shadow | None = None
    lane_instructions: int
    seconds_reference: float
    seconds_kernel: float
    triage: Triage | None = None
    bits_differ: int
    """elements that differ between GPU and machine; -1: not compared"""
    entry: Location | None = None
    """where the kernel's first entry begins, of a finding whose place is not known better"""
    program: Program | None = None
    births: list[Births] = field(default_factory=list)
    """special values by the source line that made them"""
    repeats: list[Repeat] = field(default_factory=list)
    """the run in other orders, with other poison, on other architectures"""
    checkout: Checkout | None = None
    also: list[SameDefect] = field(default_factory=list)
    known: bool | None = None
    """the baseline has it too; null: no baseline was given"""
    identity: str | None = None
    """what is the same for one finding in several runs: kernel, cause, diagnosis"""

    _kinds = {
        "kernel": ("kernel", None),
        "case": ("case", Case),
        "token": ("token", None),
        "replay": ("replay", None),
        "backend": ("backend", None),
        "arithmetic": ("arithmetic", None),
        "verdict": ("verdict", None),
        "cause": ("cause", None),
        "source_shape": ("source_shape", None),
        "outputs": ("outputs", ("list", Output)),
        "formula": ("formula", ("optional", Formula)),
        "rounding": ("rounding", ("optional", Rounding)),
        "power": ("power", ("optional", Power)),
        "expected_outputs": ("expected_outputs", ("list", Output)),
        "properties_failed": ("properties_failed", ("list", None)),
        "domain": ("domain", ("list", None)),
        "trap": ("trap", ("optional", Trap)),
        "origin": ("origin", ("optional", Origin)),
        "accumulated_decay": ("accumulated_decay", ("list", AccumulatedDecay)),
        "origins": ("origins", ("list", OriginGroup)),
        "slice": ("slice", ("optional", Slice)),
        "diagnosis": ("diagnosis", ("list", Diagnosis)),
        "lines": ("lines", ("list", SuspectLine)),
        "exponents": ("exponents", ("list", ExponentRange)),
        "partial": ("partial", ("optional", None)),
        "checks": ("checks", ("optional", Checks)),
        "shadow": ("shadow", ("optional", Shadow)),
        "lane_instructions": ("lane_instructions", None),
        "seconds_reference": ("seconds_reference", float),
        "seconds_kernel": ("seconds_kernel", float),
        "triage": ("triage", ("optional", Triage)),
        "bits_differ": ("bits_differ", None),
        "entry": ("entry", ("optional", Location)),
        "program": ("program", ("optional", Program)),
        "births": ("births", ("list", Births)),
        "repeats": ("repeats", ("list", Repeat)),
        "checkout": ("checkout", ("optional", Checkout)),
        "also": ("also", ("list", SameDefect)),
        "known": ("known", ("optional", None)),
        "identity": ("identity", ("optional", None)),
    }


@dataclass(kw_only=True)
class FuzzTool(Record):
    """FuzzTool"""

    name: str
    version: str
    commit: str

    _kinds = {
        "name": ("name", None),
        "version": ("version", None),
        "commit": ("commit", None),
    }


@dataclass(kw_only=True)
class FuzzProperty(Record):
    """FuzzProperty"""

    name: str
    checked: int
    failed: int

    _kinds = {
        "name": ("name", None),
        "checked": ("checked", None),
        "failed": ("failed", None),
    }


@dataclass(kw_only=True)
class FuzzCoverage(Record):
    """FuzzCoverage"""

    feature: str
    value: str
    cases: int

    _kinds = {
        "feature": ("feature", None),
        "value": ("value", None),
        "cases": ("cases", None),
    }


@dataclass(kw_only=True)
class FuzzTightness(Record):
    """FuzzTightness"""

    kernel: str
    output: str
    dtype: str
    decay: str
    length_class: str
    cases: int
    max_ratio: float
    max_tightness: float
    max_relative_bound: float

    _kinds = {
        "kernel": ("kernel", None),
        "output": ("output", None),
        "dtype": ("dtype", None),
        "decay": ("decay", None),
        "length_class": ("length_class", None),
        "cases": ("cases", None),
        "max_ratio": ("max_ratio", float),
        "max_tightness": ("max_tightness", float),
        "max_relative_bound": ("max_relative_bound", float),
    }


@dataclass(kw_only=True)
class FuzzReached(Record):
    """FuzzReached"""

    kernel: str
    what: str
    reached: int
    of: int

    _kinds = {
        "kernel": ("kernel", None),
        "what": ("what", None),
        "reached": ("reached", None),
        "of": ("of", None),
    }


@dataclass(kw_only=True)
class FuzzRerun(Record):
    """FuzzRerun"""

    kernel: str
    token: str
    outcome: str

    _kinds = {
        "kernel": ("kernel", None),
        "token": ("token", None),
        "outcome": ("outcome", None),
    }


@dataclass(kw_only=True)
class FuzzBaselineGone(Record):
    """FuzzBaselineGone"""

    kernel: str
    cause: str
    token: str
    outcome: str

    _kinds = {
        "kernel": ("kernel", None),
        "cause": ("cause", None),
        "token": ("token", None),
        "outcome": ("outcome", None),
    }


@dataclass(kw_only=True)
class FuzzBaseline(Record):
    """FuzzBaseline"""

    source: str
    gone: list[FuzzBaselineGone]

    _kinds = {
        "source": ("source", None),
        "gone": ("gone", ("list", FuzzBaselineGone)),
    }


@dataclass(kw_only=True)
class FuzzTooFew(Record):
    """FuzzTooFew"""

    kernel: str
    cases: int

    _kinds = {
        "kernel": ("kernel", None),
        "cases": ("cases", None),
    }


@dataclass(kw_only=True)
class FuzzKernelProperty(Record):
    """FuzzKernelProperty"""

    kernel: str
    name: str
    checked: int
    failed: int

    _kinds = {
        "kernel": ("kernel", None),
        "name": ("name", None),
        "checked": ("checked", None),
        "failed": ("failed", None),
    }


@dataclass(kw_only=True)
class Fuzz(Document):
    """Fuzz"""

    schema: int = 1
    kind: str = 'fuzz'
    tool: FuzzTool
    kernels: list[str]
    backend: str
    seed: int
    cases: int
    passed: int
    undecided: int
    domain: int
    seconds: float
    findings: list[Finding]
    properties: list[FuzzProperty]
    coverage: list[FuzzCoverage]
    tightness: list[FuzzTightness]
    reached: list[FuzzReached]
    reruns: list[FuzzRerun] = field(default_factory=list)
    """findings of earlier runs whose cases were run again"""
    baseline: FuzzBaseline | None = None
    ended_early: str | None = None
    """why the run ended before its budget was spent; empty: it did not"""
    min_cases: int | None = None
    """that should have been judged of each kernel"""
    too_few: list[FuzzTooFew] = field(default_factory=list)
    """kernels of which fewer were judged: the run is inconclusive"""
    kernel_properties: list[FuzzKernelProperty] = field(default_factory=list)
    """properties by kernel"""
    checkout: Checkout | None = None
    """the sources that were tested"""
    not_shrunk: int | None = None
    """findings kept as they were found, as the time was over"""
    database_lost: str | None = None
    """why nothing more could be stored while the run went on; else empty"""

    _kinds = {
        "schema": ("schema", None),
        "kind": ("kind", None),
        "tool": ("tool", FuzzTool),
        "kernels": ("kernels", ("list", None)),
        "backend": ("backend", None),
        "seed": ("seed", None),
        "cases": ("cases", None),
        "passed": ("passed", None),
        "undecided": ("undecided", None),
        "domain": ("domain", None),
        "seconds": ("seconds", float),
        "findings": ("findings", ("list", Finding)),
        "properties": ("properties", ("list", FuzzProperty)),
        "coverage": ("coverage", ("list", FuzzCoverage)),
        "tightness": ("tightness", ("list", FuzzTightness)),
        "reached": ("reached", ("list", FuzzReached)),
        "reruns": ("reruns", ("list", FuzzRerun)),
        "baseline": ("baseline", ("optional", FuzzBaseline)),
        "ended_early": ("ended_early", None),
        "min_cases": ("min_cases", None),
        "too_few": ("too_few", ("list", FuzzTooFew)),
        "kernel_properties": ("kernel_properties", ("list", FuzzKernelProperty)),
        "checkout": ("checkout", ("optional", Checkout)),
        "not_shrunk": ("not_shrunk", None),
        "database_lost": ("database_lost", None),
    }


@dataclass(kw_only=True)
class SweepSample(Record):
    """one seed of a cell; errors are |got - exact| in the unit of the output, over its finite elements"""

    seed: int
    max_error: float
    p99_error: float
    max_bound: float
    p99_bound: float
    max_ratio: float
    p99_ratio: float
    max_ulp: float
    p99_ulp: float
    rms_error: float
    rms_exact: float
    bias: float
    shrinkage: float

    _kinds = {
        "seed": ("seed", None),
        "max_error": ("max_error", float),
        "p99_error": ("p99_error", float),
        "max_bound": ("max_bound", float),
        "p99_bound": ("p99_bound", float),
        "max_ratio": ("max_ratio", float),
        "p99_ratio": ("p99_ratio", float),
        "max_ulp": ("max_ulp", float),
        "p99_ulp": ("p99_ulp", float),
        "rms_error": ("rms_error", float),
        "rms_exact": ("rms_exact", float),
        "bias": ("bias", float),
        "shrinkage": ("shrinkage", float),
    }


@dataclass(kw_only=True)
class SweepCellSetting(Record):
    """SweepCellSetting"""

    option: str
    value: str

    _kinds = {
        "option": ("option", None),
        "value": ("value", None),
    }


@dataclass(kw_only=True)
class SweepCell(Record):
    """one output of one kernel at one setting of everything swept, over all seeds"""

    kernel: str
    settings: list[SweepCellSetting]
    output: str
    """empty where the point was refused"""
    verdict: Literal["pass", "domain", "refused", "undecided", "finding"]
    """the worst of the seeds"""
    note: str
    """the cause of a finding; why a cell did not pass"""
    elements: int
    violation: int
    nonfinite: int
    wrong_class: int
    undecided: int
    over_seeds: SweepSample
    """the largest; of bias and shrinkage the mean"""
    samples: list[SweepSample]
    gated: bool
    gate_min: float
    """of the log decays drawn; 0 where there are none"""
    gate_max: float
    seconds_kernel: float
    seconds_reference: float
    token: str
    """of the seed with the worst verdict, of several the one with the largest ratio"""

    _kinds = {
        "kernel": ("kernel", None),
        "settings": ("settings", ("list", SweepCellSetting)),
        "output": ("output", None),
        "verdict": ("verdict", None),
        "note": ("note", None),
        "elements": ("elements", None),
        "violation": ("violation", None),
        "nonfinite": ("nonfinite", None),
        "wrong_class": ("wrong_class", None),
        "undecided": ("undecided", None),
        "over_seeds": ("over_seeds", SweepSample),
        "samples": ("samples", ("list", SweepSample)),
        "gated": ("gated", None),
        "gate_min": ("gate_min", float),
        "gate_max": ("gate_max", float),
        "seconds_kernel": ("seconds_kernel", float),
        "seconds_reference": ("seconds_reference", float),
        "token": ("token", None),
    }


@dataclass(kw_only=True)
class SweepTool(Record):
    """SweepTool"""

    name: str
    version: str
    commit: str

    _kinds = {
        "name": ("name", None),
        "version": ("version", None),
        "commit": ("commit", None),
    }


@dataclass(kw_only=True)
class SweepDimension(Record):
    """SweepDimension"""

    option: str
    values: list[str]

    _kinds = {
        "option": ("option", None),
        "values": ("values", ("list", None)),
    }


@dataclass(kw_only=True)
class Sweep(Document):
    """assay sweep: errors and bounds over options of a case"""

    schema: int = 1
    kind: str = 'sweep'
    tool: SweepTool
    kernels: list[str]
    dimensions: list[SweepDimension]
    seeds: list[int]
    base: str
    """token of the case that everything not swept is taken from"""
    backend: str
    tolerance: float
    """of the largest error / root mean square of the output; 0: by format"""
    complete: bool
    seconds: float
    cells: list[SweepCell]
    worst: list[Verification]
    """of each kernel and format the cell of the largest ratio, in full"""

    _kinds = {
        "schema": ("schema", None),
        "kind": ("kind", None),
        "tool": ("tool", SweepTool),
        "kernels": ("kernels", ("list", None)),
        "dimensions": ("dimensions", ("list", SweepDimension)),
        "seeds": ("seeds", ("list", None)),
        "base": ("base", None),
        "backend": ("backend", None),
        "tolerance": ("tolerance", float),
        "complete": ("complete", None),
        "seconds": ("seconds", float),
        "cells": ("cells", ("list", SweepCell)),
        "worst": ("worst", ("list", Verification)),
    }


@dataclass(kw_only=True)
class MutationTool(Record):
    """MutationTool"""

    name: str
    version: str
    commit: str

    _kinds = {
        "name": ("name", None),
        "version": ("version", None),
        "commit": ("commit", None),
    }


@dataclass(kw_only=True)
class MutationChange(Record):
    """MutationChange"""

    change: str
    killed: int
    within_bound: int
    equivalent: int
    survived: int

    _kinds = {
        "change": ("change", None),
        "killed": ("killed", None),
        "within_bound": ("within_bound", None),
        "equivalent": ("equivalent", None),
        "survived": ("survived", None),
    }


@dataclass(kw_only=True)
class MutationMutant(Record):
    """MutationMutant"""

    id: str
    """KERNEL%id is a kernel"""
    change: str
    where: Location
    source_text: str
    original: str
    replacement: str
    """empty: nothing"""
    outcome: Literal["killed", "within-bound", "equivalent", "survived", "untried"]
    reason: str
    token: str
    """of the kernel's case that shows it; empty: none does"""
    cases: int
    reached_by: int

    _kinds = {
        "id": ("id", None),
        "change": ("change", None),
        "where": ("where", Location),
        "source_text": ("source_text", None),
        "original": ("original", None),
        "replacement": ("replacement", None),
        "outcome": ("outcome", None),
        "reason": ("reason", None),
        "token": ("token", None),
        "cases": ("cases", None),
        "reached_by": ("reached_by", None),
    }


@dataclass(kw_only=True)
class Mutation(Document):
    """assay mutate: what became of single changed instructions"""

    schema: int = 1
    kind: str = 'mutation'
    tool: MutationTool
    kernel: str
    backend: str
    seed: int
    asked: int
    possible: int
    places: int
    """pairs of source line and change"""
    cases: int
    instructions: int
    instructions_reached: int
    seconds: float
    set_aside: list[str]
    killed: int
    within_bound: int
    equivalent: int
    survived: int
    score: float
    """killed of killed and survived, in percent"""
    changes: list[MutationChange]
    mutants: list[MutationMutant]

    _kinds = {
        "schema": ("schema", None),
        "kind": ("kind", None),
        "tool": ("tool", MutationTool),
        "kernel": ("kernel", None),
        "backend": ("backend", None),
        "seed": ("seed", None),
        "asked": ("asked", None),
        "possible": ("possible", None),
        "places": ("places", None),
        "cases": ("cases", None),
        "instructions": ("instructions", None),
        "instructions_reached": ("instructions_reached", None),
        "seconds": ("seconds", float),
        "set_aside": ("set_aside", ("list", None)),
        "killed": ("killed", None),
        "within_bound": ("within_bound", None),
        "equivalent": ("equivalent", None),
        "survived": ("survived", None),
        "score": ("score", float),
        "changes": ("changes", ("list", MutationChange)),
        "mutants": ("mutants", ("list", MutationMutant)),
    }


@dataclass(kw_only=True)
class TrendTool(Record):
    """TrendTool"""

    name: str
    version: str
    commit: str

    _kinds = {
        "name": ("name", None),
        "version": ("version", None),
        "commit": ("commit", None),
    }


@dataclass(kw_only=True)
class TrendRunRatio(Record):
    """TrendRunRatio"""

    kernel: str
    dtype: str
    max_ratio: float

    _kinds = {
        "kernel": ("kernel", None),
        "dtype": ("dtype", None),
        "max_ratio": ("max_ratio", float),
    }


@dataclass(kw_only=True)
class TrendRun(Record):
    """TrendRun"""

    commit: str
    """of the sources that were tested; where they lie in no checkout, of the program that ran"""
    started: str
    """UTC"""
    kernels: list[str]
    backend: str
    cases: int
    passed: int
    undecided: int
    findings: int
    ratios: list[TrendRunRatio]
    """largest error/bound of each kernel and format, before the output itself is rounded"""

    _kinds = {
        "commit": ("commit", None),
        "started": ("started", None),
        "kernels": ("kernels", ("list", None)),
        "backend": ("backend", None),
        "cases": ("cases", None),
        "passed": ("passed", None),
        "undecided": ("undecided", None),
        "findings": ("findings", None),
        "ratios": ("ratios", ("list", TrendRunRatio)),
    }


@dataclass(kw_only=True)
class TrendFinding(Record):
    """TrendFinding"""

    identity: str
    kernel: str
    replay: str
    """of the latest run that had it"""
    runs: list[int]
    """places in the list of runs"""

    _kinds = {
        "identity": ("identity", None),
        "kernel": ("kernel", None),
        "replay": ("replay", None),
        "runs": ("runs", ("list", None)),
    }


@dataclass(kw_only=True)
class Trend(Document):
    """assay report --trend: the fuzz runs of a database, the oldest first"""

    schema: int = 1
    kind: str = 'trend'
    tool: TrendTool
    runs: list[TrendRun]
    findings: list[TrendFinding]

    _kinds = {
        "schema": ("schema", None),
        "kind": ("kind", None),
        "tool": ("tool", TrendTool),
        "runs": ("runs", ("list", TrendRun)),
        "findings": ("findings", ("list", TrendFinding)),
    }


@dataclass(kw_only=True)
class ValueClass(Record):
    """ValueClass"""

    count: int
    first: list[int] | None
    """index of the first such element"""

    _kinds = {
        "count": ("count", None),
        "first": ("first", ("optional", ("list", None))),
    }


@dataclass(kw_only=True)
class InspectedTensor(Record):
    """InspectedTensor"""

    dtype: Literal["fp64", "fp32", "tf32", "fp16", "bf16", "i32", "i64", "u8"]
    shape: list[int]
    elements: int
    min: float | None
    """of the finite values; null where there is none"""
    max: float | None
    zeros: int
    subnormals: int
    exponents: dict[str, int]
    """finite values other than zero by their binary exponent e, 2^e <= |x| < 2^(e+1); empty for integers"""
    nan: ValueClass
    inf: ValueClass
    minus_inf: ValueClass

    _kinds = {
        "dtype": ("dtype", None),
        "shape": ("shape", ("list", None)),
        "elements": ("elements", None),
        "min": ("min", ("optional", float)),
        "max": ("max", ("optional", float)),
        "zeros": ("zeros", None),
        "subnormals": ("subnormals", None),
        "exponents": ("exponents", ("map", None)),
        "nan": ("nan", ValueClass),
        "inf": ("inf", ValueClass),
        "minus_inf": ("-inf", ValueClass),
    }


@dataclass(kw_only=True)
class OperatorFitSizes(Record):
    """where it fits"""

    B: int
    T: int
    H: int
    HV: int
    K: int
    V: int
    M: int
    N: int

    _kinds = {
        "B": ("B", None),
        "T": ("T", None),
        "H": ("H", None),
        "HV": ("HV", None),
        "K": ("K", None),
        "V": ("V", None),
        "M": ("M", None),
        "N": ("N", None),
    }


@dataclass(kw_only=True)
class OperatorFit(Record):
    """OperatorFit"""

    operator: str
    fits: bool
    matched: list[str]
    """inputs that a tensor is named after"""
    expected: list[str]
    """outputs that a tensor is named after"""
    missing: list[str]
    """inputs that are needed and not there"""
    unused: list[str]
    """tensors that are neither"""
    complaint: str
    """why the tensors do not go together; empty where they do"""
    notes: list[str]
    """in which order tensors are held"""
    sizes: OperatorFitSizes | None = None
    """where it fits"""
    layout: str | None = None
    """where it fits: as --layout takes it"""
    direction: Literal["forward", "backward", "both"] | None = None
    """where it fits"""

    _kinds = {
        "operator": ("operator", None),
        "fits": ("fits", None),
        "matched": ("matched", ("list", None)),
        "expected": ("expected", ("list", None)),
        "missing": ("missing", ("list", None)),
        "unused": ("unused", ("list", None)),
        "complaint": ("complaint", None),
        "notes": ("notes", ("list", None)),
        "sizes": ("sizes", OperatorFitSizes),
        "layout": ("layout", None),
        "direction": ("direction", None),
    }


@dataclass(kw_only=True)
class InspectionTool(Record):
    """InspectionTool"""

    name: str
    version: str
    commit: str

    _kinds = {
        "name": ("name", None),
        "version": ("version", None),
        "commit": ("commit", None),
    }


@dataclass(kw_only=True)
class Inspection(Document):
    """assay inspect: what the tensors of a file are, and the operators, the nearest first"""

    schema: int = 1
    kind: str = 'inspection'
    tool: InspectionTool
    file: str
    tensors: dict[str, InspectedTensor]
    operators: list[OperatorFit]

    _kinds = {
        "schema": ("schema", None),
        "kind": ("kind", None),
        "tool": ("tool", InspectionTool),
        "file": ("file", None),
        "tensors": ("tensors", ("map", InspectedTensor)),
        "operators": ("operators", ("list", OperatorFit)),
    }
