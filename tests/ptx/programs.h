// What the programs of programs/ take and give: what the host computes of the same words.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace assay {

using Words = std::vector<uint32_t>;
/// A difference that is allowed at word i; the words are then numbers of single precision.
using Allowed = std::function<double(size_t i)>;

struct ListedProgram {
  const char* name;
  size_t in, out;  ///< words
  std::array<uint32_t, 3> grid, block;
  uint32_t n;
  std::function<Words(const Words& in, uint32_t n)> expected;
  std::function<Allowed(const Words& in)> allowed = nullptr;  ///< null: every bit
};

const std::vector<ListedProgram>& programs();
/// Any words; for products of halves, numbers from 1/4 to 4.
Words inputs_of(const ListedProgram&);

}  // namespace assay
