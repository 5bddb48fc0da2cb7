// Adds launches to a plan of gated slot attention: modules and workspaces once each, and the steps that its
// modes share.
#pragma once
#include <string>
#include <vector>

#include "kernels/gsa/slots_layout.h"
#include "kernels/launch_tables.h"

namespace assay::gsa {

KernelLimits limits();

/// A plan without launches: outputs, and the tables of the case's sequences.
Program empty_plan(const std::string& kernel, const ResolvedCase&);

/// One of the two recurrences, S_t = diag(e^{g_t}) S_{t-1} + s_t c_t^T of M x channels, read out to the
/// weights w.
struct SlotPass {
  std::string name;                ///< "hk", "hv": prefix of its workspaces
  std::string written, cotangent;  ///< c and d: "k" and "q", "v" and "do"
  std::string weights;             ///< workspace w: "dy", "p"
  int64_t channels = 1;
  Argument scale = 1.0f;
  PointerArgument initial, dfinal;  ///< [N, H, M, channels] or `turned`, null: zero
  bool turned = false;              ///< states outside are [N, H, channels, M]
};

class SlotLaunches {
 public:
  /// `mode`: "chunk"; names the modules "gsa/<mode>.*" and "gsa/<mode>_backward.*". Without g what is written
  /// and how it decays are made from s first, and the passes run on fp32 copies.
  SlotLaunches(Program&, const ResolvedCase&, const TensorMap& inputs, std::string mode);

  const Sizes& sizes() const { return s_; }
  /// The case as the passes see it.
  const ResolvedCase& passes() const { return case_; }
  /// Chunks of all sequences and heads.
  int64_t chunks() const { return chunks_ * s_.H; }
  /// As its tensors lie, or by launches that turn them.
  SlotPass first_pass(bool turned);
  SlotPass second_pass();

  /// As the passes see it; the launch that makes it is added where needed.
  PointerArgument input(const std::string& name);
  PointerArgument output(const std::string& name);
  /// A workspace of this name and size, made where it is not there yet; null where it is empty.
  PointerArgument workspace(const std::string& name, int64_t bytes) {
    return gated::workspace_of(plan_, name, bytes);
  }
  /// One number per token and slot.
  PointerArgument slots(const std::string& name, int64_t bytes_each = 4) {
    return workspace(name, rows() * s_.M * bytes_each);
  }
  /// A launch, of `times` as many blocks (y); none where there are no blocks.
  void add(bool backward, const std::string& function, int64_t blocks, std::vector<Argument> arguments,
           uint32_t shared_bytes = 0, uint32_t times = 1, uint32_t block_threads = threads);

  /// Adds the launch that makes it: states [N, H, K, M] as [N, H, M, K]; null where `from` is null.
  PointerArgument transposed(const PointerArgument& from, const std::string& to);
  /// The reverse, to an output.
  void transpose_back(const PointerArgument& from, const PointerArgument& to);
  void softmax(const PointerArgument& y, const PointerArgument& p);
  void softmax_gradient(const PointerArgument& p, const PointerArgument& dp, const PointerArgument& dy);
  /// ds and dg from those of both passes.
  void add_gradients(const SlotPass&, const SlotPass&);
  /// Where they go, and then, without g, through the decays that were made from s.
  PointerArgument ds() { return own_ ? slots("own_dw") : output("ds"); }
  PointerArgument dg() { return own_ ? slots("own_dg") : output("dg"); }
  void own_gradients();
  /// Copies what the passes left in fp32 to the outputs.
  void finish();

 private:
  int64_t rows() const { return s_.B * s_.T * s_.H; }
  void launch(const std::string& module, const std::string& function, int64_t blocks,
              std::vector<Argument> arguments, uint32_t shared_bytes, uint32_t times = 1,
              uint32_t block_threads = threads);
  void add_own(const std::string& function, int64_t count, std::vector<Argument> arguments);
  /// True where this tensor of the case's format is fp32 for the passes alone.
  bool is_copied(const std::string& name) const;
  int64_t elements(const std::string& name) const;

  Program& plan_;
  const TensorMap& inputs_;
  const bool own_;  ///< decays are made from s
  const Dtype dtype_;
  const ResolvedCase case_;
  const std::string mode_;
  const Sizes s_;
  const Argument scale_;
  const int64_t chunks_;
  std::vector<std::string> narrowed_;  ///< outputs that finish() copies
};

/// What softmax loses of a weight, its exponent's own error apart: exponential, sum, quotient, storing.
double softmax_error(double weight_roundoff);
/// And per unit of that exponent.
double softmax_error_per_nat();
/// The fields of what own decays lose, added where the case has them.
Arithmetic with_own_decays(Arithmetic, const ResolvedCase&);
/// The case as the passes see it: in fp32 without g.
ResolvedCase of_passes(ResolvedCase);

}  // namespace assay::gsa
