// Every lane function gives the same bits in every instruction set of the host that it was compiled for.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

using CellBits = std::array<uint64_t, 32>;  // room for the widest cell

/// Words at the edges of every format, else random ones, half of them with near exponents.
uint32_t draw_word(std::mt19937& random) {
  static constexpr uint32_t edges[] = {0,          1,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                       0xff800000, 0x7f7fffff, 0x00800000, 0x007fffff, 0x7fc00000, 0xffffffff,
                                       0x33800000, 0x00003c00, 0x7c00fc00, 0x7f80ff80, 0x0001fbff};
  if (random() % 4 == 0) return edges[random() % std::size(edges)];
  const uint32_t word = random();
  return random() % 2 ? word : (word & 0x83ffffffu) | 0x3c000000u;
}

void draw_cell(std::mt19937& random, CellBits& cell) {
  for (uint64_t& bits : cell) bits = uint64_t{draw_word(random)} << 32 | draw_word(random);
}

/// The result as the bytes of its cell.
std::string result_of(const Row& row, const std::array<CellBits, 4>& sources) {
  CellBits d{};
  const auto source = [&](size_t i) {
    return row.sources[i] == ptx::Type::none ? nullptr : sources[i].data();
  };
  if (row.mask)
    d[0] = row.mask(source(0), source(1));
  else
    row.lanes(d.data(), source(0), source(1), source(2), source(3));
  const size_t bytes = cell_of(row.result) == Cell::wide ? 256 : cell_of(row.result) == Cell::word ? 128 : 4;
  return {reinterpret_cast<const char*>(d.data()), bytes};
}

TEST(LaneSets, AgreeOnEveryBit) {
  const std::vector<Row> portable = lane_rows("portable");
  const uint32_t seed = 20240607;
  RecordProperty("seed", static_cast<int>(seed));
  for (const std::string& set : lane_sets()) {
    const std::vector<Row> others = lane_rows(set);
    ASSERT_EQ(others.size(), portable.size());
    std::mt19937 random(seed);
    for (size_t i = 0; i < portable.size(); ++i) {
      ASSERT_EQ(others[i].pattern, portable[i].pattern);
      for (int round = 0; round < 40; ++round) {
        std::array<CellBits, 4> sources;
        for (CellBits& cell : sources) draw_cell(random, cell);
        ASSERT_TRUE(result_of(portable[i], sources) == result_of(others[i], sources))
            << portable[i].pattern << " in " << set << ", seed " << seed << ", round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace assay::vm
