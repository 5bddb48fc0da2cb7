#include "src/base/vm/departure.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_set>

#include "src/base/numerics/format.h"
#include "src/base/vm/each_lane.h"
#include "src/base/vm/influence.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/swap_loops.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

constexpr uint64_t kMostInstances = uint64_t{1} << 28;

/// FNV-1a over words; any hash serves that sees every bit.
struct Hash {
  uint64_t value = 0xcbf29ce484222325;
  void add(uint64_t word) { value = (value ^ word) * 0x100000001b3 ^ value >> 29; }
  uint32_t folded() const { return static_cast<uint32_t>(value ^ value >> 32); }
};

/// What an instruction left in its registers.
uint32_t hash_of(const Warp& warp, const Signature& signature, size_t op, uint32_t mask) {
  Hash hash;
  hash.add(op);
  hash.add(mask);
  for (const Use& use : signature.writes) {
    if (use.cell == Cell::mask) hash.add(warp.mask(use.slot) & mask);
    if (use.cell == Cell::word) each_lane(mask, [&](int lane) { hash.add(warp.word(use.slot)[lane]); });
    if (use.cell == Cell::wide) each_lane(mask, [&](int lane) { hash.add(warp.wide(use.slot)[lane]); });
  }
  return hash.folded();
}

/// The instances of one warp, in its order.
struct WarpStream {
  std::vector<uint32_t> hashes;
  std::vector<uint32_t> releases;  ///< how many there were at each of the block's barriers
};
using Streams = std::map<std::pair<size_t, uint64_t>, std::vector<WarpStream>>;  // (launch, block), by warp

/// The first run.
struct StreamTrace : PlainTrace {
  static constexpr unsigned hooks = hook::begin_block | hook::after | hook::released;
  explicit StreamTrace(Streams& kept) : streams(kept) {}

  void begin_block(Block& block) {
    signatures = block.context->code->signatures.data(), ops = block.context->code->ops.data();
    of_block = &streams[{static_cast<size_t>(block.context->launch_index), block.linear}];
    of_block->assign(block.warps.size(), {});
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    (*of_block)[warp.index].hashes.push_back(
        hash_of(warp, signatures[&op - ops], static_cast<size_t>(&op - ops), mask));
    full |= ++instances > kMostInstances;
  }
  void released(Block&) {
    for (WarpStream& warp : *of_block) warp.releases.push_back(static_cast<uint32_t>(warp.hashes.size()));
  }

  Streams& streams;
  std::vector<WarpStream>* of_block = nullptr;
  const Signature* signatures = nullptr;
  const Op* ops = nullptr;
  uint64_t instances = 0;
  bool full = false;
};

/// An instance, and what it left.
struct Instance {
  size_t launch = 0;
  uint64_t block = 0;
  uint32_t barriers = 0;  ///< passed before it, in the first run
  uint32_t warp = 0;
  size_t index = 0;  ///< in the warp's stream
  auto order() const { return std::tie(launch, block, barriers, warp, index); }

  size_t op = 0;
  uint32_t mask = 0;
  std::array<uint32_t, 3> cluster{1, 1, 1};  ///< that `warp` is counted in
  std::vector<LaneBits> results;
};

void keep_results(const Warp& warp, const Signature& signature, uint32_t mask, Instance& instance) {
  instance.mask = mask, instance.results.clear();
  for (const Use& use : signature.writes) {
    LaneBits& bits = instance.results.emplace_back();
    bits.fill(0);
    for (int lane = 0; lane < 32; ++lane)
      bits[static_cast<size_t>(lane)] = use.cell == Cell::mask   ? warp.mask(use.slot) >> lane & 1
                                        : use.cell == Cell::word ? warp.word(use.slot)[lane]
                                                                 : warp.wide(use.slot)[lane];
  }
}

/// Bytes whose values depend on the order of sums, by words of four.
class Tainted {
 public:
  void set(uint64_t address, uint64_t bytes) {
    for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) words_.insert(word);
  }
  bool any(uint64_t address, uint64_t bytes) const {
    if (words_.empty()) return false;
    for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
      if (words_.contains(word)) return true;
    return false;
  }
  bool empty() const { return words_.empty(); }
  void clear() { words_.clear(); }

 private:
  std::unordered_set<uint64_t> words_;
};

/// The second run, against the streams of the first.
class CompareTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks = hook::begin_block | hook::after | hook::landed;
  explicit CompareTrace(const Streams& streams) : streams_(streams) {}

  std::optional<Instance> first;
  bool all_by_sums = true;
  Tainted global;

  void begin_block(Block& block) {
    if (code_ != block.context->code) loops_ = swap_loops_of(*block.context->code);
    code_ = block.context->code;
    const auto found = streams_.find({static_cast<size_t>(block.context->launch_index), block.linear});
    of_block_ = found == streams_.end() ? nullptr : &found->second;
    at_.assign(block.warps.size(), 0);
    departed_.assign(block.warps.size(), false);
    shared_.clear();
  }

  void after(Warp& warp, const Op& op, uint32_t mask) {
    const Signature& signature = code_->signature(op);
    if (of_block_ && !departed_[warp.index]) compare(warp, op, signature, mask);
    if (!signature.accesses.empty()) follow(warp, op, signature, mask);
  }

  void landed(Warp&, const Landing& landing) {
    const auto memory = [&](ptx::Space space) -> Tainted& {
      return space == ptx::Space::global ? global : shared_;
    };
    each_lane(landing.mask, [&](int piece) {
      const uint32_t copied = landing.copied[piece];
      if (copied && (landing.combines || memory(landing.from_space).any(landing.from[piece], copied)))
        memory(landing.to_space).set(landing.to[piece], landing.bytes);
    });
  }

 private:
  void compare(const Warp& warp, const Op& op, const Signature& signature, uint32_t mask) {
    const WarpStream& stream = (*of_block_)[warp.index];
    const size_t index = at_[warp.index]++;
    if (index < stream.hashes.size() &&
        stream.hashes[index] == hash_of(warp, signature, code_->index(op), mask))
      return;
    departed_[warp.index] = true;
    all_by_sums &= comes_of_sums(warp, op, signature, mask);
    Instance found;
    found.launch = static_cast<size_t>(warp.block->context->launch_index), found.block = warp.block->linear;
    found.warp = warp.index, found.index = index;
    found.barriers = static_cast<uint32_t>(
        std::upper_bound(stream.releases.begin(), stream.releases.end(), index) - stream.releases.begin());
    if (first && first->order() <= found.order()) return;
    found.op = code_->index(op), found.cluster = warp.block->context->cluster;
    keep_results(warp, signature, mask, found);
    first = std::move(found);
  }

  bool adds_floats(const Op& op, const Signature& signature) const {
    if (loops_.sums[code_->index(op)]) return true;
    return signature.flow() == Flow::atomic && signature.form.operation != ptx::Operation::none &&
           ptx::is_float(signature.form.type()) &&
           (signature.form.operation == ptx::Operation::atom ||
            signature.form.operation == ptx::Operation::red);
  }

  bool comes_of_sums(const Warp& warp, const Op& op, const Signature& signature, uint32_t mask) const {
    if (adds_floats(op, signature)) return true;
    if (signature.flow() == Flow::matrix) return !shared_.empty();
    return reaches_tainted(warp, signature, mask);
  }

  bool reaches_tainted(const Warp& warp, const Signature& signature, uint32_t mask) const {
    bool found = false;
    for (const Access& access : signature.accesses) {
      if (access.direction == Access::Direction::write || access.reach == Access::Reach::descriptor) continue;
      const bool rows = access.reach == Access::Reach::rows;
      each_lane(mask, [&](int lane) {
        const uint64_t bytes = rows ? 16 : std::max(1u, access.bytes);
        found |= warp.space == ptx::Space::shared ? shared_.any(warp.address[lane], bytes)
                                                  : global.any(warp.address[lane], bytes);
      });
    }
    return found;
  }

  /// Sums taint what they are added to; whoever has departed taints what it stores.
  void follow(const Warp& warp, const Op& op, const Signature& signature, uint32_t mask) {
    const bool sums = adds_floats(op, signature);
    const bool departed = departed_[warp.index] && signature.flow() != Flow::copy_async;
    if (!sums && !departed) return;
    for (const Access& access : signature.accesses) {
      if (access.direction == Access::Direction::read || access.reach == Access::Reach::descriptor) continue;
      const uint64_t bytes = access.reach == Access::Reach::rows ? 16 : std::max(1u, access.bytes);
      each_lane(mask, [&](int lane) {
        if (warp.space == ptx::Space::shared)
          shared_.set(warp.address[lane], bytes);
        else if (warp.space == ptx::Space::global)
          global.set(warp.address[lane], bytes);
      });
    }
  }

  const Streams& streams_;
  const Code* code_ = nullptr;
  SwapLoops loops_;  ///< of the code
  const std::vector<WarpStream>* of_block_ = nullptr;
  std::vector<size_t> at_;
  std::vector<bool> departed_;
  Tainted shared_;
};

/// The first run again, up to one instance.
struct WatchTrace : PlainTrace {
  static constexpr unsigned hooks = hook::after;
  explicit WatchTrace(Instance& instance) : watched(instance) {}
  void after(Warp& warp, const Op& op, uint32_t mask) {
    if (seen || warp.block->linear != watched.block || warp.index != watched.warp ||
        static_cast<size_t>(warp.block->context->launch_index) != watched.launch || index++ != watched.index)
      return;
    watched.op = warp.block->context->code->index(op);
    keep_results(warp, warp.block->context->code->signature(op), mask, watched);
    seen = true;
  }
  Instance& watched;
  size_t index = 0;
  bool seen = false;
};

std::string result_text(ptx::Type type, Cell cell, uint64_t bits) {
  if (cell == Cell::mask) return bits ? "true" : "false";
  using ptx::Type;
  if (type == Type::f32 || type == Type::tf32) return fmt::format("{:.9g}", decode(Dtype::fp32, bits & ~0u));
  if (type == Type::f64) return fmt::format("{:.17g}", decode(Dtype::fp64, bits));
  if (type == Type::f16) return fmt::format("{:.5g}", decode(Dtype::fp16, bits & 0xffff));
  if (type == Type::bf16) return fmt::format("{:.5g}", decode(Dtype::bf16, bits & 0xffff));
  return fmt::format("{:#x}", bits);
}

/// Of the instance in both runs: the first lane and result that differ.
Departure describe(const Program& program, const Code& code, const Instance& a, const Instance& b,
                   const std::function<SourceLocation(const ptx::Module&, int32_t, int32_t)>& locate) {
  Departure departure;
  const Op& op = code.ops[b.op];
  departure.where =
      locate && op.instruction >= 0 ? locate(*code.module, op.function, op.instruction) : where(code, op);
  departure.instruction = opcode_of(code, op);
  int lane = std::countr_zero(b.mask ? b.mask : 1u);
  const auto uses = code.signature(op).writes;
  bool found = false;
  for (size_t i = 0; a.op == b.op && i < b.results.size() && i < a.results.size() && !found; ++i)
    each_lane(b.mask & a.mask, [&](int one) {
      const auto at = static_cast<size_t>(one);
      if (found || a.results[i][at] == b.results[i][at]) return;
      found = true, lane = one;
      departure.first = result_text(uses[i].type, uses[i].cell, a.results[i][at]);
      departure.second = result_text(uses[i].type, uses[i].cell, b.results[i][at]);
    });
  if (!found) departure.first = "another instruction, or other lanes", departure.second = "this one";
  const ThreadPlace at = place_of_thread(program.launches[b.launch], b.cluster, b.block,
                                         uint64_t{b.warp} * 32 + static_cast<uint64_t>(lane));
  departure.block = at.block, departure.thread = at.thread;
  return departure;
}

/// Differing elements of the outputs lie where sums, or what follows from them, were written.
bool only_tainted(const PreparedProgram& prepared, const Outcome& a, const Outcome& b,
                  const Tainted& tainted) {
  for (const auto* outputs : {&a.outputs, &a.changed_inputs})
    for (const auto& [name, tensor] : *outputs) {
      const TensorMap& others = outputs == &a.outputs ? b.outputs : b.changed_inputs;
      const auto other = others.find(name);
      const auto place = prepared.memory().find(name);
      if (other == others.end() || !place || other->second.data.size() != tensor.data.size()) return false;
      for (size_t at = 0; at < tensor.data.size(); ++at)
        if (tensor.data[at] != other->second.data[at] && !tainted.any(place->address() + at, 1)) return false;
    }
  return true;
}

}  // namespace

TwoRuns compare_runs_of(const Program& program, const TensorMap& inputs, const Outcome& first,
                        const RunSetting& a, const RunSetting& b,
                        const std::function<SourceLocation(const ptx::Module&, int32_t, int32_t)>& locate) {
  Program under_a = program, under_b = program;
  under_a.poison = a.poison, under_b.poison = b.poison;
  Streams streams;
  StreamTrace kept(streams);
  TwoRuns result;
  {
    PreparedProgram prepared(under_a, inputs, a.machine);
    for (size_t i = 0; i < program.launches.size() && !kept.full; ++i) {
      const LaunchContext& context = prepared.enter(i);
      if (run_traced(context, prepared.blocks(i), kept, [&](bool trapped) {
            return trapped || kept.full;
          }).trap)
        break;
    }
  }
  if (kept.full) {
    result.second = run(under_b, inputs, b.machine);
    result.skipped = fmt::format("more than {} million warp instructions", kMostInstances >> 20);
    return result;
  }
  CompareTrace compared(streams);
  {
    PreparedProgram prepared(under_b, inputs, b.machine);
    result.second.trap = prepared.refused_launch();
    for (size_t i = 0; i < program.launches.size() && !result.second.trap; ++i) {
      TracedLaunch done = run_traced(prepared, i, compared);
      result.second.lane_instructions += done.lane_instructions;
      result.second.trap = std::move(done.trap);
    }
    if (!result.second.trap) {
      result.second.changed_inputs = prepared.changed(inputs);
      TensorMap outputs = prepared.take_outputs();
      result.second.outputs = std::move(outputs);
      result.by_order_of_sums = compared.all_by_sums && !compared.global.empty() &&
                                only_tainted(prepared, first, result.second, compared.global);
    }
  }
  if (!compared.first) return result;
  Instance again = *compared.first;
  WatchTrace watch(again);
  PreparedProgram prepared(under_a, inputs, a.machine);
  for (size_t i = 0; i <= again.launch; ++i) {
    const LaunchContext& context = prepared.enter(i);
    const BlockList blocks = prepared.blocks(i);
    if (run_traced(context, blocks, watch, [&](bool trapped) { return trapped || watch.seen; }).trap) break;
  }
  if (!watch.seen) again.mask = 0;
  result.departure = describe(program, prepared.code(compared.first->launch), again, *compared.first, locate);
  return result;
}

}  // namespace assay::vm
