#include "src/verification/diagnosis/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "src/base/numerics/counted_work.h"
#include "src/base/numerics/format.h"
#include "src/base/vm/matrix_form.h"
#include "src/base/vm/unwritten_reads.h"
#include "src/verification/diagnosis/nearest_finite.h"
#include "src/verification/diagnosis/origin_kind.h"
#include "src/verification/diagnosis/origin_sentence.h"
#include "src/verification/diagnosis/slice.h"
#include "src/verification/diagnosis/source_line.h"

namespace assay {
namespace {

constexpr size_t kInputsListed = 64;

struct Element {
  std::string input;
  int64_t flat;
};

std::vector<Element> elements_of(const vm::Recording& recording, const std::vector<int64_t>& packed) {
  std::vector<Element> elements;
  for (int64_t p : packed) elements.push_back({recording.input_names[p >> 40], p & ((int64_t{1} << 40) - 1)});
  return elements;
}

/// Largest magnitude first; NaN before everything. Elements that are zero cannot have driven an overflow and
/// come last.
void sort_by_magnitude(std::vector<Element>& elements, const TensorMap& inputs) {
  auto weight = [&](const Element& e) {
    const double x = std::fabs(inputs.at(e.input).value(e.flat));
    return std::isnan(x) ? INFINITY : x;
  };
  std::stable_sort(elements.begin(), elements.end(),
                   [&](const Element& a, const Element& b) { return weight(a) > weight(b); });
}

/// The argument of an exponential in base 2: the operand of ex2, or of an expanded one what its factors say.
double exponent_of(const Origin& origin) {
  if (origin.operands.size() == 1) return origin.operands[0].value;
  double exponent = 0;
  for (const OriginOperand& o : origin.operands) exponent += std::log2(std::fabs(o.value));
  return exponent;
}

void describe_event(const vm::Recording& recording, const vm::Event& event, const SourceText& source,
                    Origin& origin) {
  const ptx::Module& module = *recording.modules[event.module];
  const ptx::Function& function = module.functions[event.function];
  const ptx::Instruction& instruction = function.body[event.instruction];
  const ChainLink link = link_of(module, event.function, event.instruction, source);
  origin.kind = origin_kind(instruction.form, event);
  if (origin.kind == OriginKind::accumulation_overflow &&
      is_expanded_exponential(function, event.instruction))
    origin.kind = OriginKind::exp_overflow;
  origin.where = link.where;
  origin.source_text = link.text;
  origin.instruction = link.instruction;
  for (const vm::EventOperand& o : event.operands)
    origin.operands.push_back({o.name, o.type, o.value, o.bits});
  origin.result = event.result;
  origin.block = event.block;
  origin.thread = event.thread;
  origin.inputs_truncated = event.inputs_truncated;
}

bool same_line(const ChainLink& a, const ChainLink& b) {
  if (a.where.line == 0) return a.where.ptx_line == b.where.ptx_line;
  return a.where.line == b.where.line && a.where.file == b.where.file;
}

/// Links of the path, one per run of instructions on the same source line, and the store that wrote the
/// element.
std::vector<ChainLink> chain_of(const vm::Recording& recording, const std::vector<int32_t>& path,
                                const vm::Carrier& carrier, const SourceText& source) {
  std::vector<ChainLink> chain;
  auto add = [&](ChainLink link) {
    if (chain.empty() || !same_line(chain.back(), link)) chain.push_back(std::move(link));
  };
  for (int32_t index : path) {
    const vm::Event event = recording.event(index);
    add(link_of(*recording.modules[event.module], event.function, event.instruction, source));
  }
  if (carrier.instruction >= 0)
    add(link_of(*recording.modules[carrier.module], carrier.function, carrier.instruction, source));
  return chain;
}

/// True where a factor is the zero of a mask: chosen by a predicate or converted from an integer.
bool is_masking(const ptx::Function& function, const vm::Event& event) {
  const ptx::Operation operation = function.body[event.instruction].form.operation;
  if (operation != ptx::Operation::mul && operation != ptx::Operation::fma) return false;
  for (size_t i = 0; i < std::min<size_t>(2, event.operands.size()); i++)
    if (event.operands[i].value == 0 && made_by_selection(function, event.instruction, i + 1)) return true;
  return false;
}

/// Whether what was born is multiplied by the zero of a mask on its way, NaN already or not.
void describe_mask(const vm::Recording& recording, const std::vector<int32_t>& path, const SourceText& source,
                   OriginTrace& trace) {
  for (int32_t index : path) {
    const vm::Event event = recording.event(index);
    if (!is_masking(recording.modules[event.module]->functions[event.function], event)) continue;
    trace.masked_by_product = true;
    trace.masked_at = link_of(*recording.modules[event.module], event.function, event.instruction, source);
    return;
  }
}

/// The product in which what is not finite first meets a factor: the event itself where it made NaN of 0 and
/// Inf; where an Inf was taken apart into a high and a low part, whose difference is NaN, the tensor-core sum
/// after it. None of another kind.
std::optional<vm::Event> product_after(const vm::Recording& recording, const std::vector<int32_t>& path,
                                       int32_t nan, OriginKind kind) {
  if (kind == OriginKind::zero_times_infinity) return recording.event(nan);
  if (kind != OriginKind::infinity_minus_infinity) return std::nullopt;
  for (auto at = std::find(path.begin(), path.end(), nan); at != path.end(); ++at) {
    const vm::Event event = recording.event(*at);
    const ptx::Function& function = recording.modules[event.module]->functions[event.function];
    if (vm::is_matrix_product(function.body[event.instruction].form.operation)) return event;
  }
  return std::nullopt;
}

/// The first NaN on the path: its kind and place and, where another instruction than the origin made its Inf,
/// that place.
void describe_first_nan(const vm::Recording& recording, const std::vector<int32_t>& path,
                        const SourceText& source, const std::function<bool(const vm::Event&)>& is_selected,
                        OriginTrace& trace) {
  for (int32_t index : path) {
    const vm::Event event = recording.event(index);
    if (!std::isnan(event.result) || !event.born) continue;
    const ptx::Function& function = recording.modules[event.module]->functions[event.function];
    const ptx::Instruction& instruction = function.body[event.instruction];
    trace.nan_kind = origin_kind(instruction.form, event);
    trace.nan_at = link_of(*recording.modules[event.module], event.function, event.instruction, source);
    trace.nan_in_matrix = vm::is_matrix_product(instruction.form.operation);
    const std::optional<vm::Event> product = product_after(recording, path, index, *trace.nan_kind);
    trace.zero_selected = product && !trace.masked_by_product && is_selected(*product);
    if (trace.zero_selected)
      trace.masked_at =
          link_of(*recording.modules[product->module], product->function, product->instruction, source);
    for (const vm::EventOperand& o : event.operands) {
      const int32_t made = std::isinf(o.value) && o.parent >= 0 ? walk_back(recording, o.parent).origin : -1;
      if (made < 0) continue;
      const vm::Event birth = recording.event(made);
      const ChainLink link =
          link_of(*recording.modules[birth.module], birth.function, birth.instruction, source);
      if (birth.born && !same_line(link, {trace.origin.where, "", ""})) trace.origin.infinity_made_at = link;
      return;
    }
    return;
  }
}

/// Of memory that nothing wrote the origin is the instruction that read it, not the first that computed with
/// it.
void move_to_read(const OperandHistory& history, const SourceText& source, OriginTrace& trace) {
  Origin& origin = trace.origin;
  trace.unwritten_read = {origin.where, origin.source_text, origin.instruction};
  const vm::SliceInstance* read = history.unwritten_read();
  if (!read || read->instruction < 0) return;
  const ptx::Module& module = *history.slice().modules[static_cast<size_t>(read->module)];
  const ChainLink link = link_of(module, read->function, read->instruction, source);
  if (link.where.ptx_line == origin.where.ptx_line) return;
  trace.unwritten_read = link;
  origin.where = link.where;
  origin.source_text = link.text;
  origin.instruction = link.instruction;
  origin.operands.clear();
  origin.block = read->block, origin.thread = read->thread;
  if (origin.chain.empty() || !same_line(origin.chain.front(), link))
    origin.chain.insert(origin.chain.begin(), link);
}

/// Points at what should have written the memory; the store that it concerns comes into the chain.
void move_to_missing_store(std::optional<MissingStore> missing, OriginTrace& trace) {
  if (!missing || missing->at.where.line == 0) return;
  Origin& origin = trace.origin;
  const auto put_before = [&](const ChainLink& link) {
    if (origin.chain.empty() || !same_line(origin.chain.front(), link))
      origin.chain.insert(origin.chain.begin(), link);
  };
  if (missing->store) put_before(*missing->store);
  put_before(missing->at);
  origin.where = missing->at.where;
  origin.source_text = missing->at.text;
  origin.instruction = missing->at.instruction;
  if (missing->why == MissingStore::Why::guarded || missing->why == MissingStore::Why::misread ||
      missing->why == MissingStore::Why::early)
    origin.block = missing->block, origin.thread = missing->thread;
  trace.missing = std::move(missing);
}

/// Why nothing had written what was read.
std::optional<MissingStore> missing_behind(const Program& plan, const TensorMap& inputs,
                                           const OriginOptions& options, const vm::UnwrittenPlace& place,
                                           const vm::SliceInstance& read, const SourceText& source) {
  if (!place.buffer.empty())
    return find_missing_scratch(plan, inputs, options.machine, place.buffer, place.offset, 4, source);
  const vm::SharedBytes bytes{read.launch, read.block, place.offset, 2};
  return find_missing_shared(plan, inputs, options.machine, bytes, source, options.replay_seconds / 4);
}

/// An element without an event behind it: copied from an input or a literal, or never written.
void describe_carrier(const vm::Recording& recording, const vm::Carrier& carrier, double value,
                      const SourceText& source, Origin& origin) {
  origin.kind = kind_of(carrier.source);
  origin.result = value;
  origin.inputs_truncated = carrier.inputs_truncated;
  if (carrier.instruction < 0) return;
  const ChainLink link =
      link_of(*recording.modules[carrier.module], carrier.function, carrier.instruction, source);
  origin.where = link.where;
  origin.source_text = link.text;
  origin.instruction = link.instruction;
  origin.chain.push_back(link);
}

/// Replays the plan until the budget of runs or seconds is spent.
Replay limited_replay(const Program& plan, const std::string& output, int64_t flat,
                      const OriginOptions& options) {
  const double start = counted_seconds();
  auto left = std::make_shared<int>(options.replays);
  return [=, &plan](const TensorMap& inputs) -> std::optional<bool> {
    if ((*left)-- <= 0 || counted_seconds() - start > options.replay_seconds) return std::nullopt;
    const Outcome outcome = vm::run(plan, inputs, options.machine);
    const auto found = outcome.outputs.find(output);
    return !outcome.trap && found != outcome.outputs.end() && std::isfinite(found->second.value(flat));
  };
}

}  // namespace

std::optional<OriginTrace> find_origin(const Program& plan, const TensorMap& inputs,
                                       const std::string& output, int64_t flat,
                                       const OriginOptions& options) {
  vm::Recording recording;
  const Outcome outcome = vm::run_recorded(plan, inputs, options.machine, &recording);
  return describe_origin(plan, inputs, recording, outcome.outputs, output, flat, options);
}

std::optional<OriginTrace> describe_origin(const Program& plan, const TensorMap& inputs,
                                           const vm::Recording& recording, const TensorMap& outputs,
                                           const std::string& output, int64_t flat,
                                           const OriginOptions& options) {
  const auto found = outputs.find(output);
  if (found == outputs.end() || flat >= found->second.size()) return std::nullopt;
  const double value = found->second.value(flat);
  if (std::isfinite(value)) return std::nullopt;

  OriginTrace trace;
  trace.output = output;
  trace.flat = flat;
  Origin& origin = trace.origin;
  origin.element = found->second.element_name(flat);
  const vm::Carrier carrier = recording.carrier(output, flat);
  const SourceText source(plan.name);
  std::vector<Element> elements;
  if (carrier.event < 0) {
    describe_carrier(recording, carrier, value, source, origin);
    if (carrier.source == vm::Source::unwritten && carrier.instruction < 0) {
      const auto width = static_cast<uint32_t>(format(found->second.dtype).bytes);
      trace.unwritten = {output, static_cast<uint64_t>(flat) * width, width};
      move_to_missing_store(find_missing_store(plan, inputs, options.machine, output, flat, source), trace);
    }
    elements = elements_of(recording, carrier.inputs);
  } else {
    const WalkBack slice = walk_back(recording, carrier.event);
    const int32_t index = slice.origin >= 0 ? slice.origin : carrier.event;
    vm::Event event = recording.event(index);
    if (event.inputs_truncated) {  // perhaps only forgotten since: the run is repeated up to this event
      vm::Recording again;
      vm::run_recorded(plan, inputs, options.machine, &again, index);
      event = again.event(index);
    }
    describe_event(recording, event, source, origin);
    if (origin.kind == OriginKind::exp_overflow) trace.exponent = exponent_of(origin);
    origin.chain = chain_of(recording, slice.path, carrier, source);
    if (origin.kind == kind_of(vm::Source::unwritten)) {
      const OperandHistory history(plan, inputs, options.machine, output, flat, event);
      move_to_read(history, source, trace);
      const vm::UnwrittenPlace* const place = history.unwritten_place();
      if (place && !place->buffer.empty()) trace.unwritten = {place->buffer, place->offset, 1};
      if (!place)  // the slice may have been too long to come to it
        if (const auto read = vm::find_unwritten_read(plan, inputs, options.machine, event.launch,
                                                      event.block, event.thread))
          trace.unwritten = {read->buffer, read->offset, 1};
      if (place)
        move_to_missing_store(
            missing_behind(plan, inputs, options, *place, *history.unwritten_read(), source), trace);
    }
    if (origin.kind == OriginKind::division_by_zero)
      trace.divisor = OperandHistory(plan, inputs, options.machine, output, flat, event).zero_divisor();
    const auto is_selected = [&](const vm::Event& nan) {
      return OperandHistory(plan, inputs, options.machine, output, flat, nan).has_selected_zero();
    };
    describe_mask(recording, slice.path, source, trace);
    describe_first_nan(recording, slice.path, source, is_selected, trace);
    elements = elements_of(recording, event.inputs);
    trace.computed_from =
        definitions_before(*recording.modules[event.module], event.function, event.instruction, 6, source);
  }
  sort_by_magnitude(elements, inputs);
  for (const Element& e : elements) trace.input_elements.emplace_back(e.input, e.flat);
  const Replay replay = limited_replay(plan, output, flat, options);
  for (size_t i = 0; i < elements.size() && i < kInputsListed; i++) {
    const Tensor& tensor = inputs.at(elements[i].input);
    InputElement listed{tensor.element_name(elements[i].flat), tensor.value(elements[i].flat), ""};
    if (static_cast<int>(i) < options.nearest_inputs)
      listed.nearest_finite = nearest_finite(inputs, elements[i].input, elements[i].flat, replay);
    origin.inputs.push_back(listed);
  }
  origin.inputs_truncated |= elements.size() > kInputsListed;
  origin.sentence = origin_sentence(trace);
  return trace;
}

}  // namespace assay
