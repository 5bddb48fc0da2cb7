#include "tests/ptx/corpus_programs.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string_view>

#include "tests/ptx/corpus/all.cu"

namespace assay::corpus {
namespace {

bool is_single(const Listed& program) {
  return std::string_view(program.name).ends_with("_f32");
}

/// Any bits; half of the words have parts that are near in exponent or at the edges of a format.
unsigned long long draw_bits(std::mt19937_64& random) {
  static constexpr uint32_t edges[] = {0,          1,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                       0xff800000, 0x7f7fffff, 0x00800000, 0x007fffff, 0x7fc00000, 0xffffffff,
                                       0x33800000, 0x00003c00, 0x7c00fc00, 0x7f80ff80, 0x0001fbff};
  auto part = [&]() -> uint32_t {
    const auto word = static_cast<uint32_t>(random());
    switch (random() % 8) {
      case 0:
        return edges[random() % std::size(edges)];
      case 1:
      case 2:
      case 3:
        return (word & 0x83ffffffu) | 0x3c000000u;
      default:
        return word;
    }
  };
  const uint32_t high = part();
  return static_cast<unsigned long long>(high) << 32 | part();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

const std::vector<Variant>& variants() {
  static const std::vector<Variant> made = [] {
    std::vector<Variant> result;
    for (const char* name : {"O3", "O3_fast_math", "O0_G", "O0_G_fast_math"})
      result.push_back({name, std::string_view(name).ends_with("fast_math"),
                        std::make_shared<const std::string>(
                            text_of(std::string(ASSAY_CORPUS_DIR) + "/corpus_" + name + ".ptx"))});
    return result;
  }();
  return made;
}

const std::vector<Listed>& all_programs() {
  return programs();
}

Inputs inputs_of(const Listed& program) {
  std::mt19937_64 random(20240711);
  Inputs made;
  for (auto* words : {&made.a, &made.b, &made.c})
    for (uint32_t i = 0; i < total_threads; ++i) {
      if (program.low == 0 && program.high == 0) {
        words->push_back(draw_bits(random));
        continue;
      }
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      const double value = program.low + (program.high - program.low) * part;
      words->push_back(is_single(program) ? std::bit_cast<uint32_t>(static_cast<float>(value))
                                          : std::bit_cast<unsigned long long>(value));
    }
  return made;
}

Program plan_of(const std::string& entry, std::shared_ptr<const std::string> text, const Inputs& inputs,
                TensorMap& tensors) {
  Program plan;
  plan.name = "corpus";
  plan.modules.push_back({"m", entry + ".ptx", std::move(text)});
  Launch launch;
  launch.module = "m";
  launch.function = entry;
  launch.grid = {total_threads / block_threads, 1, 1};
  launch.block = {block_threads, 1, 1};
  const std::pair<const char*, const std::vector<unsigned long long>*> buffers[] = {
      {"a", &inputs.a}, {"b", &inputs.b}, {"c", &inputs.c}};
  for (const auto& [name, words] : buffers) {
    Tensor tensor(name, Dtype::i64, {{"T", int64_t{total_threads}}});
    for (size_t i = 0; i < words->size(); ++i) tensor.set_bits(static_cast<int64_t>(i), (*words)[i]);
    tensors[name] = std::move(tensor);
    launch.arguments.push_back(PointerArgument{name, 0});
  }
  plan.outputs.push_back({"d", Dtype::i64, {{"T", int64_t{total_threads}}}});
  launch.arguments.push_back(PointerArgument{"d", 0});
  plan.launches.push_back(std::move(launch));
  return plan;
}

std::vector<unsigned long long> expected_words(const Listed& program, const Inputs& inputs) {
  in = inputs;
  std::vector<unsigned long long> result;
  for (uint32_t t = 0; t < total_threads; ++t)
    result.push_back(program.result(t, inputs.a[t], inputs.b[t], inputs.c[t]));
  return result;
}

double ulps_between(const Listed& program, unsigned long long got, unsigned long long expected) {
  auto distance = [](auto x, auto y, auto unit) {
    if (x == y || (x != x && y != y)) return 0.0;
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    return static_cast<double>(std::fabs(x - y) / unit);
  };
  if (is_single(program)) {
    const double y = f32(expected);
    return distance(static_cast<double>(f32(got)), y,
                    std::ldexp(1.0, std::max(y == 0 ? -126 : std::ilogb(y), -126) - 23));
  }
  const double y = f64(expected);
  return distance(static_cast<long double>(f64(got)), static_cast<long double>(y),
                  std::ldexp(1.0L, std::max(y == 0 ? -1022 : std::ilogb(y), -1022) - 52));
}

}  // namespace assay::corpus
