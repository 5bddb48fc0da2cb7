// A kernel and the registry of kernels.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reference/operator.h"
#include "src/base/program/program.h"
#include "src/case/resolved_case.h"

namespace assay {

/// What a kernel accepts; what is outside is bad input, named before any launch.
struct KernelLimits {
  std::vector<Dtype> dtypes, gate_dtypes;
  int64_t max_K = 256, max_V = 256;
  double gate_min = -1e4, gate_max = 0;
  int64_t max_M = 128;       ///< slots, where the operator has them
  bool value_heads = false;  ///< takes more value heads than heads
  double rate_max = 2;       ///< of what a key is bound to, how much of it is replaced
};

struct Kernel {
  std::string name;           ///< "gla.chunk"
  std::string operator_name;  ///< "gla"
  std::string summary;
  std::string arithmetic_text;  ///< one line: operand formats, accumulator, where intermediates are rounded
  KernelLimits limits;
  /// A run split at a multiple of this many tokens and resumed from the state has the same bits (1:
  /// anywhere).
  int64_t resume_granularity = 1;
  /// False where the arithmetic says how large errors may be and not which roundings make them, as a plan's.
  bool declares_roundings = true;
  /// False where its inputs are made from the operator's by rounding (a plan's "formula": false): in exact
  /// arithmetic it is the operator of other inputs, which says nothing.
  bool has_formula = true;
  /// True where the kernel promises that no ex2 ever sees an argument above 0; the machine checks it in every
  /// run.
  bool exponents_nonpositive = false;
  /// Of a kernel with a defect: that promise was made for the kernel without it. It is not checked (what the
  /// defect does to the values is to be found), but says what a positive argument means.
  bool exponents_meant_nonpositive = false;
  /// The launches of the case's direction.
  std::function<Program(const ResolvedCase&, const TensorMap& inputs)> plan;
  /// A program of the plan compiled anew without optimisation (compiled_plainly); null: of what it is made is
  /// not known.
  std::function<Program(Program)> plainly;
  /// Declared arithmetic of the forward and of the backward entry points; null: it has none of that
  /// direction.
  std::function<Arithmetic(const ResolvedCase&)> arithmetic;
  std::function<AdjointArithmetic(const ResolvedCase&)> adjoint_arithmetic;
  /// Inputs that its launches read where they lie, whatever their strides. Others that are views are copied
  /// row by row before its launches (kernels/views/gather_plan.h).
  std::set<std::string> reads_views;
  /// Tensors whose rows its launches take in another order: which of the operator's axes comes first, second,
  /// ... They are copied before its launches, outputs after them.
  std::map<std::string, std::vector<size_t>> orders;
  /// So many cases in a row share their sizes and formats: more than 1 where each new shape is compiled anew.
  int64_t cases_per_shape = 1;
  /// Sizes that it takes, by the axis's letter; of an axis that is not there, all.
  std::map<std::string, std::vector<int64_t>> sizes;
  /// Properties that it does not have, and none asks for: of a program that chooses its kernels by the sizes,
  /// those that compare the bits of runs of other shapes.
  std::set<std::string> lacks;
  /// Why the kernel cannot run this case beyond what `limits` say ("takes no packed sequences"); empty: it
  /// can. Null: the limits say it all. Generators redraw such a case; verify reports it as bad input.
  std::function<std::string(const ResolvedCase&)> refuses;
};

/// The directions a kernel has entry points for.
std::vector<Direction> directions_of(const Kernel&);
/// The largest rate that a case of it is drawn with, its `rates`; of an operator without rates the default.
double largest_rate(const Kernel&);

/// The kernels of kernels.def.
const std::vector<Kernel>& kernels();
/// "gla.chunk", "gla.chunk@S1" (patched copy, compiled on demand with nvcc), or either with a mutant's
/// identity:
/// "gla.chunk%gla+chunk.bf16.fp32+1234+fma-to-mul" (mutant.h). Throws BadInput listing what there is.
const Kernel& find_kernel(std::string_view name);

}  // namespace assay
