#include "src/result/verification.h"

#include "src/result/document.h"
#include "src/result/fuzz_run.h"
#include "src/result/identity.h"
#include "src/case/parameters.h"

namespace assay {

template <typename Io>
void fields(Io& io, Axis& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(size);
}

template <typename Io>
void fields(Io& io, Case& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(B);
  ASSAY_FIELD(T);
  ASSAY_FIELD(H);
  ASSAY_FIELD(HV);
  ASSAY_FIELD(K);
  ASSAY_FIELD(V);
  ASSAY_FIELD(M);
  ASSAY_FIELD(cu_seqlens);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(gate_dtype);
  ASSAY_FIELD(decay);
  ASSAY_FIELD(values);
  ASSAY_FIELD(seed);
  ASSAY_FIELD(scale);
  ASSAY_FIELD(direction);
  ASSAY_FIELD(without);
  ASSAY_FIELD(initial_state);
  ASSAY_FIELD(final_state_gradient);
  ASSAY_FIELD(overrides);
  std::optional<std::string> blocks;  // null where all run; older documents lack it
  if (!x.blocks.empty()) blocks = x.blocks;
  io("blocks", blocks);
  x.blocks = blocks.value_or("");
  std::optional<std::string> layout;  // null where all inputs lie row by row; older documents lack it
  if (!x.layout.empty()) layout = x.layout;
  io("layout", layout);
  x.layout = layout.value_or("");
  std::optional<std::string> parameters;  // "name=value,..", null where none is given; older documents lack it
  if (!x.parameters.empty()) parameters = parameters_text(x.parameters);
  io("parameters", parameters);
  x.parameters = parse_parameters(parameters.value_or(""));
}

template <typename Io>
void fields(Io& io, WorstElement& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(flat);
  ASSAY_FIELD(got);
  ASSAY_FIELD(expected);
  ASSAY_FIELD(expected_rounded);
  io("got_bits", Bits{x.got_bits});
  io("expected_bits", Bits{x.expected_bits});
  ASSAY_FIELD(absolute);
  ASSAY_FIELD(relative);
  ASSAY_FIELD(ulp);
  ASSAY_FIELD(bound);
  ASSAY_FIELD(ratio);
}

template <typename Io>
void fields(Io& io, FoldedField& x) {
  ASSAY_FIELD(axis);
  ASSAY_FIELD(max_ratio);
}

template <typename Io>
void fields(Io& io, OutputComparison& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(axes);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(ok);
  ASSAY_FIELD(violation);
  ASSAY_FIELD(nonfinite);
  ASSAY_FIELD(wrong_class);
  ASSAY_FIELD(undecided);
  ASSAY_FIELD(undecided_reason);
  ASSAY_FIELD(worst);
  ASSAY_FIELD(max_ratio);
  ASSAY_FIELD(max_tightness);
  ASSAY_FIELD(max_relative_bound);
  ASSAY_FIELD(max_enclosure);
  ASSAY_FIELD(histogram);
  io("fields", x.fields);
}

template <typename Io>
void fields(Io& io, SourceLocation& x) {
  ASSAY_FIELD(file);
  ASSAY_FIELD(line);
  ASSAY_FIELD(ptx_line);
  ASSAY_FIELD(function);
  std::optional<std::vector<std::string>> frames;  // null where nothing was inlined; older documents lack it
  if (!x.frames.empty()) frames = x.frames;
  io("frames", frames);
  x.frames = frames.value_or(std::vector<std::string>{});
}

template <typename Io>
void fields(Io& io, Trap& x) {
  ASSAY_FIELD(kind);
  ASSAY_FIELD(message);
  ASSAY_FIELD(where);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
}

template <typename Io>
void fields(Io& io, ExponentRange& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(min);
  ASSAY_FIELD(max);
  ASSAY_FIELD(count);
  ASSAY_FIELD(nans);
}

template <typename Io>
void fields(Io& io, AccumulatedDecay& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(steps);
  ASSAY_FIELD(decay);
  ASSAY_FIELD(error);
  ASSAY_FIELD(bound);
}

template <typename Io>
void fields(Io& io, OriginOperand& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(type);
  ASSAY_FIELD(value);
  io("bits", Bits{x.bits});
}

template <typename Io>
void fields(Io& io, InputElement& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(value);
  ASSAY_FIELD(nearest_finite);
}

template <typename Io>
void fields(Io& io, ChainLink& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(text);
}

template <typename Io>
void fields(Io& io, Origin& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(kind);
  ASSAY_FIELD(where);
  ASSAY_FIELD(source_text);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(operands);
  ASSAY_FIELD(result);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(inputs);
  ASSAY_FIELD(inputs_truncated);
  ASSAY_FIELD(chain);
  ASSAY_FIELD(infinity_made_at);
  ASSAY_FIELD(sentence);
}

template <typename Io>
void fields(Io& io, OriginGroup& x) {
  ASSAY_FIELD(origin);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(outputs);
}

template <typename Io>
void fields(Io& io, SliceStep& x) {
  ASSAY_FIELD(at);
  ASSAY_FIELD(operands);
  ASSAY_FIELD(result);
  ASSAY_FIELD(type);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(times);
}

template <typename Io>
void fields(Io& io, SliceLine& x) {
  ASSAY_FIELD(at);
  ASSAY_FIELD(instances);
  ASSAY_FIELD(smallest);
  ASSAY_FIELD(largest);
  ASSAY_FIELD(from);
}

template <typename Io>
void fields(Io& io, SliceInput& x) {
  ASSAY_FIELD(input);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(first);
  ASSAY_FIELD(last);
  ASSAY_FIELD(largest);
  ASSAY_FIELD(value);
}

template <typename Io>
void fields(Io& io, SliceNodeOperand& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(type);
  io("bits", Bits{x.bits});
  ASSAY_FIELD(made_by);
  ASSAY_FIELD(source);
  ASSAY_FIELD(input);
}

template <typename Io>
void fields(Io& io, SliceNode& x) {
  ASSAY_FIELD(line);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(type);
  io("bits", Bits{x.bits});
  ASSAY_FIELD(value);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(operands);
}

template <typename Io>
void fields(Io& io, ElementSlice& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(value);
  ASSAY_FIELD(instances);
  ASSAY_FIELD(truncated);
  ASSAY_FIELD(blocks);
  ASSAY_FIELD(blocks_of);
  ASSAY_FIELD(unwritten);
  ASSAY_FIELD(chain);
  ASSAY_FIELD(lines);
  ASSAY_FIELD(inputs);
  ASSAY_FIELD(nodes);
  std::optional<int64_t> left_out = x.instances - static_cast<int64_t>(x.nodes.size());  // written only
  io("nodes_left_out", left_out);
}

template <typename Io>
void fields(Io& io, Diagnosis& x) {
  ASSAY_FIELD(cause);
  ASSAY_FIELD(explanation);
  ASSAY_FIELD(score);
  ASSAY_FIELD(evidence);
  io.or_empty("against", x.against);
}

template <typename Io>
void fields(Io& io, ShadowOutput& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(elements);
  ASSAY_FIELD(followed);
  ASSAY_FIELD(nonfinite);
  ASSAY_FIELD(max_error);
  ASSAY_FIELD(rms_error);
  ASSAY_FIELD(rms_exact);
  ASSAY_FIELD(worst);
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(bound);
}

template <typename Io>
void fields(Io& io, ShadowLine& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(share);
  ASSAY_FIELD(roundings);
  ASSAY_FIELD(largest);
}

template <typename Io>
void fields(Io& io, ShadowParting& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(threshold);
}

template <typename Io>
void fields(Io& io, ShadowEdge& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(instruction);
  ASSAY_FIELD(quantity);
  ASSAY_FIELD(format);
  ASSAY_FIELD(extreme);
  ASSAY_FIELD(limit);
  ASSAY_FIELD(distance);
  ASSAY_FIELD(text);
}

template <typename Io>
void fields(Io& io, ShadowElement& x) {
  ASSAY_FIELD(element);
  ASSAY_FIELD(value);
  ASSAY_FIELD(exact);
  ASSAY_FIELD(bound);
}

template <typename Io>
void fields(Io& io, ShadowReport& x) {
  ASSAY_FIELD(outputs);
  ASSAY_FIELD(element);
  io.or_empty("edges", x.edges);
  ASSAY_FIELD(lines);
  ASSAY_FIELD(parting);
  ASSAY_FIELD(ended);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(seconds_by_line);
}

template <typename Io>
void fields(Io& io, CheckedPlace& x) {
  ASSAY_FIELD(where);
  ASSAY_FIELD(block);
  ASSAY_FIELD(thread);
  ASSAY_FIELD(access);
}

template <typename Io>
void fields(Io& io, CheckFinding& x) {
  ASSAY_FIELD(check);
  ASSAY_FIELD(kind);
  ASSAY_FIELD(message);
  ASSAY_FIELD(at);
  ASSAY_FIELD(other);
  ASSAY_FIELD(element);
  ASSAY_FIELD(count);
}

template <typename Io>
void fields(Io& io, CheckReport& x) {
  ASSAY_FIELD(ran);
  ASSAY_FIELD(skipped);
  ASSAY_FIELD(findings);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds);
}

template <typename Io>
void fields(Io& io, Triage& x) {
  ASSAY_FIELD(fault);
  ASSAY_FIELD(explanation);
  ASSAY_FIELD(evidence);
}

template <typename Io>
void fields(Io& io, Verification& x) {
  ASSAY_FIELD(kernel);
  io("case", x.case_);
  ASSAY_FIELD(token);
  ASSAY_FIELD(replay);
  ASSAY_FIELD(backend);
  ASSAY_FIELD(arithmetic);
  ASSAY_FIELD(verdict);
  ASSAY_FIELD(cause);
  ASSAY_FIELD(outputs);
  io.or_empty("expected_outputs", x.expected_outputs);
  ASSAY_FIELD(properties_failed);
  ASSAY_FIELD(domain);
  ASSAY_FIELD(trap);
  ASSAY_FIELD(origin);
  io.or_empty("accumulated_decay", x.accumulated_decay);
  io.or_empty("origins", x.origins);
  ASSAY_FIELD(slice);
  ASSAY_FIELD(diagnosis);
  ASSAY_FIELD(exponents);
  ASSAY_FIELD(partial);
  ASSAY_FIELD(checks);
  ASSAY_FIELD(shadow);
  ASSAY_FIELD(lane_instructions);
  ASSAY_FIELD(seconds_reference);
  ASSAY_FIELD(seconds_kernel);
  ASSAY_FIELD(triage);
  ASSAY_FIELD(bits_differ);
  ASSAY_FIELD(entry);
  ASSAY_FIELD(known);
  std::optional<std::string> identity = identity_of(x);  // made from the other fields; written only
  io("identity", identity);
}

template <typename Io>
void fields(Io& io, CoverageRow& x) {
  ASSAY_FIELD(feature);
  ASSAY_FIELD(value);
  ASSAY_FIELD(cases);
}

template <typename Io>
void fields(Io& io, TightnessRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(output);
  ASSAY_FIELD(dtype);
  ASSAY_FIELD(decay);
  ASSAY_FIELD(length_class);
  ASSAY_FIELD(cases);
  ASSAY_FIELD(max_ratio);
  ASSAY_FIELD(max_tightness);
  ASSAY_FIELD(max_relative_bound);
}

template <typename Io>
void fields(Io& io, PropertyRow& x) {
  ASSAY_FIELD(name);
  ASSAY_FIELD(checked);
  ASSAY_FIELD(failed);
}

template <typename Io>
void fields(Io& io, RerunRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(token);
  ASSAY_FIELD(outcome);
}

template <typename Io>
void fields(Io& io, GoneFinding& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(cause);
  ASSAY_FIELD(token);
  ASSAY_FIELD(outcome);
}

template <typename Io>
void fields(Io& io, BaselineReport& x) {
  ASSAY_FIELD(source);
  ASSAY_FIELD(gone);
}

template <typename Io>
void fields(Io& io, ReachedRow& x) {
  ASSAY_FIELD(kernel);
  ASSAY_FIELD(what);
  ASSAY_FIELD(reached);
  ASSAY_FIELD(of);
}

template <typename Io>
void fields(Io& io, FuzzRun& x) {
  ASSAY_FIELD(kernels);
  ASSAY_FIELD(backend);
  ASSAY_FIELD(seed);
  ASSAY_FIELD(cases);
  ASSAY_FIELD(passed);
  ASSAY_FIELD(undecided);
  ASSAY_FIELD(domain);
  ASSAY_FIELD(seconds);
  ASSAY_FIELD(findings);
  ASSAY_FIELD(properties);
  ASSAY_FIELD(coverage);
  ASSAY_FIELD(tightness);
  ASSAY_FIELD(reached);
  io.or_empty("reruns", x.reruns);
  ASSAY_FIELD(baseline);
  io.or_empty("ended_early", x.ended_early);
  io.or_empty("database_lost", x.database_lost);
}

nlohmann::json to_json(const Verification& result) {
  return document("verification", result);
}

Verification verification_from_json(const nlohmann::json& json) {
  return read_document<Verification>("verification", json);
}

nlohmann::json to_json(const FuzzRun& run) {
  return document("fuzz", run);
}

FuzzRun fuzz_run_from_json(const nlohmann::json& json) {
  return read_document<FuzzRun>("fuzz", json);
}

}  // namespace assay
