// Speed of every kernel, or of those named as arguments, on a GPU, next to the least that memory traffic
// allows; at three shapes, or those given as B,T,H,D.
//   time   median of 200 repeats of all launches of a forward pass, of the gradients, or of both, workspaces
//          preallocated, L2 not flushed
//   floor  every input and output moved once at 4.3 TB/s, the copy bandwidth of
//          an H200
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

#include "kernels/kernel.h"
#include "src/base/backend/backend.h"

namespace assay {
namespace {

constexpr int kRepeats = 200, kWarmups = 20;
constexpr double kBytesPerSecond = 4.3e12;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Values of a short case, repeated: drawing all of them would take longer than everything else.
TensorMap repeated_inputs(const Case& c, const Operator& op) {
  Case small = c;
  small.B = 1, small.T = 64, small.H = 1;
  const TensorMap drawn = draw_inputs(small, op);
  TensorMap inputs;
  for (const auto& [name, tile] : drawn) {
    std::vector<Axis> axes = tile.axes;
    for (Axis& axis : axes) axis.size = sizes_of(c).of(axis.name);
    Tensor tensor(name, tile.dtype, axes);
    for (size_t at = 0; at < tensor.data.size(); at += tile.data.size())
      std::copy_n(tile.data.begin(), std::min(tile.data.size(), tensor.data.size() - at),
                  tensor.data.begin() + at);
    inputs.emplace(name, std::move(tensor));
  }
  return inputs;
}

using Shape = std::array<int64_t, 4>;  ///< B, T, H, D

void print_speed(Backend& gpu, const char* kernel_name, Direction direction, const Shape& shape) {
  const auto [B, T, H, D] = shape;
  const Kernel& kernel = find_kernel(kernel_name);
  const Operator& op = find_operator(kernel.operator_name);
  Case c;
  c.kernel = kernel_name;
  c.B = B, c.T = T, c.H = H, c.K = D, c.V = D;
  for (const ArgumentSpec& input : op.inputs)
    if (std::count(input.axes.begin(), input.axes.end(), "M") > 0) c.M = 64;
  c.dtype = c.gate_dtype = Dtype::bf16;
  c.direction = direction;
  const TensorMap inputs = repeated_inputs(c, op);
  const Program plan = kernel.plan(resolve_unchecked(c, op), inputs);
  double bytes = 0;
  for (const auto& [name, tensor] : inputs) bytes += static_cast<double>(tensor.bytes());
  for (const ProgramOutput& output : plan.outputs)
    bytes += static_cast<double>(Tensor(output.name, output.dtype, output.axes).bytes());
  const double seconds = median(gpu.time(plan, inputs, kRepeats, kWarmups)), floor = bytes / kBytesPerSecond;
  fmt::print("{:<28} {:<8} {:>2},{:>5},{:>3},{:>4}   {:>8.4f} ms   {:>8.4f} ms   {:>7.2f}\n", kernel_name,
             name_of(direction), B, T, H, D, seconds * 1e3, floor * 1e3, seconds / floor);
  std::fflush(stdout);
}

/// Each thread copies 16 bytes.
const char* kCopyPtx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.s64 %rd3, %rd3, %rd4;
  shl.b64 %rd3, %rd3, 4;
  add.s64 %rd1, %rd1, %rd3;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1];
  st.global.v4.u32 [%rd2], {%r4, %r5, %r6, %r7};
  ret;
}
)";

/// Bytes per second of a copy of 2 GiB, reads and writes counted.
double copy_bandwidth(Backend& gpu) {
  constexpr int64_t kBytes = int64_t{2} << 30;
  Program plan;
  plan.name = "copy";
  plan.modules = {{"copy", "copy.ptx", std::make_shared<const std::string>(kCopyPtx)}};
  plan.workspaces = {{"from", kBytes}, {"to", kBytes}};
  plan.launches = {{.module = "copy",
                    .function = "copy",
                    .grid = {kBytes / 16 / 512, 1, 1},
                    .block = {512, 1, 1},
                    .arguments = {PointerArgument{"from"}, PointerArgument{"to"}}}};
  return 2.0 * kBytes / median(gpu.time(plan, {}, 20, 3));
}

/// `names`: kernels to time; empty: all of them.
int print_all(const std::vector<std::string>& names, const std::vector<Shape>& shapes) {
  const auto gpu = make_cuda_backend({});
  fmt::print("{}, copies {:.2f} TB/s\n\n", describe_gpu(), copy_bandwidth(*gpu) * 1e-12);
  fmt::print("bf16, gate bf16             direction   B,T,H,D   median of {}         floor     ratio\n",
             kRepeats);
  for (const Kernel& kernel : kernels()) {
    if (!names.empty() && std::count(names.begin(), names.end(), kernel.name) == 0) continue;
    for (const Direction direction : directions_of(kernel))
      for (const Shape& shape : shapes) print_speed(*gpu, kernel.name.c_str(), direction, shape);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) try {
  std::vector<std::string> names;
  std::vector<assay::Shape> shapes;
  for (int i = 1; i < count; ++i) {
    long B = 0, T = 0, H = 0, D = 0;
    if (std::sscanf(arguments[i], "%ld,%ld,%ld,%ld", &B, &T, &H, &D) == 4)
      shapes.push_back({B, T, H, D});
    else
      names.emplace_back(arguments[i]);
  }
  if (shapes.empty()) shapes = {{4, 4096, 16, 64}, {4, 2048, 16, 128}, {1, 8192, 96, 128}};
  return assay::print_all(names, shapes);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
