#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "src/base/numerics/bad_input.h"
#include "src/base/vm/tensor_core_warp.h"
#include "tests/vm/recorded_file.h"
#include "tools/recorded_inputs.h"

namespace assay::vm {
namespace {

using recorded::kMmaForms;
using recorded::MmaCase;
using recorded::MmaForm;

Element element_of(const MmaForm& form) {
  return form.tf32 ? Element::tf32 : form.layout.exponent_bits == 8 ? Element::bf16 : Element::f16;
}

MatrixForm form_of(Element element, int k) {
  MatrixForm form;
  form.k = static_cast<uint8_t>(k);
  form.a = form.b = element;
  return form;
}
MatrixForm form_of(const MmaForm& form) {
  return form_of(element_of(form), form.k);
}

/// D = A B + C of fragments, register by register.
void multiply_fragments(const TensorCoreModel& model, const MatrixForm& form, const uint32_t (*a)[32],
                        const uint32_t (*b)[32], const uint32_t (*c)[32], uint32_t (*d)[32]) {
  const uint32_t *as[4] = {a[0], a[1], a[2], a[3]}, *bs[2] = {b[0], b[1]}, *cs[4] = {c[0], c[1], c[2], c[3]};
  uint32_t* ds[4] = {d[0], d[1], d[2], d[3]};
  MatrixTile tile;
  load_a(form, as, tile);
  load_b(form, bs, tile);
  load_sum(form, cs, tile);
  multiply(model, form, tile);
  store_sum(form, tile, ds);
}

std::array<uint32_t, 16> column(const MmaForm& form, const MmaCase& m, int n) {
  std::array<uint32_t, 16> b{};
  for (int i = 0; i < form.k; i++) b[i] = m.b[i * 8 + n];
  return b;
}

uint32_t element(const TensorCoreModel& model, const MmaForm& form, const MmaCase& m, int row, int n) {
  return dot(model, form_of(form), &m.a[row * form.k], column(form, m, n).data(), m.c[row * 8 + n]);
}

/// The whole case through warp fragments, packed here as the recorder packs them.
std::array<uint32_t, 128> warp(const TensorCoreModel& model, const MmaForm& form, const MmaCase& m) {
  uint32_t a[4][32] = {}, b[2][32] = {}, c[4][32], d[4][32];
  const int span = form.tf32 ? 4 : 8;
  for (int lane = 0; lane < 32; lane++) {
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 2 * form.k / span; r++) {
      const uint32_t* row = &m.a[(g + 8 * (r & 1)) * form.k + span * (r >> 1)];
      a[r][lane] = form.tf32 ? row[t] : row[2 * t] | row[2 * t + 1] << 16;
    }
    for (int r = 0; r < form.k / span; r++) {
      const uint32_t* b_rows = &m.b[span * r * 8 + g];
      b[r][lane] = form.tf32 ? b_rows[t * 8] : b_rows[2 * t * 8] | b_rows[(2 * t + 1) * 8] << 16;
    }
    for (int r = 0; r < 4; r++) c[r][lane] = m.c[(g + 8 * (r >> 1)) * 8 + 2 * t + (r & 1)];
  }
  multiply_fragments(model, form_of(form), a, b, c, d);
  std::array<uint32_t, 128> out{};
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < 4; r++) out[(lane / 4 + 8 * (r >> 1)) * 8 + 2 * (lane % 4) + (r & 1)] = d[r][lane];
  return out;
}

// tests/data/mma_vectors.bin.gz: per format 384 cases of A[32][4] B[32][2] C[32][4] D[32][4] (lane,
// register).
TEST(TensorCore, EveryRecordedVectorIsReproducedByTheWarpWideSum) {
  const std::vector<uint32_t> words = read_words("mma_vectors.bin.gz");
  ASSERT_EQ(words.size(), 3u * 384 * 448);
  const Element formats[] = {Element::bf16, Element::f16, Element::tf32};
  int mismatches = 0, compared = 0;
  for (int i = 0; i < 3 * 384; i++) {
    const uint32_t* w = &words[i * 448];
    uint32_t a[4][32], b[2][32], c[4][32], d[4][32];
    for (int lane = 0; lane < 32; lane++) {
      for (int r = 0; r < 4; r++) a[r][lane] = w[lane * 4 + r];
      for (int r = 0; r < 2; r++) b[r][lane] = w[128 + lane * 2 + r];
      for (int r = 0; r < 4; r++) c[r][lane] = w[192 + lane * 4 + r];
    }
    const int k = i < 768 ? 16 : 8;
    multiply_fragments(tensor_core_model("sm_90"), form_of(formats[i / 384], k), a, b, c, d);
    for (int lane = 0; lane < 32; lane++)
      for (int r = 0; r < 4; r++, compared++) mismatches += d[r][lane] != w[320 + lane * 4 + r];
  }
  EXPECT_EQ(compared, 147456);
  EXPECT_EQ(mismatches, 0);
}

/// Recorded results of one form; empty (and a failure) where the inputs are no longer those recorded.
std::vector<uint32_t> edges(const MmaForm& form) {
  std::vector<uint32_t> words = read_words(std::string("mma_edges_") + form.name + ".bin.gz");
  uint64_t h = recorded::digest(nullptr, 0);
  for (int i = 0; i < form.cases; i++) {
    const MmaCase m = draw_mma(form, i);
    for (const auto* v : {&m.a, &m.b, &m.c}) h = recorded::digest(v->data(), v->size(), h);
  }
  if (words.size() != 3u + form.cases * 128u || h != (words[0] | static_cast<uint64_t>(words[1]) << 32)) {
    ADD_FAILURE() << form.name << ": tools/recorded_inputs.h no longer draws the inputs that were recorded";
    return {};
  }
  words.erase(words.begin(), words.begin() + 3);
  return words;
}

TEST(TensorCore, EveryRecordedEdgeIsReproducedByTheWarpWideSum) {
  const TensorCoreModel& model = tensor_core_model("sm_90");
  for (const MmaForm& form : kMmaForms) {
    const std::vector<uint32_t> expected = edges(form);
    ASSERT_FALSE(expected.empty());
    int mismatches = 0;
    for (int i = 0; i < form.cases; i++) {
      const std::array<uint32_t, 128> got = warp(model, form, draw_mma(form, i));
      for (int e = 0; e < 128; e++) {
        if (got[e] == expected[i * 128 + e]) continue;
        if (mismatches++ < 3)
          ADD_FAILURE() << form.name << " case " << i << " element " << e << std::hex << ": 0x" << got[e]
                        << ", recorded 0x" << expected[i * 128 + e];
      }
    }
    EXPECT_EQ(mismatches, 0) << form.name;
  }
}

struct WrongRule {
  const char* name;
  std::function<void(TensorCoreModel&)> apply;
  bool seen_in_f16;  // with f16 products and an fp32 sum neither the floor nor an overflow of finite terms is
                     // in reach
};

TEST(TensorCore, EveryWrongRuleFailsOnTheRecordedEdges) {
  const WrongRule rules[] = {
      {"no floor", [](TensorCoreModel& m) { m.floor_f32 = -10000; }, false},
      {"floor one too high", [](TensorCoreModel& m) { m.floor_f32++; }, false},
      {"floor one too low", [](TensorCoreModel& m) { m.floor_f32--; }, false},
      {"zero products in the maximum", [](TensorCoreModel& m) { m.zero_products_in_maximum = true; }, true},
      {"inputs flushed", [](TensorCoreModel& m) { m.flush_inputs = true; }, true},
      {"results flushed", [](TensorCoreModel& m) { m.flush_results = true; }, true},
      {"-0 for an empty sum", [](TensorCoreModel& m) { m.negative_zero = true; }, true},
      {"clamped overflow", [](TensorCoreModel& m) { m.clamp_overflow = true; }, false},
      {"F one too large", [](TensorCoreModel& m) { m.fraction_bits++; }, true},
      {"F one too small", [](TensorCoreModel& m) { m.fraction_bits--; }, true},
      {"two steps", [](TensorCoreModel& m) { m.products_per_step_16 = 8, m.products_per_step_tf32 = 4; },
       true},
  };
  for (int f = 0; f < 3; f++) {
    const MmaForm& form = kMmaForms[f];
    const std::vector<uint32_t> expected = edges(form);
    ASSERT_FALSE(expected.empty());
    std::vector<int> mismatches(std::size(rules));
    for (int i = 0; i < form.cases; i++) {
      const MmaCase m = draw_mma(form, i);
      for (size_t rule = 0; rule < std::size(rules); rule++) {
        if (mismatches[rule] > 0 || (element_of(form) == Element::f16 && !rules[rule].seen_in_f16)) continue;
        TensorCoreModel wrong = tensor_core_model("sm_90");
        rules[rule].apply(wrong);
        for (int e = 0; e < 128; e++)
          mismatches[rule] += element(wrong, form, m, e / 8, e % 8) != expected[i * 128 + e];
      }
    }
    for (size_t rule = 0; rule < std::size(rules); rule++) {
      if (element_of(form) == Element::f16 && !rules[rule].seen_in_f16) continue;
      EXPECT_GT(mismatches[rule], 0) << form.name << ": the recorded edges do not see '" << rules[rule].name
                                     << "'";
    }
  }
}

TEST(TensorCore, TheWarpWideSumEqualsTheElementwiseSumOnEveryArchitecture) {
  for (const char* arch : {"sm_80", "sm_89", "sm_90"})
    for (const MmaForm& form : kMmaForms)
      for (int i = 0; i < 200; i++) {
        const MmaCase m = draw_mma(form, i);
        const std::array<uint32_t, 128> got = warp(tensor_core_model(arch), form, m);
        for (int e = 0; e < 128; e++)
          ASSERT_EQ(got[e], element(tensor_core_model(arch), form, m, e / 8, e % 8))
              << arch << " " << form.name << " case " << i << " element " << e;
      }
}

struct Product {
  int k;
  uint16_t a, b;
};

struct Probe {
  const char* what;
  std::vector<Product> products;
  int fill_from, fill_count;  // further products `fill` * `fill`, at k = fill_from ...
  uint16_t fill_a, fill_b;
  uint32_t c, sm_80, sm_90;
};

constexpr uint16_t bf16_power(int e) {
  return static_cast<uint16_t>((e + 127) << 7);
}
constexpr uint16_t kMinus = 0x8000;

// bf16 probes recorded on the H200; the sm_80 column is the rule of "Accurate Models of NVIDIA Tensor Cores".
TEST(TensorCore, ProbesGiveTheirRecordedWords) {
  const uint16_t one = bf16_power(0);
  const std::vector<Probe> probes = {
      {"1 + 2^-24",
       {{0, one, one}, {1, bf16_power(-12), bf16_power(-12)}},
       0,
       0,
       0,
       0,
       0,
       0x3f800000,
       0x3f800000},
      {"1 + two 2^-25", {{0, one, one}}, 1, 2, bf16_power(-25), one, 0, 0x3f800000, 0x3f800000},
      {"1 + four 2^-25", {{0, one, one}}, 1, 4, bf16_power(-25), one, 0, 0x3f800000, 0x3f800001},
      {"1, 2^-24 at k8 and k9, -1 at k15",
       {{0, one, one}, {8, bf16_power(-24), one}, {9, bf16_power(-24), one}, {15, kMinus | one, one}},
       0,
       0,
       0,
       0,
       0,
       0x34000000,
       0x34000000},
      {"-2^30 + 8 + c",
       {{0, kMinus | bf16_power(15), bf16_power(15)}, {1, bf16_power(1), bf16_power(2)}},
       0,
       0,
       0,
       0,
       0x4e800000,
       0,
       0},
      {"-2^30 + 32 + c",
       {{0, kMinus | bf16_power(15), bf16_power(15)}, {1, bf16_power(3), bf16_power(2)}},
       0,
       0,
       0,
       0,
       0x4e800000,
       0,
       0x42000000},
      {"1.5 * 1.5 + 2^-25",
       {{0, 0x3fc0, 0x3fc0}, {1, bf16_power(-25), one}},
       0,
       0,
       0,
       0,
       0,
       0x40100000,
       0x40100000},
      {"1 - 2^-26",
       {{0, one, one}, {1, kMinus | bf16_power(-26), one}},
       0,
       0,
       0,
       0,
       0,
       0x3f800000,
       0x3f800000},
      {"c = 1 + two 2^-24", {}, 0, 2, bf16_power(-24), one, 0x3f800000, 0x3f800001, 0x3f800001},
      {"2^127 twice", {}, 0, 2, bf16_power(127), one, 0, 0x7f800000, 0x7f800000},
      {"2^129 - 2^129 + 1",
       {{0, bf16_power(127), bf16_power(2)}, {1, kMinus | bf16_power(127), bf16_power(2)}, {2, one, one}},
       0,
       0,
       0,
       0,
       0,
       0,
       0},
      {"16 products of 2^-151", {}, 0, 16, bf16_power(-76), bf16_power(-75), 0, 2, 4},
      {"16 products of 2^-153", {}, 0, 16, bf16_power(-77), bf16_power(-76), 0, 0, 1},
      {"16 products of 2^-157, c = 2^-149", {}, 0, 16, bf16_power(-79), bf16_power(-78), 1, 1, 1},
      {"0 * 2^127, c = 2^-30", {{0, 0, bf16_power(127)}}, 0, 0, 0, 0, 0x30800000, 0x30800000, 0x30800000},
      {"0 * 2^100 + 2^-40",
       {{0, 0, bf16_power(100)}, {1, bf16_power(-20), bf16_power(-20)}},
       0,
       0,
       0,
       0,
       0,
       0x2b800000,
       0x2b800000},
      {"-0 * 1, c = -0", {{0, kMinus, one}}, 0, 0, 0, 0, 0x80000000, 0, 0},
      {"1 - 1", {{0, one, one}, {1, kMinus | one, one}}, 0, 0, 0, 0, 0, 0, 0},
      {"2^103 + FLT_MAX", {{0, bf16_power(103), one}}, 0, 0, 0, 0, 0x7f7fffff, 0x7f7fffff, 0x7f7fffff},
      {"2^104 + FLT_MAX", {{0, bf16_power(104), one}}, 0, 0, 0, 0, 0x7f7fffff, 0x7f800000, 0x7f800000},
      {"2^-130 * 2^100", {{0, 0x0008, bf16_power(100)}}, 0, 0, 0, 0, 0, 0x30800000, 0x30800000},
      {"c = 2^-140", {}, 0, 0, 0, 0, 0x200, 0x200, 0x200},
  };
  for (const Probe& p : probes) {
    uint32_t a[16] = {}, b[16] = {};
    for (const Product& x : p.products) a[x.k] = x.a, b[x.k] = x.b;
    for (int i = 0; i < p.fill_count; i++) a[p.fill_from + i] = p.fill_a, b[p.fill_from + i] = p.fill_b;
    EXPECT_EQ(dot(tensor_core_model("sm_80"), form_of(Element::bf16, 16), a, b, p.c), p.sm_80)
        << p.what << " on sm_80";
    EXPECT_EQ(dot(tensor_core_model("sm_90"), form_of(Element::bf16, 16), a, b, p.c), p.sm_90)
        << p.what << " on sm_90";
  }
}

TEST(TensorCore, AnUnknownArchitectureIsRefusedNamingTheKnownOnes) {
  try {
    tensor_core_model("sm_75");
    FAIL() << "sm_75 was accepted";
  } catch (const BadInput& e) {
    EXPECT_NE(std::string(e.what()).find("sm_80, sm_89, sm_90"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay::vm
