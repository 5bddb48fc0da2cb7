#include "reference/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "reference/parallel.h"
#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

/// fp16 is looked up: its decoding branches.
const std::array<double, 65536>& fp16_values() {
  static const auto table = [] {
    std::array<double, 65536> values;
    for (uint32_t bits = 0; bits < 65536; ++bits) values[bits] = decode(Dtype::fp16, bits);
    return values;
  }();
  return table;
}

}  // namespace

ReferenceOutput output_of_zeros(std::string name, std::vector<Axis> axes, int threads) {
  ReferenceOutput out;
  out.name = std::move(name);
  size_t size = 1;
  for (const Axis& axis : axes) size *= static_cast<size_t>(axis.size);
  out.axes = std::move(axes);
  std::vector<double>* const fields[] = {&out.mid, &out.rad, &out.bound, &out.companion, &out.underflow};
  for (std::vector<double>* field : fields) field->reserve(size);
  constexpr size_t kMany = size_t{1} << 18;  // whose pages take longer than a thread to begin
  parallel_for(std::ssize(fields), size < kMany ? 1 : threads,
               [&](int64_t i) { fields[i]->assign(size, 0); });
  return out;
}

std::vector<Slice> slices_of(const Problem& p) {
  return slices_of(p, p.sizes.H);
}

std::vector<Slice> slices_of(const Problem& p, int64_t heads) {
  std::vector<Slice> slices;
  const bool packed = !p.cu_seqlens.empty();
  const int64_t sequences = packed ? static_cast<int64_t>(p.cu_seqlens.size()) - 1 : p.sizes.B;
  if (packed && (p.sizes.B != 1 || p.cu_seqlens.front() != 0 || p.cu_seqlens.back() != p.sizes.T ||
                 !std::is_sorted(p.cu_seqlens.begin(), p.cu_seqlens.end())))
    throw BadInput(fmt::format("cu_seqlens: expected offsets that rise from 0 to T={} with B=1", p.sizes.T));
  for (int64_t n = 0; n < sequences; ++n) {
    const int64_t first = packed ? p.cu_seqlens[static_cast<size_t>(n)] : n * p.sizes.T;
    const int64_t tokens = packed ? p.cu_seqlens[static_cast<size_t>(n) + 1] - first : p.sizes.T;
    for (int64_t h = 0; h < heads; ++h) slices.push_back({n, h, first, tokens});
  }
  return slices;
}

const Tensor* find_input(const Problem& p, std::string_view name, int64_t expected) {
  const auto found = p.inputs->find(std::string(name));
  if (found == p.inputs->end()) return nullptr;
  if (found->second.size() != expected)
    throw BadInput(fmt::format("{}: expected {} elements, got {} {}", name, expected, found->second.size(),
                               found->second.shape_text()));
  return &found->second;
}

const Tensor& require_input(const Problem& p, std::string_view name, int64_t expected) {
  const Tensor* tensor = find_input(p, name, expected);
  if (!tensor) throw BadInput(fmt::format("{}: this input is required", name));
  return *tensor;
}

void decode_run(const Tensor& tensor, int64_t first, int64_t count, double* out) {
  switch (tensor.dtype) {
    case Dtype::fp32:
    case Dtype::tf32: {
      const float* in = tensor.as<float>().data() + first;
      std::copy(in, in + count, out);
      return;
    }
    case Dtype::bf16: {
      const uint16_t* in = tensor.as<uint16_t>().data() + first;
      for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(static_cast<uint32_t>(in[i]) << 16);
      return;
    }
    case Dtype::fp16: {
      const uint16_t* in = tensor.as<uint16_t>().data() + first;
      const auto& values = fp16_values();
      for (int64_t i = 0; i < count; ++i) out[i] = values[in[i]];
      return;
    }
    default:
      for (int64_t i = 0; i < count; ++i) out[i] = tensor.value(first + i);
  }
}

void decode_rows(const Tensor& tensor, int64_t first_row, int64_t rows, int64_t heads, int64_t head,
                 int64_t width, double* out) {
  for (int64_t r = 0; r < rows; ++r)
    decode_run(tensor, ((first_row + r) * heads + head) * width, width, out + r * width);
}

}  // namespace assay
