#include "src/base/vm/slice_scan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/base/vm/each_lane.h"

namespace assay::vm {
namespace {

bool is_one_float(ptx::Type type) {
  return ptx::is_float(type) && !ptx::is_packed(type);
}

bool is_global(const BytePlace& at) {
  return at.slot == no_slot && at.space != ptx::Space::shared && at.space != ptx::Space::local;
}

/// Halves of an element of `bytes`; a single byte counts as one.
uint32_t all_halves(uint32_t bytes) {
  return (1u << std::max(1u, bytes / 2)) - 1;
}

}  // namespace

void SliceScan::want(uint64_t address, uint32_t bytes) {
  uses.emplace_back();
  uses.back().address = address, uses.back().global = true;
  wait({no_slot, ptx::Space::global, 0, address}, all_halves(bytes));
}

/// Halves of a result that do not depend on each other are instances of their own: packed arithmetic, copies
/// of bits that may be packed, and, or, xor, shifts by a half.
bool SliceScan::splits(const Op& op, const Signature& signature) {
  using enum Flow;
  const Meaning& meaning = *signature.meaning;
  const Flow flow = signature.flow();
  if (is_one_of(flow, pack, unpack, load_matrix, store_matrix, move_matrix, logic)) return true;
  if (is_one_of(flow, load, store)) return !is_one_float(op.type);
  if (is_one_of(flow, copy, exchange)) return !is_one_float(meaning.result);
  if (flow == select) return carries(signature) && !is_one_float(meaning.result);
  if (flow == matrix) return signature.matrix.sum == Element::f16;
  if (flow == shift) return signature.writes[0].cell == Cell::word && meaning.result != ptx::Type::s32;
  if (flow == conversion) return ptx::is_packed(meaning.result) && ptx::is_float(meaning.sources[0]);
  return flow == arithmetic && ptx::is_packed(meaning.result);
}

/// Head of the list that waits for a half; null where none can wait.
int32_t* SliceScan::list(const BytePlace& at, int half) {
  const uint64_t byte = at.at + 2 * static_cast<uint64_t>(half);
  if (at.slot != no_slot)
    return &lists_.registers(executed_->warp)[Lists::cell(at.slot, static_cast<int>(byte / 2), at.lane)];
  if (!is_global(at)) {
    const auto place = lists_.place(executed_->warp, at.lane, at.space, byte);
    return place.at < place.cells->size() ? &(*place.cells)[place.at] : nullptr;
  }
  const auto found = global_.find(byte / 2);
  return found == global_.end() ? nullptr : &found->second;
}

uint32_t SliceScan::wanted(const BytePlace& at, uint32_t bytes) {
  uint32_t found = 0;
  each_lane(all_halves(bytes), [&](int half) {
    const int32_t* const waiting = list(at, half);
    found |= static_cast<uint32_t>(waiting && *waiting >= 0) << half;
  });
  return found;
}

/// What a record says of the execution, of all its lanes.
Executed SliceScan::executed(const Op& op) {
  const Signature& signature = block_->code->signature(op);
  const auto& [number, mask, detail, warp, lands, space] = *executed_;
  return {&op,
          &signature,
          mask,
          mask,
          space,
          reaches_memory(signature) ? block_->addresses[detail].data() : nullptr,
          signature.flow() == Flow::exchange ? block_->lane_sources[detail].data() : nullptr,
          detail};
}

/// -1 where the slice is full.
int32_t SliceScan::add_node(int lane, Slot slot, int half, ptx::Type type) {
  if (nodes.size() >= most_nodes_ || uses.size() >= most_uses_) {
    truncated = true;
    return -1;
  }
  SliceNode node;
  node.log = log_, node.record = record_;
  node.op = executed_->op, node.warp = executed_->warp, node.lane = static_cast<uint8_t>(lane);
  node.slot = slot, node.half = static_cast<uint8_t>(half), node.type = type;
  node.wide = type != ptx::Type::none && cell_of(type) == Cell::wide;
  node.first_use = static_cast<uint32_t>(uses.size());
  nodes.push_back(node);
  return static_cast<int32_t>(nodes.size()) - 1;
}

/// Everything that waits for these halves takes the node's value. Of a use of several halves the highest
/// counts first: it holds sign and exponent.
void SliceScan::define(const BytePlace& to, uint32_t halves, int32_t node) {
  if (node < 0) return;  // full: they wait on
  each_lane(halves, [&](int half) {
    for (int32_t at = std::exchange(*list(to, half), -1); at >= 0;
         at = waiting_[static_cast<size_t>(at)].next) {
      const Waiting& waiting = waiting_[static_cast<size_t>(at)];
      SliceUse& use = uses[waiting.use];
      if (use.node >= 0 && use.node != node)
        other_halves.emplace_back(waiting.use, waiting.half > use.node_half ? use.node : node);
      if (use.node < 0 || waiting.half > use.node_half) use.node = node, use.node_half = waiting.half;
    }
    if (to.slot != no_slot) waiting_lanes(to.slot, half) &= ~(1u << to.lane);
  });
}

SliceUse* SliceScan::add_use(int32_t node) {
  SliceNode& n = nodes[static_cast<size_t>(node)];
  if (n.use_count == 0) n.first_use = static_cast<uint32_t>(uses.size());
  ++n.use_count;
  uses.emplace_back();
  return &uses.back();
}

/// The last use waits for these halves.
void SliceScan::wait(const BytePlace& from, uint32_t halves) {
  each_lane(halves, [&](int half) {
    if (from.slot != no_slot)
      waiting_lanes(from.slot, half) |= 1u << from.lane;
    else if (is_global(from))
      global_.try_emplace(from.at / 2 + static_cast<uint64_t>(half), -1);
    const auto head = static_cast<int32_t>(waiting_.size());
    const auto use = static_cast<uint32_t>(uses.size()) - 1;
    waiting_.push_back({use, std::exchange(*list(from, half), head), static_cast<uint8_t>(half)});
  });
}

void SliceScan::use_register(int32_t node, Slot slot, uint32_t halves, int lane, ptx::Type type, int name) {
  if (slot == no_slot) return;
  SliceUse* use = add_use(node);
  use->slot = slot, use->lane = static_cast<uint8_t>(lane), use->type = type;
  use->half = static_cast<uint8_t>(std::countr_zero(halves));
  use->wide = halves > 3, use->name = static_cast<uint16_t>(name);
  use->constant = slot >= block_->code->register_bytes;
  if (!use->constant) wait({slot, {}, lane}, halves);
}

void SliceScan::use_memory(int32_t node, const BytePlace& at, uint32_t halves, ptx::Type type, int name) {
  SliceUse* use = add_use(node);
  use->type = type, use->name = static_cast<uint16_t>(name);
  use->address = at.at + 2 * static_cast<uint64_t>(std::countr_zero(halves)), use->global = is_global(at);
  use->shared = at.space == ptx::Space::shared;
  wait(at, halves);
}

/// `halves` of what a transfer brings.
void SliceScan::use(int32_t node, const Transfer& t, uint32_t halves) {
  if (t.from.slot == no_slot) return use_memory(node, t.from, halves);
  const Op& op = block_->code->ops[static_cast<size_t>(executed_->op)];
  const Flow flow = block_->code->signature(op).flow();
  const bool values = flow == Flow::copy || flow == Flow::select || flow == Flow::exchange;
  const ptx::Type type = flow == Flow::store ? op.type : values ? op.row->sources[0] : ptx::Type::none;
  use_register(node, t.from.slot, halves << t.from.at / 2, t.from.lane, type, t.operand);
}

void SliceScan::scan(const BlockLog& log, uint32_t number) {
  if (truncated) return;
  size_t from = log.records.size();
  if (std::exchange(resumes_, false)) {
    from = record_ + 1;  // the one that it was full at, again
  } else {
    lists_.begin(log.warps, *log.code, log.shared_bytes, -1);
    waiting_lanes_.begin(log.warps, *log.code);
  }
  block_ = &log, log_ = number;
  for (size_t i = from; i-- > 0 && !truncated;) {
    executed_ = &log.records[i], record_ = static_cast<uint32_t>(i);
    executed_->lands ? scan_landing() : scan_op();
  }
  // What still waits for a register, shared or local memory was never written; global memory waits on.
  if (truncated) cut_waiting();
}

void SliceScan::cut_waiting() {
  const auto cut = [&](int32_t list) {
    for (int32_t at = list; at >= 0; at = waiting_[static_cast<size_t>(at)].next)
      uses[waiting_[static_cast<size_t>(at)].use].cut = true;
  };
  lists_.each_array([&](const auto& lists) {
    for (size_t i = 0; i < lists.size(); ++i) cut(lists[i]);
  });
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
  lists_.each_array([&](auto& lists) {
    for (size_t i = 0; i < lists.size(); ++i) keep(lists[i]);
  });
  for (uint32_t warp = 0; warp < block_->warps; ++warp)
    for (uint32_t i = 0; i < lists_.registers(warp).size(); ++i)
      if (lists_.registers(warp)[i] < 0) waiting_lanes_(warp, i / 32 * 64) &= ~(1u << i % 32);
  for (auto& [address, list] : global_) keep(list);
  uses[use].cut = false;
  most_nodes_ = nodes.size() + limits_.instances, most_uses_ = uses.size() + limits_.operands;
  truncated = false, resumes_ = true;
}

void SliceScan::scan_op() {
  const Op& op = block_->code->ops[static_cast<size_t>(executed_->op)];
  const Signature& signature = block_->code->signature(op);
  const Flow flow = signature.flow();
  if (copies_parameters(signature)) return scan_parameters(op);
  if (flow == Flow::store || flow == Flow::store_matrix) return scan_stores(op);
  if (flow == Flow::atomic) return scan_atomic(op);
  find_registers(op, signature);
  for (const Found& f : found_) add_sources(op, f);
}

/// The wanted registers that the op defines: a node each, whose lists are served.
void SliceScan::find_registers(const Op& op, const Signature& signature) {
  const Flow flow = signature.flow();
  const bool by_half = splits(op, signature);
  const ptx::Type type = flow == Flow::load     ? op.type
                         : flow == Flow::matrix ? format_of(signature.matrix.sum).type
                         : flow == Flow::unpack || flow == Flow::load_matrix ? ptx::Type::none
                                                                             : op.row->result;
  found_.clear();
  for (const Use& to : signature.writes) {
    const Slot slot = to.slot;
    const uint32_t bytes = bytes_of(to.cell);
    uint32_t lanes = 0;
    for (int half = 0; half < static_cast<int>(bytes / 2); ++half) lanes |= waiting_lanes(slot, half);
    if (flow != Flow::matrix) lanes &= executed_->mask;
    each_lane(lanes, [&](int lane) {
      for (uint32_t here = wanted({slot, {}, lane}, bytes); here;) {
        const uint32_t taken = by_half ? here & -here : here;
        const int32_t node = add_node(lane, slot, by_half ? std::countr_zero(taken) : 0, type);
        define({slot, {}, lane}, taken, node);
        if (node >= 0) found_.push_back({node, lane, slot, taken});
        here &= ~taken;
      }
    });
  }
}

/// The memory that a store wrote; of lanes with one address the last stays.
void SliceScan::scan_stores(const Op& op) {
  Executed done = executed(op);
  const bool by_half = splits(op, *done.signature);
  const ptx::Type type = done.signature->flow() == Flow::store ? op.type : ptx::Type::none;
  for (int lane = 31; lane >= 0; --lane) {
    done.mask = executed_->mask & 1u << lane;
    each_transfer(done, [&](const Transfer& t) {
      for (uint32_t here = wanted(t.to, t.bytes); here;) {
        const uint32_t taken = by_half ? here & -here : here;
        here &= ~taken;
        const int32_t node = add_node(lane, no_slot, 0, type);
        define(t.to, taken, node);
        if (node >= 0) use(node, t, taken);
      }
    });
  }
}

/// Lanes one after another, the last first: each adds to what the lane before it left, and gives back the
/// same.
void SliceScan::scan_atomic(const Op& op) {
  const auto& address = block_->addresses[executed_->detail];
  for (int lane = 31; lane >= 0; --lane) {
    if (!(executed_->mask >> lane & 1)) continue;
    const BytePlace at{no_slot, executed_->space, lane, address[static_cast<size_t>(lane)]};
    const uint32_t here = wanted(at, op.element_bytes);
    const uint32_t given = op.d == no_slot ? 0 : wanted({op.d, {}, lane}, bytes_of(op.d_cell));
    const int32_t old = given ? add_node(lane, op.d, 0, op.type) : -1;
    if (given) define({op.d, {}, lane}, given, old);
    const int32_t made = here ? add_node(lane, no_slot, 0, ptx::Type::none) : -1;
    if (made >= 0) {
      define(at, here, made);
      use_memory(made, at, here);
      for (int i = 1; i < op.source_count; ++i)
        use_register(made, op.s[i], here, lane, op.type, op.d == no_slot ? i : i + 1);
    }
    if (old >= 0) use_memory(old, at, given & all_halves(op.element_bytes));
  }
}

void SliceScan::add_sources(const Op& op, const Found& f) {
  const Signature& signature = block_->code->signature(op);
  if (signature.flow() == Flow::matrix) return add_matrix(op, f);
  if (!carries(signature)) return add_computed(op, f);
  Executed done = executed(op);
  done.mask = 1u << f.lane;
  each_transfer(done, [&](const Transfer& t) {
    if (t.to.slot != f.slot) return;
    const uint64_t first = t.to.at / 2;
    if (const uint32_t halves = f.halves >> first & all_halves(t.bytes)) use(f.node, t, halves);
  });
}

void SliceScan::scan_landing() {
  const LoggedLanding& landing = block_->landings[executed_->detail];
  for (size_t piece = 32; piece-- > 0;) {
    if (!(executed_->mask >> piece & 1)) continue;
    const int lane = landing.lane < 0 ? static_cast<int>(piece) : landing.lane;
    for (uint32_t byte = 0; byte < landing.bytes; byte += 2) {
      const BytePlace to{no_slot, executed_->space, lane, landing.to[piece] + byte},
          from{no_slot, landing.from_space, lane, landing.from[piece] + byte};
      if (!wanted(to, 2)) continue;
      const int32_t node = add_node(lane, no_slot, 0, ptx::Type::none);
      define(to, 1, node);
      if (node >= 0 && byte < landing.copied[piece]) use_memory(node, from, 1);
      if (node >= 0 && landing.combines) use_memory(node, to, 1);
    }
  }
}

/// Copies within a lane's local memory are no instances: what waits for the target waits for the source.
void SliceScan::scan_parameters(const Op& op) {
  const Executed done = executed(op);
  std::vector<Transfer> copies;
  each_transfer(done, [&](const Transfer& t) { copies.push_back(t); });
  std::vector<int32_t> waiting;  // by copied half, taken out before any source waits
  const auto each_half = [&](auto visit) {
    for (const Transfer& t : copies) each_lane(all_halves(t.bytes), [&](int half) { visit(t, half); });
  };
  each_half([&](const Transfer& t, int half) { waiting.push_back(std::exchange(*list(t.to, half), -1)); });
  size_t next = 0;
  each_half([&](const Transfer& t, int half) {
    const int32_t first = waiting[next++];
    if (first < 0) return;
    int32_t last = first;
    while (waiting_[static_cast<size_t>(last)].next >= 0) last = waiting_[static_cast<size_t>(last)].next;
    waiting_[static_cast<size_t>(last)].next = std::exchange(*list(t.from, half), first);
  });
}

}  // namespace assay::vm
