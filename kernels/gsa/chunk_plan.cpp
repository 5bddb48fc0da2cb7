// The plan of gsa.chunk and the arithmetic it declares.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/channel/case_layout.h"
#include "kernels/device/product_arithmetic.h"
#include "kernels/gla/plans.h"
#include "kernels/gsa/slot_launches.h"
#include "kernels/launch_tables.h"

namespace assay {
namespace {

using gsa::SlotLaunches;
using gsa::SlotPass;

/// The case as gla.chunk sees one pass: slots for key channels.
ResolvedCase of_pass(ResolvedCase c, int64_t channels) {
  c.sizes.K = c.sizes.M, c.sizes.V = channels;
  return c;
}
/// Bytes of a weight, which is stored as states are: bf16 for bf16, else fp32.
int weight_bytes(const ResolvedCase& c) {
  return device::format_sizes(c.dtype).kept;
}

/// Whether one block has all slots of its tokens, and with them a softmax.
bool has_all_slots(const ResolvedCase& c) {
  return c.sizes.M <= channel::block_channels;
}

/// The launches of one pass.
class ChunkPass {
 public:
  ChunkPass(SlotLaunches& to, SlotPass pass, const ResolvedCase& c)
      : to_(to),
        pass_(std::move(pass)),
        case_(of_pass(c, pass_.channels)),
        layout_(case_),
        columns_(channel::scan_columns(case_, layout_)) {}

  /// What a pass leaves of its states: the final one, and those at chunk starts as operands and as plain
  /// matrices where asked for.
  struct Kept {
    PointerArgument final_state;
    bool operands, plain;
  };
  /// The states of both passes, side by side.
  void states(const Kept& kept, ChunkPass& second, const Kept& second_kept) {
    const int columns = pass_.channels < second.pass_.channels ? second.columns_ : columns_;
    std::vector<Argument> arguments{to_.input("s"), to_.input("g")};
    for (auto [pass, of] : {std::pair{this, &kept}, {&second, &second_kept}})
      for (const PointerArgument& pointer :
           {to_.input(pass->pass_.written), pass->pass_.initial, of->final_state,
            of->operands ? pass->state_operands() : PointerArgument{},
            of->plain ? pass->state_plain() : PointerArgument{}})
        arguments.emplace_back(pointer);
    const int64_t blocks = layout_.scan_blocks(columns), more = second.layout_.scan_blocks(columns);
    arguments.emplace_back(sequences_);
    for (const int64_t size : {blocks, more, case_.sizes.H, case_.sizes.K, case_.sizes.V,
                               second.case_.sizes.V, is_vector(), second.is_vector()})
      arguments.emplace_back(static_cast<int32_t>(size));
    to_.add(false, fmt::format("gsa_chunk_states_{}", columns), std::max(blocks, more), std::move(arguments),
            layout_.state_shared(columns), 2);
  }
  /// Leaves p, and o of `second` where asked for.
  void weights(const PointerArgument& p, ChunkPass& second, const PointerArgument& o) {
    const bool all = has_all_slots(case_), outputs = all && !o.buffer.empty();
    const PointerArgument y = all ? PointerArgument{} : to_.slots("y");
    std::vector<Argument> arguments{to_.input("s"), to_.input(pass_.written), to_.input("g"),
                                    to_.input(pass_.cotangent), state_plain()};
    for (const PointerArgument& pointer :
         {y, p, outputs ? to_.input(second.pass_.written) : PointerArgument{},
          outputs ? second.state_operands() : PointerArgument{}, outputs ? o : PointerArgument{}, chunks_})
      arguments.emplace_back(pointer);
    arguments.emplace_back(pass_.scale);
    for (const int64_t size :
         {case_.sizes.H, case_.sizes.K, case_.sizes.V, is_vector(), second.case_.sizes.V, second.is_vector()})
      arguments.emplace_back(static_cast<int32_t>(size));
    const int shared = layout_.keys_layout().bytes_with_slots;
    to_.add(false, "gsa_chunk_readout", to_.chunks() * layout_.key_blocks(), std::move(arguments),
            outputs ? std::max(shared, second.layout_.output_shared()) : shared);
    if (!all) to_.softmax(y, p);
    if (!all && !o.buffer.empty()) second.outputs(o);
  }
  void outputs(const PointerArgument& o) {
    add(false, "gsa_chunk_output", to_.chunks(), layout_.output_shared(),
        {weights(), to_.input("s"), to_.input(pass_.written), to_.input("g"), state_operands(), o, chunks_,
         pass_.scale});
  }
  /// The adjoint of the states, and side by side what does not need it: dq of the same pass and dv of
  /// `second` where they are asked for.
  void adjoints(const PointerArgument& dinitial_state) { adjoints(dinitial_state, {}, *this, {}); }
  void adjoints(const PointerArgument& dinitial_state, const PointerArgument& dq, ChunkPass& second,
                const PointerArgument& dv) {
    const bool outputs = !dq.buffer.empty() && to_.chunks() > 0,
               small = outputs && !channel::output_suffix(case_).empty() &&
                       !channel::output_suffix(second.case_).empty();
    const int64_t scans = layout_.scan_blocks(columns_), chunks = outputs ? to_.chunks() : 0;
    const int scan_shared = layout_.state_shared(columns_, weight_bytes(case_), small ? 4 : 3),
              output_shared = std::max(layout_.output_shared(), second.layout_.output_shared());
    std::vector<Argument> arguments{weights(),
                                    to_.input(pass_.cotangent),
                                    to_.input("g"),
                                    pass_.dfinal,
                                    dinitial_state,
                                    adjoint_operands(),
                                    adjoint_plain(),
                                    sequences_,
                                    pass_.scale,
                                    to_.input("s"),
                                    to_.input(pass_.written)};
    for (const PointerArgument& pointer :
         {outputs ? state_operands() : PointerArgument{}, dq, second.weights(),
          to_.input(second.pass_.cotangent), second.adjoint_operands(), dv,
          outputs ? chunks_ : PointerArgument{}})
      arguments.emplace_back(pointer);
    for (const int64_t size : {scans, chunks, case_.sizes.H, case_.sizes.K, case_.sizes.V, is_vector(),
                               int64_t{pass_.turned}, second.case_.sizes.V, second.is_vector()})
      arguments.emplace_back(static_cast<int32_t>(size));
    to_.add(true, fmt::format("gsa_chunk_adjoints_{}{}", columns_, small ? "_64" : ""), scans + 2 * chunks,
            std::move(arguments), outputs ? std::max(scan_shared, output_shared) : scan_shared);
  }
  void values(const PointerArgument& written) {
    add(true, "gsa_chunk_values" + channel::output_suffix(case_), to_.chunks(), layout_.output_shared(),
        {weights(), to_.input("s"), to_.input("g"), to_.input(pass_.cotangent), adjoint_operands(), written,
         chunks_, pass_.scale});
  }
  /// Of the second pass: dy of the weights p, and halves of ds and dg.
  void key_halves(const PointerArgument& dy) {
    const PointerArgument dp = has_all_slots(case_) ? PointerArgument{} : to_.slots("dp");
    keys("gsa_chunk_second_keys", {dp, dy, halves()},
         layout_.keys_layout(weight_bytes(case_)).bytes_with_slots);
    if (!has_all_slots(case_)) to_.softmax_gradient(weights(), dp, dy);
  }
  /// Of the first pass: ds and dg, with the halves of the second.
  void key_sums() {
    keys("gsa_chunk_first_keys", {halves(), to_.ds(), to_.dg()}, layout_.keys_shared(weight_bytes(case_)));
    to_.own_gradients();
  }

 private:
  int64_t is_vector() const { return case_.sizes.K % 8 == 0 && case_.sizes.V % 8 == 0; }
  void keys(const char* function, std::initializer_list<PointerArgument> gradients, uint32_t shared_bytes) {
    std::vector<Argument> arguments{
        weights(),     to_.input("s"), to_.input(pass_.written), to_.input("g"), to_.input(pass_.cotangent),
        state_plain(), adjoint_plain()};
    arguments.insert(arguments.end(), gradients.begin(), gradients.end());
    arguments.insert(arguments.end(), {chunks_, pass_.scale});
    add(true, function, to_.chunks() * layout_.key_blocks(), shared_bytes, std::move(arguments),
        layout_.key_threads(false));
  }
  /// Of 64 tokens and slots, two numbers each.
  PointerArgument halves() {
    return to_.workspace("halves", to_.chunks() * layout_.key_blocks() *
                                       (2 * 4 * channel::chunk_tokens * channel::block_channels));
  }
  PointerArgument weights() { return to_.slots(pass_.weights, weight_bytes(case_)); }
  PointerArgument state_operands() { return blocks("_operands", layout_.operand_bytes()); }
  PointerArgument state_plain() { return blocks("_plain", layout_.plain_bytes()); }
  PointerArgument adjoint_operands() { return blocks("_adjoint_operands", layout_.operand_bytes()); }
  PointerArgument adjoint_plain() { return blocks("_adjoint_plain", layout_.plain_bytes()); }
  PointerArgument blocks(const char* suffix, int64_t bytes) {
    return to_.workspace(pass_.name + suffix, to_.chunks() * bytes);
  }
  void add(bool backward, const std::string& function, int64_t blocks, uint32_t shared_bytes,
           std::vector<Argument> arguments, uint32_t threads = gsa::threads) {
    const Sizes& s = case_.sizes;
    for (const int64_t size : {s.H, s.K, s.V, is_vector()}) arguments.push_back(static_cast<int32_t>(size));
    to_.add(backward, function, blocks, std::move(arguments), shared_bytes, 1, threads);
  }

  SlotLaunches& to_;
  SlotPass pass_;
  ResolvedCase case_;
  channel::CaseLayout layout_;
  int columns_;
  const PointerArgument sequences_{"sequences", 0}, chunks_{"chunks", 0};
};

Program gsa_chunk_plan(const ResolvedCase& c, const TensorMap& inputs) {
  Program plan = gsa::empty_plan("gsa.chunk", c);
  SlotLaunches to(plan, c, inputs, "chunk");
  const bool forward = c.forward(), backward = c.backward();
  const SlotPass first = to.first_pass(true), second = to.second_pass();
  const ResolvedCase& passes = to.passes();
  ChunkPass keys(to, first, passes), values(to, second, passes);
  keys.states({to.output("hkt"), backward, true}, values, {to.output("hvt"), forward, backward});
  keys.weights(to.slots("p", weight_bytes(passes)), values, forward ? to.output("o") : PointerArgument{});
  if (!backward) return to.finish(), plan;

  values.adjoints(to.output("dhv0"));
  values.key_halves(to.slots("dy", weight_bytes(passes)));
  keys.adjoints(to.output("dhk0"), to.output("dq"), values, to.output("dv"));
  keys.values(to.output("dk"));
  keys.key_sums();
  to.finish();
  return plan;
}

/// What a weight of a pass loses when it becomes an operand: stored as bf16 nothing, and fp32's split is part
/// of every product already.
double weight_error(const ResolvedCase& c) {
  return c.dtype == Dtype::fp16 ? gated::operand_error(c.dtype, 1) : 0;
}
double weight_roundoff(const ResolvedCase& c) {
  return c.dtype == Dtype::bf16 ? unit_roundoff(c.dtype) : 0;
}

/// The second pass is gla.chunk over M key channels (gla/chunk_plan.cpp); p's becoming an operand is beside
/// what decays add. The first pass is what gla.chunk does for a gradient of queries
/// (gla/chunk_backward_plan.cpp), with K value channels.
Arithmetic gsa_chunk_arithmetic(const ResolvedCase& asked) {
  using namespace gated;
  const ResolvedCase c = gsa::of_passes(asked);
  Arithmetic a = gla::chunk_arithmetic(of_pass(c, c.sizes.V));
  const Arithmetic logits = gla::chunk_adjoint_arithmetic(of_pass(c, c.sizes.K)).state;
  a.readout = compounded({a.readout, weight_error(c)});
  a.truncated = a.single = 0;  // a softmax is no rounding
  a.logits = compounded({logits.readout, logits.readout_decayed});
  a.divide = gsa::softmax_error(weight_roundoff(c));
  a.logits_per_nat = gsa::softmax_error_per_nat();
  return gsa::with_own_decays(a, asked);
}

/// As gla.chunk's gradients over M key channels and at most max(K, V) value channels. dq is made as o is; ds
/// and dg have one addition more, as their halves come from the two passes; dk, like dv, is what there is a
/// gradient of values. `inner`: dp is made as a gradient of queries; p . dp takes at most 9 roundings,
/// dp - p . dp one; dy one and its storing. Through own decays (own_decays.cu) a
/// gradient goes by three operations beside the 4 u of an e^g, two after the sum.
AdjointArithmetic gsa_chunk_adjoint_arithmetic(const ResolvedCase& asked) {
  using namespace gated;
  const ResolvedCase c = gsa::of_passes(asked);
  AdjointArithmetic a = gla::chunk_adjoint_arithmetic(of_pass(c, std::max(c.sizes.K, c.sizes.V)));
  const Arithmetic forward = gsa_chunk_arithmetic(c);
  for (Arithmetic* side : {&a.state, &a.adjoint}) side->truncated = side->single = 0;
  a.inner = std::max(compounded({a.state.readout, a.state.readout_decayed, gamma(9)}),
                     compounded({weight_roundoff(c), gamma(1)}));
  a.adjoint.write = compounded({a.adjoint.write, weight_error(c)});
  a.adjoint.readout = std::max(compounded({a.adjoint.readout, gamma(1)}), a.value_readout);
  a.adjoint.readout_decayed = std::max(a.adjoint.readout_decayed, a.value_readout_decayed);
  a.gate_readout = compounded({a.gate_readout, weight_error(c), gamma(1)});
  a.adjoint.readout_scaled = a.value_readout_scaled;
  a.state.readout = forward.readout, a.state.readout_decayed = forward.readout_decayed;
  a.state.readout_scaled = forward.readout_scaled;
  a.state.logits = forward.logits, a.state.divide = forward.divide;
  a.state.logits_per_nat = forward.logits_per_nat;
  a.state = gsa::with_own_decays(a.state, asked);
  return a;
}

}  // namespace

Kernel gsa_chunk() {
  Kernel kernel;
  kernel.name = "gsa.chunk";
  kernel.operator_name = "gsa";
  kernel.summary = "both passes as gla.chunk's, the first one transposed; softmax between them";
  kernel.arithmetic_text =
      "as gla.chunk; logits and softmax fp32, weights p and dy bf16 for bf16, else fp32; gradients of s and "
      "g "
      "summed in fp32";
  kernel.limits = gsa::limits();
  kernel.resume_granularity = gsa::chunk_tokens;
  kernel.exponents_nonpositive = true;
  kernel.plan = gsa_chunk_plan;
  kernel.arithmetic = gsa_chunk_arithmetic;
  kernel.adjoint_arithmetic = gsa_chunk_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
