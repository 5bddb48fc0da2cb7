#include "src/base/vm/recorder.h"

#include <algorithm>

#include "src/base/vm/each_lane.h"

namespace assay::vm {

void Recorder::begin_block(Block& block) {
  block_ = &block;
  const LaunchContext& context = *block.context;
  if (code_ != context.code) {
    code_ = context.code;
    current_ = &facts_[code_];
    auto& modules = run_->modules;
    const auto known = std::find(modules.begin(), modules.end(), code_->module);
    module_ = static_cast<int32_t>(known - modules.begin());
    if (known == modules.end()) modules.push_back(code_->module);
  }
  launch_ = context.launch_index;
  if (current_->ops.empty()) {
    for (const Op& op : code_->ops) current_->ops.push_back(facts_of(*code_, op));
  }
  if (current_->launch != launch_) {
    current_->sites.assign(code_->ops.size(), -1);
    current_->launch = launch_;
  }
  cells_.begin(block, {0, kUnwritten});
}

Recorder::OpFacts Recorder::facts_of(const Code& code, const Op& op) {
  const Signature& signature = code.signature(op);
  const Flow flow = signature.flow();
  OpFacts facts;
  const bool to_register = op.d != no_slot && op.d_cell != Cell::mask;
  const Meaning& meaning = *signature.meaning;
  const bool computes =
      flow == Flow::arithmetic ||
      (flow == Flow::conversion && ptx::is_float(meaning.result) && ptx::is_float(meaning.sources[0]));
  if (carries(signature))
    facts.pass = &Recorder::carry;
  else if (flow == Flow::atomic)
    facts.keep = &Recorder::keep_memory, facts.pass = &Recorder::atomic;
  else if (flow == Flow::matrix)
    facts.keep = &Recorder::keep_slots, facts.pass = &Recorder::matrix;
  else if (to_register && flow == Flow::none)
    facts.pass = &Recorder::clear;
  else if (to_register && computes)
    facts = {
        .keep = &Recorder::keep_sources, .pass = &Recorder::arithmetic, .reach = half_influence(code, op)};
  else if (to_register)
    facts.keep = &Recorder::bits;
  facts.multiplies =
      computes && meaning.result == ptx::Type::f32 &&
      (signature.form.operation == ptx::Operation::mul || signature.form.operation == ptx::Operation::fma);
  if (op.d_cell == Cell::wide) facts.result_halves = 4;
  for (size_t i = 0; i < op.source_count; i++) {
    if (op.s[i] != no_slot) facts.halves[i] = static_cast<int>(bytes_of(cell_of(meaning.sources[i]))) / 2;
    if (facts.halves[i] > 0) facts.sources |= 1 << i;
  }
  return facts;
}

int32_t Recorder::site(const Op& op) {
  int32_t& site = current_->sites[op_index(op)];
  if (site < 0) {
    site = static_cast<int32_t>(run_->sites.size());
    run_->sites.push_back({launch_, module_, op.function, op.instruction});
  }
  return site;
}

/// A tag left on a finite operand says nothing. A NaN is born of operands none of which is one, an infinity
/// of finite ones.
Tag Recorder::log(LoggedEvent event, LoggedOperand* operands, int count) {
  bool nan = false, infinite = false;
  for (LoggedOperand* o = operands; o != operands + count; ++o)
    if (!is_nonfinite(o->type, o->bits))
      o->tag = 0;
    else
      (is_nan(o->type, o->bits) ? nan : infinite) = true;
  event.born = is_nan(event.result_type, event.result_bits) ? !nan : !nan && !infinite;
  const Tag tag = run_->log.add(event, operands, count);
  if (tag && !finished() && static_cast<int32_t>(tag) - 1 == run_->watched)
    run_->watched_elements = run_->provenance.collect(event.dependence, kListedElements);
  return tag;
}

LoggedEvent Recorder::event_at(const Warp& warp, const Op& op, int lane, ptx::Type type, uint64_t result,
                               Dependence dependence) {
  LoggedEvent e;
  e.site = site(op);
  e.block = static_cast<uint32_t>(linear_of_block(warp));
  e.thread = static_cast<uint16_t>(warp.number * 32 + static_cast<uint32_t>(lane));
  e.result_bits = result, e.result_type = type, e.dependence = dependence;
  return e;
}

void Recorder::clear(const Warp& warp, const Op& op, uint32_t mask) {
  for (const Use& written : signature(op).writes)
    for (int half = 0; half < static_cast<int>(bytes_of(written.cell)) / 2; half++)
      each_lane(mask, [&](int lane) { cell(warp, written.slot, half, lane) = {}; });
}

void Recorder::before(Warp& warp, const Op& op, uint32_t mask) {
  if (const auto keep = facts(op).keep) (this->*keep)(warp, op, mask);
}

void Recorder::after(Warp& warp, const Op& op, uint32_t mask) {
  if (const auto pass = facts(op).pass) (this->*pass)(warp, op, mask);
}

}  // namespace assay::vm
