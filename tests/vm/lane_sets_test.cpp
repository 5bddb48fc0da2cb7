// Every lane function, and every step of the engine, gives the same bits in every instruction set of the
// host that it was compiled for. The portable set flushes and rounds by integers, the others by the host's
// own modes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <random>

#include "src/base/vm/instruction_row.h"
#include "src/base/vm/tensor_core_warp.h"

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

struct LaneSet {
  std::string name;
  std::vector<Row> rows;
};
/// All but the portable set, with its rows in the same order.
std::vector<LaneSet> others_than(const std::vector<Row>& portable) {
  std::vector<LaneSet> others;
  for (const std::string& set : lane_sets()) {
    if (set == "portable") continue;
    others.push_back({set, lane_rows(set)});
    EXPECT_EQ(others.back().rows.size(), portable.size()) << set;
    for (size_t i = 0; i < std::min(portable.size(), others.back().rows.size()); ++i)
      EXPECT_EQ(others.back().rows[i].pattern, portable[i].pattern) << set;
  }
  return others;
}

TEST(LaneSets, AgreeOnEveryBit) {
  const std::vector<Row> portable = lane_rows("portable");
  const std::vector<LaneSet> others = others_than(portable);
  ASSERT_FALSE(HasFailure());
  const uint32_t seed = 20240607;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  for (size_t i = 0; i < portable.size(); ++i)
    for (int round = 0; round < 40; ++round) {
      std::array<CellBits, 4> sources;
      for (CellBits& cell : sources) draw_cell(random, cell);
      const std::string expected = result_of(portable[i], sources);
      for (const LaneSet& set : others)
        ASSERT_TRUE(expected == result_of(set.rows[i], sources))
            << portable[i].pattern << " in " << set.name << ", seed " << seed << ", round " << round;
    }
}

int test_scale() {
  const char* text = std::getenv("ASSAY_TEST_SCALE");
  return text ? std::max(1, std::atoi(text)) : 1;
}

/// Operands of which sums, products and fused sums lie at the edge of the subnormals, ties included:
/// significands with few bits or all of them, and exponents that add up to that of 2^-126 or nearly.
float draw_operand(std::mt19937& random, int exponent) {
  static constexpr uint32_t fractions[] = {0,        1,        0x7fffff, 0x7ffffe, 0x400000,
                                           0x3fffff, 0x400001, 0x7ff000, 0xfff};
  const auto fraction =
      static_cast<uint32_t>(random() % 2 ? fractions[random() % std::size(fractions)] : random() & 0x7fffffu);
  const auto field = static_cast<uint32_t>(std::clamp(exponent + 127, 0, 254));
  return std::bit_cast<float>(static_cast<uint32_t>(random() & 0x80000000u) | field << 23 | fraction);
}

TEST(LaneSets, RoundAndFlushAlikeAtTheEdgeOfTheSubnormals) {
  const std::vector<Row> portable = lane_rows("portable");
  const std::vector<LaneSet> others = others_than(portable);
  ASSERT_FALSE(HasFailure());
  std::mt19937 random(20261123);
  for (size_t i = 0; i < portable.size(); ++i) {
    const Row& row = portable[i];
    if (row.result != ptx::Type::f32 || row.sources[0] != ptx::Type::f32 || row.sources[1] != ptx::Type::f32)
      continue;
    for (int round = 0; round < 500 * test_scale(); ++round) {
      float a[32], b[32], c[32];
      uint32_t expected[32], got[32];
      for (int lane = 0; lane < 32; ++lane) {
        const int first = static_cast<int>(random() % 250) - 125;
        a[lane] = draw_operand(random, first);
        b[lane] = draw_operand(random, -126 - first + static_cast<int>(random() % 5) - 3);
        if (random() % 2) a[lane] = draw_operand(random, -126), b[lane] = draw_operand(random, -127);
        c[lane] = draw_operand(random, -128 + static_cast<int>(random() % 4));
      }
      row.lanes(expected, a, b, c, c);
      for (const LaneSet& set : others) {
        set.rows[i].lanes(got, a, b, c, c);
        for (int lane = 0; lane < 32; ++lane)
          ASSERT_EQ(expected[lane], got[lane]) << row.pattern << " in " << set.name << " of " << std::hexfloat
                                               << a[lane] << ", " << b[lane] << ", " << c[lane];
      }
    }
  }
}

/// 32 addresses, or what they are added up from, of every kind that an access may have.
void draw_addresses(std::mt19937& random, uint64_t base, uint64_t bytes, uint64_t* address) {
  const auto kind = static_cast<uint32_t>(random() % 4);
  const uint64_t start = base + random() % 512 * (random() % 8 ? bytes : 1);
  for (uint64_t lane = 0; lane < 32; ++lane)
    address[lane] = kind == 0 ? start : kind == 1 ? start + lane * bytes : base + random() % 512 * bytes;
  if (kind == 3) address[random() % 32] += random() % 2 ? 1 : uint64_t{1} << (random() % 64);
}

TEST(LaneSets, PlaceLanesAlike) {
  std::mt19937 random(7);
  std::byte data[1];
  size_t seen[4] = {};
  for (int round = 0; round < 4000; ++round) {
    const uint64_t bytes = uint64_t{1} << (random() % 5), base = uint64_t{random()} << (random() % 17);
    const uint32_t mask = random() % 2 ? ~0u : random() | 1;
    uint64_t address[32];
    draw_addresses(random, base, bytes, address);
    const Window window{base, 511 * bytes, bytes - 1, data};
    // What the words say.
    bool outside = false, one = mask == ~0u, in_row = mask == ~0u;
    for (uint64_t lane = 0; lane < 32; ++lane) {
      const bool active = (mask >> lane) & 1;
      outside |= active && (address[lane] - base > window.last || address[lane] % bytes != 0);
      one &= address[lane] == address[0];
      in_row &= address[lane] == address[0] + lane * bytes;
    }
    const Places expected = outside  ? Places::outside
                            : one    ? Places::one
                            : in_row ? Places::in_row
                                     : Places::apart;
    ++seen[static_cast<size_t>(expected)];
    for (const std::string& set : lane_sets()) {
      std::byte* host[32];
      ASSERT_EQ(lane_kit(set).place_lanes(host, address, mask, window), expected)
          << set << ", round " << round;
      for (int lane = 0; lane < 32 && !outside; ++lane)
        if ((mask >> lane) & 1) {
          ASSERT_EQ(host[lane] - data, static_cast<std::ptrdiff_t>(address[lane] - base)) << set;
        }
    }
  }
  for (const size_t count : seen) EXPECT_GT(count, 100u);
}

TEST(LaneSets, FindWindowsShufflesAndArgumentsAlike) {
  std::mt19937 random(11);
  const LaneKit portable = lane_kit("portable");
  for (const std::string& set : lane_sets()) {
    const LaneKit kit = lane_kit(set);
    for (int round = 0; round < 2000; ++round) {
      uint32_t b[32], c[32], x[32], from[2][32];
      uint64_t address[2][32];
      for (int lane = 0; lane < 32; ++lane) {
        b[lane] = random() % 40, c[lane] = random() & 0x1f1fu, x[lane] = draw_word(random);
        if (round % 2) b[lane] = b[0], c[lane] = c[0];
      }
      const uint64_t mode = random() % 4;
      ASSERT_EQ(kit.shuffle_sources(mode, b, c, from[0]), portable.shuffle_sources(mode, b, c, from[1]));
      ASSERT_TRUE(std::equal(from[0], from[0] + 32, from[1])) << set << ", mode " << mode;
      int32_t range[2][2] = {{INT32_MAX, INT32_MIN}, {INT32_MAX, INT32_MIN}};
      const uint32_t mask = random();
      ASSERT_EQ(kit.argument_range(x, mask, &range[0][0], &range[0][1]),
                portable.argument_range(x, mask, &range[1][0], &range[1][1]));
      ASSERT_TRUE(range[0][0] == range[1][0] && range[0][1] == range[1][1]) << set;
      const uint32_t offset = random();
      kit.offset_words(address[0], x, offset), portable.offset_words(address[1], x, offset);
      ASSERT_TRUE(std::equal(address[0], address[0] + 32, address[1])) << set;
      ASSERT_EQ(kit.lanes_within(address[0], 0x1000'0000, 0x8000'0000),
                portable.lanes_within(address[1], 0x1000'0000, 0x8000'0000));
    }
  }
}

TEST(LaneSets, SumTilesAlikeAndAsElementByElement) {
  std::mt19937 random(13);
  int in_floats = 0;
  for (const Element element : {Element::bf16, Element::f16, Element::tf32})
    for (int round = 0; round < 600; ++round) {
      MatrixForm form;
      form.k = element == Element::tf32 ? 8 : 16;
      form.a = form.b = element;
      const TensorCoreModel& model = tensor_core_model(round % 2 ? "sm_90" : "sm_80");
      const int spread = round % 5 == 0 ? 200 : 8, fraction_bits = element == Element::f16    ? 10
                                                                   : element == Element::bf16 ? 7
                                                                                              : 23;
      // Sixteen of the largest products and c: more than 32 bits hold.
      const bool full = round % 7 == 1, negative = round % 3 == 0;
      const auto draw = [&](int bits, int exponent_bits, bool is_negative) {
        const int bias = (1 << (exponent_bits - 1)) - 1;
        if (full) return (((bias + 1) << bits) - 1) | static_cast<int>(is_negative) << (bits + exponent_bits);
        const int field = std::clamp(
            bias + static_cast<int>(random() % static_cast<uint32_t>(spread)) - spread / 2, 0, 2 * bias);
        const uint32_t word = static_cast<uint32_t>(field) << bits | (random() & ((1u << bits) - 1));
        return random() % 8 == 0 ? 0 : static_cast<int32_t>(word | (random() & 1) << (bits + exponent_bits));
      };
      const int exponent_bits = element == Element::f16 ? 5 : 8;
      MatrixTile tile;
      for (int i = 0; i < 16 * form.k; ++i) tile.a[i] = draw(fraction_bits, exponent_bits, negative);
      for (int i = 0; i < 8 * form.k; ++i) tile.b[i] = draw(fraction_bits, exponent_bits, false);
      for (int i = 0; i < 128; ++i) tile.c[i] = draw(23, 8, negative);
      const SumRule rule = sum_rule(model, form);
      const TileSum sum{.k = form.k,
                        .per_step = rule.products_per_step,
                        .fraction_bits = rule.fraction_bits,
                        .half = element == Element::f16,
                        .shift = element == Element::bf16 ? 16 : 0,
                        .dropped = element == Element::tf32 ? 0x1fffu : 0};
      const auto taken = [&](const std::string& set) {
        tile.a_changed();
        return lane_kit(set).sum_tile(sum, tile);
      };
      const std::vector<std::string> sets = lane_sets();
      const bool first = taken(sets.back());
      for (const std::string& set : sets) {
        if (set == "portable") {
          EXPECT_FALSE(taken(set));
          continue;
        }
        ASSERT_EQ(taken(set), first) << set << ", round " << round;
        for (int n = 0; n < 8 && first; ++n)
          for (int row = 0; row < 16; ++row) {
            uint32_t a[16], b[16];
            for (int i = 0; i < form.k; ++i)
              a[i] = static_cast<uint32_t>(tile.a[16 * i + row]),
              b[i] = static_cast<uint32_t>(tile.b[8 * i + n]);
            ASSERT_EQ(static_cast<uint32_t>(tile.d[16 * n + row]),
                      dot(model, form, a, b, static_cast<uint32_t>(tile.c[16 * n + row])))
                << set << ", round " << round;
          }
      }
      in_floats += first;
    }
  if (lane_sets().size() > 1) {
    EXPECT_GT(in_floats, 1000);
  }
}

}  // namespace
}  // namespace assay::vm
