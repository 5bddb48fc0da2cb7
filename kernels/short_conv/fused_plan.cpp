// The plan of short_conv.fused and the arithmetic it declares.
#include <fmt/format.h>

#include "kernels/device/product_arithmetic.h"
#include "kernels/device/tile_layout.h"
#include "kernels/kernel.h"
#include "kernels/launch_tables.h"
#include "kernels/module_text.h"
#include "kernels/rwkv6/bonus_total_layout.h"
#include "kernels/short_conv/fused_layout.h"

namespace assay {
namespace {

using namespace gated;

using rwkv6::bonus_elements, rwkv6::bonus_parts;

KernelLimits short_conv_limits() {
  KernelLimits limits;
  limits.dtypes = limits.gate_dtypes = {Dtype::bf16, Dtype::fp16, Dtype::fp32};
  limits.max_K = 64;
  limits.max_V = 1 << 16;
  return limits;
}

/// "chunk_places" [chunks, 4]: first token of the chunk's sequence, that sequence's tokens and number, the
/// chunk's first token counted from there.
Tensor places_of(const Sequences& sequences) {
  Tensor table("chunk_places", Dtype::i64, {{"chunk", sequences.chunks}, {"field", 4}});
  for (int64_t n = 0, row = 0; n < sequences.count; ++n) {
    const auto given = sequences.table.as<int64_t>();
    const int64_t first = given[3 * n], tokens = given[3 * n + 1];
    for (int64_t begin = 0; begin < tokens; begin += short_conv::chunk_tokens, ++row) {
      const int64_t fields[] = {first, tokens, n, begin};
      for (int64_t i = 0; i < 4; ++i) table.as<int64_t>()[4 * row + i] = fields[i];
    }
  }
  return table;
}

class Convolution {
 public:
  Convolution(const ResolvedCase& c, const TensorMap& inputs)
      : s_(c.sizes), inputs_(inputs), sequences_(sequences_of(c, short_conv::chunk_tokens)) {
    plan_.name = "short_conv.fused";
    require_within(short_conv_limits(), c, plan_.name);
    plan_.outputs = plan_outputs(c);
    plan_.modules = {kernel_module(fmt::format("short_conv/fused.{}.none", format(c.dtype).name))};
    plan_.constants = {sequences_.table};
    if (sequences_.chunks > 0) plan_.constants.push_back(places_of(sequences_));
  }
  void forward() {
    launch("outputs", sequences_.chunks,
           {tokens("x"), weight_, input("initial_state"), tokens("o"), chunks_});
    launch("final_state", s_.N, {tokens("x"), input("initial_state"), output("final_state"), table_});
  }
  void backward() {
    const PointerArgument sums = workspace_of(plan_, "sums", sequences_.chunks * s_.V * s_.K * 4);
    launch("gradients", sequences_.chunks,
           {tokens("x"), weight_, input("initial_state"), tokens("do"), input("dfinal_state"), tokens("dx"),
            sums, chunks_});
    if (inputs_.count("initial_state"))
      launch("state_gradients", s_.N,
             {weight_, tokens("do"), input("dfinal_state"), output("dinitial_state"), table_});
    add("total", device::blocks_of(s_.V * s_.K, bonus_elements),
        {sums, output("dweight"), sequences_.chunks});
  }
  Program made() { return std::move(plan_); }

 private:
  /// Null where there is no token.
  PointerArgument tokens(const char* name) const {
    return s_.T > 0 ? PointerArgument{name, 0} : PointerArgument{};
  }
  PointerArgument input(const char* name) const { return input_or_null(inputs_, name); }
  PointerArgument output(const char* name) const { return output_or_null(plan_, name); }
  void launch(const char* function, int64_t parts_of_grid, std::vector<Argument> arguments) {
    add(function, parts_of_grid * device::blocks_of(s_.V, short_conv::threads), std::move(arguments));
  }
  void add(const char* function, int64_t blocks, std::vector<Argument> arguments) {
    if (blocks == 0) return;
    for (const int64_t size : {s_.V, s_.K}) arguments.emplace_back(static_cast<int32_t>(size));
    plan_.launches.push_back({.module = plan_.modules.front().name,
                              .function = fmt::format("short_conv_{}", function),
                              .grid = grid_of(blocks, plan_.name),
                              .block = {static_cast<uint32_t>(short_conv::threads), 1, 1},
                              .arguments = std::move(arguments)});
  }

  const Sizes s_;
  const TensorMap& inputs_;
  const Sequences sequences_;
  const PointerArgument weight_{"weight", 0}, table_{"sequences", 0}, chunks_{"chunk_places", 0};
  Program plan_;
};

Program short_conv_plan(const ResolvedCase& c, const TensorMap& inputs) {
  Convolution made(c, inputs);
  if (c.forward()) made.forward();
  if (c.backward()) made.backward();
  return made.made();
}

/// K fused additions from 0: each term meets at most K roundings. Products of the smallest operands lose half
/// of the smallest subnormal, nothing is flushed.
Arithmetic sum_arithmetic(const ResolvedCase& c) {
  Arithmetic a;
  a.readout = gamma(static_cast<double>(c.sizes.K));
  a.underflow = 0x1p-150;
  return a;
}

Arithmetic short_conv_arithmetic(const ResolvedCase& c) {
  Arithmetic a = sum_arithmetic(c);
  a.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

/// dx and dS_0: at most K fused additions to dS_T or 0. dweight: 64 of a chunk, then a thread adds every 16th
/// chunk, and four halvings follow.
AdjointArithmetic short_conv_adjoint_arithmetic(const ResolvedCase& c) {
  const int64_t chunks = sequences_of(c, short_conv::chunk_tokens).chunks;
  AdjointArithmetic a;
  a.adjoint = sum_arithmetic(c);
  a.value_readout = gamma(static_cast<double>(short_conv::chunk_tokens));
  a.total = gamma(static_cast<double>(device::blocks_of(chunks, bonus_parts)) + 4);
  a.state.output_roundoff = unit_roundoff(c.dtype);
  return a;
}

}  // namespace

Kernel short_conv_fused() {
  Kernel kernel;
  kernel.name = "short_conv.fused";
  kernel.operator_name = "short_conv";
  kernel.summary = "chunks of 64 tokens, one thread per chunk and channel";
  kernel.arithmetic_text = "fp32 throughout: one fused multiply-add per element of the window";
  kernel.limits = short_conv_limits();
  kernel.plan = short_conv_plan;
  kernel.arithmetic = short_conv_arithmetic;
  kernel.adjoint_arithmetic = short_conv_adjoint_arithmetic;
  return kernel;
}

}  // namespace assay
