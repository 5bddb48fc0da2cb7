#include "src/base/vm/recorder.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace assay::vm {
namespace {

/// How the cells of one op travel, by the row's effect and, for bit operations, by the opcode.
Passage choose(const Op& op, std::string_view opcode) {
  const Row& row = *op.row;
  switch (row.effect) {
    case Effect::arithmetic:
      if (op.d == no_slot || op.d_cell == Cell::mask) return Passage::none;
      return ptx::is_packed(row.result) && row.sources[0] == ptx::Type::f32 ? Passage::packed_convert
                                                                       : Passage::arithmetic;
    case Effect::bits:
      if (op.d == no_slot || op.d_cell == Cell::mask) return Passage::none;
      return opcode.starts_with("shl.") || opcode.starts_with("shr.") ? Passage::shift_halves : Passage::bits;
    case Effect::move:
      if (copies_results(op)) return Passage::results;
      if (op.slots) return op.immediate == 1 ? Passage::unpack : Passage::pack;
      return op.d == no_slot || op.d_cell == Cell::mask ? Passage::none : Passage::move;
    case Effect::select:
      return Passage::select;
    case Effect::load:
      return Passage::load;
    case Effect::store:
      return Passage::store;
    case Effect::atomic:
      return Passage::atomic;
    case Effect::shuffle:
      return Passage::shuffle;
    case Effect::matrix:
      return Passage::matrix;
    case Effect::load_matrix:
      return Passage::load_matrix;
    case Effect::store_matrix:
      return Passage::store_matrix;
    case Effect::move_matrix:
      return Passage::move_matrix;
    case Effect::async_copy:
      return Passage::none;
    case Effect::control:
      return op.d == no_slot || op.d_cell == Cell::mask ? Passage::none : Passage::clear;
  }
  return Passage::none;
}

}  // namespace

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
  shadow_.resize(block.warps.size());
  for (WarpShadow& w : shadow_) {
    w.registers.assign(code_->file_bytes / 2, {});
    std::fill_n(w.registers.begin(), code_->register_bytes / 2, ShadowCell{0, kUnwritten});
    w.local.assign(static_cast<size_t>(code_->local_bytes) * 16 + 1, {0, kUnwritten});
  }
  shared_.assign(block.shared.size() / 2 + 1, {0, kUnwritten});
}

Recorder::OpFacts Recorder::facts_of(const Code& code, const Op& op) {
  OpFacts facts;
  if (!op.row) return facts;
  const bool written = op.function >= 0 && op.instruction >= 0;
  const std::string_view opcode =
      written ? std::string_view(code.module->functions[op.function].body[op.instruction].opcode) : "";
  facts.passage = choose(op, opcode);
  facts.wide_result = op.d_cell == Cell::wide;
  for (int i = 0; i < op.source_count; i++) {
    if (op.s[i] == no_slot) continue;
    const Cell cell = cell_of(op.row->sources[i]);
    if (cell == Cell::word) facts.word_sources |= 1 << i;
    if (cell == Cell::wide) facts.wide_sources |= 1 << i;
  }
  using Bits = OpFacts::Bits;
  for (const auto& [prefix, bits] : {std::pair{"and.", Bits::masking},
                                     {"prmt.", Bits::permute},
                                     {"or.", Bits::by_half},
                                     {"xor.", Bits::by_half},
                                     {"not.", Bits::by_half},
                                     {"lop3.", Bits::by_half},
                                     {"shl.", Bits::shift_left},
                                     {"shr.", Bits::shift_right}})
    if (opcode.starts_with(prefix)) facts.bits = bits;
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

Dependence Recorder::dependence(const Warp& warp, Slot slot, int lane, bool wide) {
  const ShadowCell* c = cells(warp, slot, lane, wide);
  Provenance& p = run_->provenance;
  const Dependence word = p.unite(c[0].dependence, c[1].dependence);
  return wide ? p.unite(word, p.unite(c[2].dependence, c[3].dependence)) : word;
}

Tag Recorder::tag(const Warp& warp, Slot slot, int lane, bool wide) {
  const ShadowCell* c = cells(warp, slot, lane, wide);
  for (int half = 0; half < (wide ? 4 : 2); half++)
    if (c[half].tag) return c[half].tag;
  return 0;
}

Tag Recorder::log(const LoggedEvent& event, const LoggedOperand* operands, int count) {
  const Tag tag = run_->log.add(event, operands, count);
  if (tag && !finished() && static_cast<int32_t>(tag) - 1 == run_->watched)
    run_->watched_elements = run_->provenance.collect(event.dependence, kListedElements);
  return tag;
}

LoggedEvent Recorder::event_at(const Warp& warp, const Op& op, int lane) {
  LoggedEvent e;
  e.site = site(op);
  e.block = static_cast<uint32_t>(block_->linear);
  e.thread = static_cast<uint16_t>(warp.index * 32 + static_cast<uint32_t>(lane));
  return e;
}

// Source values are kept here where the op may overwrite a source or where a result that is not finite needs
// them.
void Recorder::before(Warp& warp, const Op& op, uint32_t mask) {
  const OpFacts& known = facts(op);
  switch (known.passage) {
    case Passage::arithmetic:
    case Passage::packed_convert:
    case Passage::bits:
    case Passage::shift_halves:
      for (int i = 0; i < op.source_count; i++) {
        if (known.wide_sources >> i & 1) {
          std::memcpy(before_[i].data(), warp.wide(op.s[i]), 32 * sizeof(uint64_t));
        } else if (known.word_sources >> i & 1) {
          const uint32_t* words = warp.word(op.s[i]);
          for (int lane = 0; lane < 32; lane++) before_[i][lane] = words[lane];
        }
      }
      break;
    case Passage::atomic:
      before_atomic(warp, op, mask);
      break;
    case Passage::matrix:
      before_matrix(warp, op);
      break;
    default:
      break;
  }
}

void Recorder::after(Warp& warp, const Op& op, uint32_t mask) {
  switch (facts(op).passage) {
    case Passage::none:
      break;
    case Passage::clear:
      clear(warp, op, mask);
      break;
    case Passage::arithmetic:
      arithmetic(warp, op, mask);
      break;
    case Passage::packed_convert:
      packed_convert(warp, op, mask);
      break;
    case Passage::results:
      for (uint32_t i = 0; i + 2 < op.slot_count; i += 3)
        copied_local(warp, mask, op.slots[i], op.slots[i + 1], op.slots[i + 2]);
      break;
    case Passage::move:
      move(warp, op, mask);
      break;
    case Passage::pack:
      pack(warp, op, mask);
      break;
    case Passage::unpack:
      unpack(warp, op, mask);
      break;
    case Passage::bits:
      bits(warp, op, mask);
      break;
    case Passage::shift_halves:
      shift_halves(warp, op, mask);
      break;
    case Passage::select:
      select(warp, op, mask);
      break;
    case Passage::load:
      load(warp, op, mask);
      break;
    case Passage::store:
      store(warp, op, mask);
      break;
    case Passage::atomic:
      atomic(warp, op, mask);
      break;
    case Passage::shuffle:
      shuffle(warp, op, mask);
      break;
    case Passage::matrix:
      matrix(warp, op);
      break;
    case Passage::load_matrix:
      load_matrix(warp, op, mask);
      break;
    case Passage::store_matrix:
      store_matrix(warp, op, mask);
      break;
    case Passage::move_matrix:
      move_matrix(warp, op);
      break;
  }
}

}  // namespace assay::vm
