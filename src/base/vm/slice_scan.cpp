#include "src/base/vm/slice_scan.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "src/base/vm/each_lane.h"
#include "src/base/vm/matrix_elements.h"
#include "src/base/vm/opcode.h"

namespace assay::vm {
namespace {

int halves_of_cell(Cell cell) {
  return cell == Cell::wide ? 4 : cell == Cell::word ? 2 : 0;
}

bool is_one_float(ptx::Type type) {
  return ptx::is_float(type) && !ptx::is_packed(type);
}

/// Halves of an element of `bytes`; a single byte counts as one.
uint32_t all_halves(uint32_t bytes) {
  return (1u << std::max(1u, bytes / 2)) - 1;
}

}  // namespace

void SliceScan::want(uint64_t address, uint32_t bytes) {
  uses.emplace_back();
  uses.back().address = address, uses.back().global = true;
  for (uint32_t half = 0; half < std::max(1u, bytes / 2); ++half) {
    waiting_.push_back({static_cast<uint32_t>(uses.size()) - 1, -1, static_cast<uint8_t>(half)});
    global_[address / 2 + half] = static_cast<int32_t>(waiting_.size()) - 1;
  }
}

/// Halves of a result that do not depend on each other are instances of their own: packed arithmetic, copies
/// of bits that may be packed, and, or, xor, shifts by a half.
bool SliceScan::splits(const BlockLog& log, const Op& op) const {
  switch (op.row->effect) {
    case Effect::load:
    case Effect::store:
      return !is_one_float(op.type);
    case Effect::arithmetic:
      return ptx::is_packed(op.row->result);
    case Effect::move:
    case Effect::select:
    case Effect::shuffle:
      return !is_one_float(op.row->result);
    case Effect::load_matrix:
    case Effect::move_matrix:
      return true;
    case Effect::matrix:
      return MatrixForm::of(op.immediate).sum == Element::f16;
    case Effect::bits: {
      const std::string_view opcode = opcode_of(*log.code, op);
      for (const char* name : {"and.", "or.", "xor.", "not.", "lop3.", "shl.b32", "shr.u32", "shr.b32"})
        if (opcode.starts_with(name)) return true;
      return false;
    }
    default:
      return false;
  }
}

bool SliceScan::wanted(const WarpPlaces& w, Slot slot, int halves, uint32_t mask) const {
  for (int half = 0; half < halves; ++half)
    if (w.waiting_lanes[slot / 64 + static_cast<size_t>(half)] & mask) return true;
  return false;
}

uint32_t SliceScan::wanted_halves(const WarpPlaces& w, Slot slot, int halves, int lane) const {
  uint32_t found = 0;
  for (int half = 0; half < halves; ++half)
    found |= static_cast<uint32_t>(w.registers[place(slot, half, lane)] >= 0) << half;
  return found;
}

/// Head of the list that waits for a half of memory; a place of its own where none can wait.
int32_t* SliceScan::memory(ptx::Space space, WarpPlaces& w, int lane, uint64_t address) {
  if (space == ptx::Space::shared) return address / 2 < shared_.size() ? &shared_[address / 2] : &none_;
  if (space == ptx::Space::local) {
    const size_t at = (w.local.size() / 32) * static_cast<size_t>(lane) + address / 2;
    return at < w.local.size() ? &w.local[at] : &none_;
  }
  const auto found = global_.find(address / 2);
  return found == global_.end() ? &none_ : &found->second;
}

/// -1 where the slice is full.
int32_t SliceScan::add_node(const SliceRecord& record, int lane, Slot slot, int half, ptx::Type type) {
  if (nodes.size() >= most_nodes_ || uses.size() >= most_uses_) {
    truncated = true;
    return -1;
  }
  SliceNode node;
  node.log = log_, node.record = record_;
  node.op = record.op, node.warp = record.warp, node.lane = static_cast<uint8_t>(lane);
  node.slot = slot, node.half = static_cast<uint8_t>(half), node.type = type;
  node.wide = type != ptx::Type::none && cell_of(type) == Cell::wide;
  node.first_use = static_cast<uint32_t>(uses.size());
  nodes.push_back(node);
  return static_cast<int32_t>(nodes.size()) - 1;
}

/// Everything that waits in `list` takes the node's value. Of a use of several halves the highest counts
/// first: it holds sign and exponent.
void SliceScan::define(int32_t& list, int32_t node) {
  if (node < 0) return;  // full: they wait on
  for (int32_t at = list; at >= 0; at = waiting_[static_cast<size_t>(at)].next) {
    const Waiting& waiting = waiting_[static_cast<size_t>(at)];
    SliceUse& use = uses[waiting.use];
    if (use.node >= 0 && use.node != node)
      other_halves.emplace_back(waiting.use, waiting.half > use.node_half ? use.node : node);
    if (use.node < 0 || waiting.half > use.node_half) use.node = node, use.node_half = waiting.half;
  }
  list = -1;
}

void SliceScan::define_register(WarpPlaces& w, Slot slot, uint32_t halves, int lane, int32_t node) {
  if (node < 0) return;
  each_lane(halves, [&](int half) {
    define(w.registers[place(slot, half, lane)], node);
    w.waiting_lanes[slot / 64 + static_cast<size_t>(half)] &= ~(1u << lane);
  });
}

SliceUse* SliceScan::add_use(int32_t node) {
  SliceNode& n = nodes[static_cast<size_t>(node)];
  if (n.use_count == 0) n.first_use = static_cast<uint32_t>(uses.size());
  ++n.use_count;
  uses.emplace_back();
  return &uses.back();
}

void SliceScan::use_register(const BlockLog& log, WarpPlaces& w, int32_t node, Slot slot, uint32_t halves,
                             int lane, ptx::Type type, int name) {
  if (slot == no_slot) return;
  SliceUse* use = add_use(node);
  use->slot = slot, use->lane = static_cast<uint8_t>(lane), use->type = type;
  use->half = static_cast<uint8_t>(std::countr_zero(halves));
  use->wide = halves > 3, use->name = static_cast<uint8_t>(name);
  use->constant = slot >= log.code->register_bytes;
  if (use->constant) return;
  const auto index = static_cast<uint32_t>(uses.size()) - 1;
  each_lane(halves, [&](int half) {
    int32_t& list = w.registers[place(slot, half, lane)];
    waiting_.push_back({index, list, static_cast<uint8_t>(half)});
    list = static_cast<int32_t>(waiting_.size()) - 1;
    w.waiting_lanes[slot / 64 + static_cast<size_t>(half)] |= 1u << lane;
  });
}

void SliceScan::use_memory(WarpPlaces& w, int32_t node, ptx::Space space, int lane, uint64_t address,
                           uint32_t halves) {
  SliceUse* use = add_use(node);
  const bool global = space != ptx::Space::shared && space != ptx::Space::local;
  use->address = address + 2 * static_cast<uint64_t>(std::countr_zero(halves)), use->global = global;
  const auto index = static_cast<uint32_t>(uses.size()) - 1;
  each_lane(halves, [&](int half) {
    const uint64_t at = address + 2 * static_cast<uint64_t>(half);
    int32_t* list = global ? &global_.try_emplace(at / 2, -1).first->second : memory(space, w, lane, at);
    waiting_.push_back({index, *list, static_cast<uint8_t>(half)});
    *list = static_cast<int32_t>(waiting_.size()) - 1;
  });
}

void SliceScan::scan(const BlockLog& log, uint32_t number) {
  if (truncated) return;
  size_t from = log.records.size();
  if (std::exchange(resumes_, false)) {
    from = record_ + 1;  // the one that it was full at, again
  } else {
    warps_.assign(log.warps, {});
    for (WarpPlaces& w : warps_) {
      w.registers.assign(size_t{log.code->file_bytes} / 2 + 64, -1);
      w.waiting_lanes.assign(size_t{log.code->file_bytes} / 64 + 4, 0);
      w.local.assign(32 * ((size_t{log.code->local_bytes} + 1) / 2), -1);
    }
    shared_.assign(log.shared_bytes / 2 + 1, -1);
  }
  log_ = number;
  for (size_t i = from; i-- > 0 && !truncated;) {
    const SliceRecord& record = log.records[i];
    record_ = static_cast<uint32_t>(i);
    switch (record.what) {
      case SliceRecord::What::op:
        scan_op(log, record);
        break;
      case SliceRecord::What::landing:
        scan_landing(log, record);
        break;
      case SliceRecord::What::local_copy:
        scan_local_copy(log, record, log.details[record.detail], log.details[record.detail + 1],
                        log.details[record.detail + 2]);
        break;
    }
  }
  // What still waits for a register, shared or local memory was never written; global memory waits on.
  if (truncated) cut_waiting();
}

void SliceScan::cut_waiting() {
  const auto cut = [&](int32_t list) {
    for (int32_t at = list; at >= 0; at = waiting_[static_cast<size_t>(at)].next)
      uses[waiting_[static_cast<size_t>(at)].use].cut = true;
  };
  for (const WarpPlaces& w : warps_) {
    for (const int32_t list : w.registers) cut(list);
    for (const int32_t list : w.local) cut(list);
  }
  for (const int32_t list : shared_) cut(list);
  for (const auto& [address, list] : global_) cut(list);
}

void SliceScan::go_on(uint32_t use) {
  // Only the lists that the use stands in are kept, and only it in them.
  const auto keep = [&](int32_t& list) {
    int32_t kept = -1;
    for (int32_t at = list; at >= 0;) {
      const int32_t next = waiting_[static_cast<size_t>(at)].next;
      if (waiting_[static_cast<size_t>(at)].use == use)
        waiting_[static_cast<size_t>(at)].next = kept, kept = at;
      at = next;
    }
    list = kept;
  };
  for (WarpPlaces& w : warps_) {
    for (size_t i = 0; i < w.registers.size(); ++i) {
      keep(w.registers[i]);
      if (w.registers[i] < 0 && i / 32 < w.waiting_lanes.size()) w.waiting_lanes[i / 32] &= ~(1u << i % 32);
    }
    for (int32_t& list : w.local) keep(list);
  }
  for (int32_t& list : shared_) keep(list);
  for (auto& [address, list] : global_) keep(list);
  uses[use].cut = false;
  most_nodes_ = nodes.size() + limits_.instances, most_uses_ = uses.size() + limits_.operands;
  truncated = false, resumes_ = true;
}

void SliceScan::scan_op(const BlockLog& log, const SliceRecord& record) {
  const Op& op = log.code->ops[static_cast<size_t>(record.op)];
  WarpPlaces& w = warps_[record.warp];
  if (copies_results(op)) {
    for (uint32_t i = op.slot_count / 3 * 3; i >= 3; i -= 3)
      scan_local_copy(log, record, op.slots[i - 3], op.slots[i - 2], op.slots[i - 1]);
    return;
  }
  found_.clear();
  find(log, record, op, w);
  for (const Found& f : found_) add_sources(log, record, op, w, f);
}

/// The wanted places that the op defines: a node each, whose lists are served.
void SliceScan::find(const BlockLog& log, const SliceRecord& record, const Op& op, WarpPlaces& w) {
  const Effect effect = op.row->effect;
  if (effect == Effect::store) find_stored(log, record, op, w);
  if (effect == Effect::store_matrix) scan_store_matrix(log, record, op, w);
  if (effect == Effect::atomic) scan_atomic(log, record, op, w);
  const auto define_at = [&](Slot slot, int halves, int part, ptx::Type type, uint32_t mask) {
    if (slot == no_slot || halves == 0 || !wanted(w, slot, halves, mask)) return;
    const bool by_half = splits(log, op);
    each_lane(mask, [&](int lane) {
      uint32_t here = wanted_halves(w, slot, halves, lane);
      while (here) {
        const uint32_t taken = by_half ? here & -here : here;
        const int32_t node = add_node(record, lane, slot, by_half ? std::countr_zero(taken) : 0, type);
        define_register(w, slot, taken, lane, node);
        if (node >= 0) found_.push_back({node, lane, part, taken});
        here &= ~taken;
      }
    });
  };
  const uint32_t mask = record.mask;
  switch (effect) {
    case Effect::store:
    case Effect::store_matrix:
      return;
    case Effect::load:
      for (int i = 0; i < op.vector_length; ++i)
        define_at(op.slots ? op.slots[i] : op.d, op.element_bytes == 8 ? 4 : 2, i, op.type, mask);
      return;
    case Effect::atomic:
      return;
    case Effect::matrix: {
      const MatrixForm form = MatrixForm::of(op.immediate);
      const ElementFormat& sum = format_of(form.sum);
      for (int r = 0; r < form.sum_registers(); ++r)
        define_at(op.slots[r], sum.bits == 64 ? 4 : 2, r, sum.type, ~0u);
      return;
    }
    case Effect::load_matrix:
      for (int i = 0; i < op.slot_count; ++i) define_at(op.slots[i], 2, i, ptx::Type::none, ~0u);
      return;
    case Effect::move:
      if (op.slots && op.immediate == 1) {
        for (int i = 0; i < op.slot_count; ++i) define_at(op.slots[i], 2, i, ptx::Type::none, mask);
        return;
      }
      [[fallthrough]];
    default:
      return define_at(op.d, halves_of_cell(op.d_cell), 0, op.row->result, mask);
  }
}

/// The memory that a store wrote; of lanes with one address the last stays.
void SliceScan::find_stored(const BlockLog& log, const SliceRecord& record, const Op& op, WarpPlaces& w) {
  const uint64_t* address = &log.details[record.detail];
  const bool by_half = splits(log, op);
  for (int lane = 31; lane >= 0; --lane) {
    if (!(record.mask >> lane & 1)) continue;
    for (int i = 0; i < op.vector_length; ++i) {
      const uint64_t at = address[lane] + static_cast<uint64_t>(i) * op.element_bytes;
      for (uint32_t here = wanted_memory(record.space, w, lane, at, op.element_bytes); here;) {
        const uint32_t taken = by_half ? here & -here : here;
        here &= ~taken;
        const int32_t node = define_memory(record, w, lane, at, taken, op.type);
        if (node >= 0) found_.push_back({node, lane, i, taken});
      }
    }
  }
}

/// Lanes one after another, the last first: each adds to what the lane before it left, and gives back the
/// same.
void SliceScan::scan_atomic(const BlockLog& log, const SliceRecord& record, const Op& op, WarpPlaces& w) {
  const uint64_t* address = &log.details[record.detail];
  for (int lane = 31; lane >= 0; --lane) {
    if (!(record.mask >> lane & 1)) continue;
    const uint32_t here = wanted_memory(record.space, w, lane, address[lane], op.element_bytes);
    const uint32_t given = op.d == no_slot ? 0 : wanted_halves(w, op.d, halves_of_cell(op.d_cell), lane);
    const int32_t old = given ? add_node(record, lane, op.d, 0, op.type) : -1;
    if (given) define_register(w, op.d, given, lane, old);
    const int32_t made = here ? define_memory(record, w, lane, address[lane], here, ptx::Type::none) : -1;
    if (made >= 0) {
      use_memory(w, made, record.space, lane, address[lane], here);
      for (int i = 1; i < op.source_count; ++i)
        use_register(log, w, made, op.s[i], here, lane, op.type, op.d == no_slot ? i : i + 1);
    }
    if (old >= 0) use_memory(w, old, record.space, lane, address[lane], given & all_halves(op.element_bytes));
  }
}

uint32_t SliceScan::wanted_memory(ptx::Space space, WarpPlaces& w, int lane, uint64_t address,
                                  uint32_t bytes) {
  uint32_t found = 0;
  for (uint32_t half = 0; half < std::max(1u, bytes / 2); ++half)
    found |= static_cast<uint32_t>(*memory(space, w, lane, address + 2 * half) >= 0) << half;
  return found;
}

int32_t SliceScan::define_memory(const SliceRecord& record, WarpPlaces& w, int lane, uint64_t address,
                                 uint32_t halves, ptx::Type type) {
  const int32_t node = add_node(record, lane, no_slot, 0, type);
  each_lane(halves, [&](int half) {
    define(*memory(record.space, w, lane, address + 2 * static_cast<uint64_t>(half)), node);
  });
  return node;
}

void SliceScan::add_sources(const BlockLog& log, const SliceRecord& record, const Op& op, WarpPlaces& w,
                            const Found& f) {
  const uint64_t* details = log.details.data() + record.detail;
  switch (op.row->effect) {
    case Effect::load: {
      const uint32_t read = f.halves & all_halves(op.element_bytes);
      if (read)
        use_memory(w, f.node, record.space, f.lane,
                   details[f.lane] + static_cast<uint64_t>(f.part) * op.element_bytes, read);
      return;
    }
    case Effect::store:
      return use_register(log, w, f.node, op.slots[f.part], f.halves, f.lane, op.type, 1);
    case Effect::shuffle:
      return use_register(log, w, f.node, op.s[0], f.halves, static_cast<int>(details[f.lane] & 31),
                          op.row->sources[0], 1);
    case Effect::select:
      return use_register(log, w, f.node, op.s[record.detail >> f.lane & 1 ? 0 : 1], f.halves, f.lane,
                          op.row->result, record.detail >> f.lane & 1 ? 1 : 2);
    case Effect::matrix:
      return add_matrix(log, record, op, w, f);
    case Effect::load_matrix: {
      // PTX ISA, ldmatrix: see Recorder::load_matrix.
      const int half = std::countr_zero(f.halves), lane = f.lane;
      const bool transposed = op.immediate & 1;
      const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
      const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
      return use_memory(w, f.node, ptx::Space::shared, lane,
                        details[8 * f.part + row] + 2 * static_cast<uint64_t>(column), 1);
    }
    case Effect::move_matrix:  // see Recorder::move_matrix
      return use_register(log, w, f.node, op.s[0], 1u << f.lane / 4 % 2,
                          4 * (2 * (f.lane % 4) + std::countr_zero(f.halves)) + f.lane / 8, ptx::Type::none,
                          1);
    case Effect::arithmetic:
      return add_arithmetic(log, op, w, f);
    case Effect::move:
    case Effect::bits:
      return add_bits(log, op, w, f);
    default:
      return;
  }
}

/// See Recorder::store_matrix.
void SliceScan::scan_store_matrix(const BlockLog& log, const SliceRecord& record, const Op& op,
                                  WarpPlaces& w) {
  const uint64_t* address = log.details.data() + record.detail;
  const bool transposed = op.immediate & 1;
  for (int place = 64 * op.slot_count - 1; place >= 0; --place) {
    const int i = place / 64, lane = place / 2 % 32, half = place % 2;
    const int row = transposed ? 2 * (lane % 4) + half : lane / 4;
    const int column = transposed ? lane / 4 : 2 * (lane % 4) + half;
    const uint64_t at = address[8 * i + row] + 2 * static_cast<uint64_t>(column);
    if (!wanted_memory(ptx::Space::shared, w, lane, at, 2)) continue;
    const int32_t node = define_memory(record, w, lane, at, 1, ptx::Type::none);
    if (node >= 0) use_register(log, w, node, op.slots[i], 1u << half, lane, ptx::Type::none, 1);
  }
}

void SliceScan::scan_landing(const BlockLog& log, const SliceRecord& record) {
  const uint64_t* details = log.details.data() + record.detail;
  const auto bytes = static_cast<uint32_t>(details[96]);
  WarpPlaces& w = warps_[record.warp];
  for (int lane = 31; lane >= 0; --lane) {
    if (!(record.mask >> lane & 1)) continue;
    const uint64_t shared = details[3 * lane], global = details[3 * lane + 1], copied = details[3 * lane + 2];
    for (uint32_t byte = 0; byte < bytes; byte += 2) {
      int32_t* list = memory(ptx::Space::shared, w, lane, shared + byte);
      if (*list < 0) continue;
      const int32_t node = add_node(record, lane, no_slot, 0, ptx::Type::none);
      define(*list, node);
      if (node >= 0 && byte < copied) use_memory(w, node, ptx::Space::global, lane, global + byte, 1);
    }
  }
}

/// Copies within a lane's local memory are no instances: what waits for the target waits for the source.
void SliceScan::scan_local_copy(const BlockLog&, const SliceRecord& record, uint64_t from, uint64_t to,
                                uint64_t bytes) {
  WarpPlaces& w = warps_[record.warp];
  each_lane(record.mask, [&](int lane) {
    std::vector<int32_t> lists;
    for (uint64_t byte = 0; byte < bytes; byte += 2) {
      int32_t* list = memory(ptx::Space::local, w, lane, to + byte);
      lists.push_back(*list);
      *list = -1;
    }
    for (uint64_t byte = 0; byte < bytes; byte += 2) {
      int32_t at = lists[byte / 2];
      if (at < 0) continue;
      int32_t* list = memory(ptx::Space::local, w, lane, from + byte);
      int32_t last = at;
      while (waiting_[static_cast<size_t>(last)].next >= 0) last = waiting_[static_cast<size_t>(last)].next;
      waiting_[static_cast<size_t>(last)].next = *list;
      *list = at;
    }
  });
}

}  // namespace assay::vm
