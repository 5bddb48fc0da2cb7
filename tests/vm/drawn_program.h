// Programs drawn at random, for vm::SmallKernel.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace assay::vm {

/// One instruction on registers of some type: %d a result, %0 to %2 sources.
struct Form {
  const char* text;
  char to;           ///< f: f32, d: f64, h: f16, b: bf16, H: f16x2, B: bf16x2
  const char* from;  ///< of the sources
};
inline constexpr Form float_forms[] = {
    {"add.rn.f32 %d, %0, %1", 'f', "ff"},
    {"add.f32 %d, %0, 0f7149F2CA", 'f', "f"},
    {"sub.ftz.f32 %d, %0, %1", 'f', "ff"},
    {"mul.rn.f32 %d, %0, %1", 'f', "ff"},
    {"mul.rn.f32 %d, %0, 0f7F800000", 'f', "f"},
    {"mul.rz.f32 %d, %0, 0f5D5E0B6B", 'f', "f"},
    {"fma.rn.f32 %d, %0, %1, %2", 'f', "fff"},
    {"fma.rn.sat.f32 %d, %0, %1, %2", 'f', "fff"},
    {"div.rn.f32 %d, %0, %1", 'f', "ff"},
    {"div.full.f32 %d, %0, %1", 'f', "ff"},
    {"rcp.approx.ftz.f32 %d, %0", 'f', "f"},
    {"rsqrt.approx.f32 %d, %0", 'f', "f"},
    {"sqrt.rn.f32 %d, %0", 'f', "f"},
    {"ex2.approx.f32 %d, %0", 'f', "f"},
    {"lg2.approx.f32 %d, %0", 'f', "f"},
    {"sin.approx.f32 %d, %0", 'f', "f"},
    {"tanh.approx.f32 %d, %0", 'f', "f"},
    {"min.f32 %d, %0, %1", 'f', "ff"},
    {"max.NaN.f32 %d, %0, %1", 'f', "ff"},
    {"min.f32 %d, %0, 0f42C80000", 'f', "f"},
    {"max.f32 %d, %0, 0fC2C80000", 'f', "f"},
    {"neg.f32 %d, %0", 'f', "f"},
    {"abs.f32 %d, %0", 'f', "f"},
    {"copysign.f32 %d, %0, %1", 'f', "ff"},
    {"mov.b32 %d, %0", 'f', "f"},
    {"selp.f32 %d, %0, %1, %p1", 'f', "ff"},
    {"shfl.sync.bfly.b32 %d, %0, 1, 31, -1", 'f', "f"},
    {"cvt.rni.f32.f32 %d, %0", 'f', "f"},
    {"cvt.f32.f16 %d, %0", 'f', "h"},
    {"cvt.f32.bf16 %d, %0", 'f', "b"},
    {"cvt.rn.f32.f64 %d, %0", 'f', "d"},
    {"cvt.rn.f32.s32 %d, %t", 'f', ""},
    {"cvt.f64.f32 %d, %0", 'd', "f"},
    {"mul.rn.f64 %d, %0, %1", 'd', "dd"},
    {"fma.rn.f64 %d, %0, %1, %2", 'd', "ddd"},
    {"div.rn.f64 %d, %0, %1", 'd', "dd"},
    {"sub.rn.f64 %d, %0, %1", 'd', "dd"},
    {"cvt.rn.f16.f32 %d, %0", 'h', "f"},
    {"cvt.rn.f16.u32 %d, %t", 'h', ""},
    {"fma.rn.f16 %d, %0, %1, %2", 'h', "hhh"},
    {"mul.rn.f16 %d, %0, %1", 'h', "hh"},
    {"cvt.rn.bf16.f32 %d, %0", 'b', "f"},
    {"fma.rn.bf16 %d, %0, %1, %2", 'b', "bbb"},
    {"cvt.rn.f16x2.f32 %d, %0, %1", 'H', "ff"},
    {"cvt.rn.relu.f16x2.f32 %d, %0, %1", 'H', "ff"},
    {"mul.rn.f16x2 %d, %0, %1", 'H', "HH"},
    {"fma.rn.f16x2 %d, %0, %1, %2", 'H', "HHH"},
    {"fma.rn.relu.bf16x2 %d, %0, %1, %2", 'B', "BBB"},
    {"cvt.rn.bf16x2.f32 %d, %0, %1", 'B', "ff"},
    {"fma.rn.bf16x2 %d, %0, %1, %2", 'B', "BBB"},
};
/// w: a word, l: 64 bits, p: a predicate; -: no result.
inline constexpr Form integer_forms[] = {
    {"add.s32 %d, %0, %1", 'w', "ww"},
    {"sub.u32 %d, %0, %1", 'w', "ww"},
    {"mul.lo.s32 %d, %0, %1", 'w', "ww"},
    {"mul.hi.u32 %d, %0, %1", 'w', "ww"},
    {"mad.lo.u32 %d, %0, %1, %2", 'w', "www"},
    {"min.s32 %d, %0, %1", 'w', "ww"},
    {"max.u32 %d, %0, %1", 'w', "ww"},
    {"abs.s32 %d, %0", 'w', "w"},
    {"and.b32 %d, %0, 0x7f7f", 'w', "w"},
    {"xor.b32 %d, %0, %1", 'w', "ww"},
    {"not.b32 %d, %0", 'w', "w"},
    {"shl.b32 %d, %0, %1", 'w', "ww"},
    {"shr.s32 %d, %0, 3", 'w', "w"},
    {"shr.u32 %d, %0, %1", 'w', "ww"},
    {"prmt.b32 %d, %0, %1, 0x5410", 'w', "ww"},
    {"lop3.b32 %d, %0, %1, %2, 0x96", 'w', "www"},
    {"selp.b32 %d, %0, %1, %2", 'w', "wwp"},
    {"cvt.u32.u64 %d, %0", 'w', "l"},
    {"mov.b32 %d, %0", 'w', "w"},
    {"mov.b32 %d, %0", 'w', "f"},
    {"mov.b32 %d, {%0, %1}", 'w', "hb"},
    {"cvt.rzi.s32.f32 %d, %0", 'w', "f"},
    {"mov.b32 %d, %0", 'f', "w"},
    {"cvt.rn.f32.u32 %d, %0", 'f', "w"},
    {"add.s64 %d, %0, %1", 'l', "ll"},
    {"sub.s64 %d, %0, %1", 'l', "ll"},
    {"mul.lo.s64 %d, %0, %1", 'l', "ll"},
    {"mul.wide.s32 %d, %0, %1", 'l', "ww"},
    {"mul.wide.u32 %d, %0, 12", 'l', "w"},
    {"mad.wide.s32 %d, %0, %1, %2", 'l', "wwl"},
    {"cvt.s64.s32 %d, %0", 'l', "w"},
    {"cvt.u64.u32 %d, %0", 'l', "w"},
    {"shl.b64 %d, %0, %1", 'l', "lw"},
    {"shr.s64 %d, %0, 7", 'l', "l"},
    {"or.b64 %d, %0, %1", 'l', "ll"},
    {"mov.b64 %d, {%0, %1}", 'l', "ww"},
    {"selp.b64 %d, %0, %1, %2", 'l', "llp"},
    {"setp.lt.s32 %d, %0, %1", 'p', "ww"},
    {"setp.ge.u64 %d, %0, %1", 'p', "ll"},
    {"setp.gt.and.f32 %d, %0, %1, %2", 'p', "ffp"},
    {"setp.neu.ftz.f32 %d, %0, %1", 'p', "ff"},
    {"setp.ne.xor.s32 %d, %0, 5, !%1", 'p', "wp"},
    {"setp.eq.or.u32 %d|%0, %1, %2, %3", 'p', "pwwp"},
    {"and.pred %d, %0, %1", 'p', "pp"},
    {"not.pred %d, %0", 'p', "p"},
    {"add.ftz.f32 %d, %0, %1", 'f', "ff"},
    {"mul.ftz.f32 %d, %0, %1", 'f', "ff"},
    {"fma.rn.ftz.f32 %d, %0, %1, %2", 'f', "fff"},
    {"@%0 add.f32 %d, %1, %2", 'f', "pff"},
    {"@!%0 mov.u32 %d, %1", 'w', "pw"},
    {"{ .reg .b32 %in; and.b32 %in, %0, 252; mov.u32 %r5, room; add.s32 %in, %in, %r5; ld.shared.b32 %d, "
     "[%in+4]; }",
     'w', "w"},
    {"{ .reg .b32 %in; shl.b32 %in, %t, 2; and.b32 %in, %in, 127; mov.u32 %r5, room; add.s32 %in, %in, %r5; "
     "ld.shared.f32 %d, [%in+128]; }",
     'f', ""},
    {"{ .reg .b32 %in; and.b32 %in, %0, 1008; mov.u32 %r5, room; add.s32 %in, %in, %r5; ld.shared.v4.b32 "
     "{%d, "
     "%1, %r6, %r7}, [%in]; }",
     'w', "ww"},
    {"st.shared.b32 [room+64], %0", '-', "w"},
    {"{ .reg .b32 %in; shl.b32 %in, %t, 2; and.b32 %in, %in, 127; mov.u32 %r5, room; add.s32 %in, %in, %r5; "
     "st.shared.b32 [%in+512], %0; }",
     '-', "w"},
    {"ld.global.b32 %d, [%pa]", 'w', ""},
    {"ld.global.nc.f32 %d, [%pb]", 'f', ""},
};
inline constexpr int kEach = 5;  ///< registers of a type

class DrawnProgram {
 public:
  /// `integers`: of integers, predicates and memory too.
  explicit DrawnProgram(uint32_t seed, bool integers = false) : integers_(integers), random_(seed) {}

  std::string body() {
    std::string text =
        ".reg .f32 %xf<5>; .reg .f64 %xd<5>; .reg .b16 %xh<5>, %xb<5>; .reg .b32 %xH<5>, %xB<5>;\n";
    for (int i = 0; i < kEach; ++i) {
      text += fmt::format("mov.b32 %xf{0}, %{1};\ncvt.f64.f32 %xd{0}, %xf{0};\n", i, "abc"[i % 3]);
      text += fmt::format("cvt.rn.f16.f32 %xh{0}, %xf{0};\ncvt.rn.bf16.f32 %xb{0}, %xf{0};\n", i);
      text += fmt::format("mov.b32 %xH{0}, {{%xh{0}, %xh0}};\nmov.b32 %xB{0}, {{%xb0, %xb{0}}};\n", i);
    }
    if (integers_) {
      text += ".reg .b32 %xw<5>; .reg .b64 %xl<5>; .reg .pred %xp<5>; .shared .align 16 .b8 room[1024];\n";
      for (int i = 0; i < kEach; ++i)
        text += fmt::format(
            "mad.lo.u32 %xw{0}, %{1}, {0}, %t; cvt.s64.s32 %xl{0}, %xw{0}; "
            "setp.gt.s32 %xp{0}, %xw{0}, {0};\n",
            i, "abc"[i % 3]);
      for (int at = 0; at < 1024; at += 4) text += fmt::format("st.shared.u32 [room+{}], %c;\n", at);
    }
    text += "setp.lt.f32 %p1, %a, %b; and.b32 %r1, %t, 1; setp.eq.u32 %p2, %r1, 0; mov.b32 %r2, 3;\n";
    const int parts = 1 + below(4);
    for (int part = 0; part < parts; ++part) {
      switch (below(5)) {
        case 0:
          text += fmt::format(
              "LOOP{}:\n{}sub.u32 %r2, %r2, 1; setp.ne.u32 %p3, %r2, 0; @%p3 bra LOOP{}; mov.b32 %r2, 2;\n",
              part, stretch(), part);
          break;
        case 1:
          text += fmt::format("@{}%p{} bra SKIP{};\n{}SKIP{}:\n", below(2) ? "!" : "", 1 + below(2), part,
                              stretch(), part);
          break;
        case 2:
          text += fmt::format(
              "{{ .reg .f32 %in; {} mul.rn.f32 %in, %xf0, %xf1; add.rn.f32 %xf2, %in, %xf3; {}}}\n",
              stretch(), stretch());
          break;
        case 3:
          text += rescaled();
          break;
        default:
          text += stretch() + product();
      }
    }
    // All that is left, in one word.
    for (int i = 0; i < kEach; ++i)
      text += fmt::format(
          "mov.b32 %r3, %xf{0}; xor.b32 %d, %d, %r3; mov.b64 {{%r3, %r4}}, %xd{0}; xor.b32 %d, %d, %r4;\n"
          "xor.b32 %d, %d, %xH{0}; xor.b32 %d, %d, %xB{0}; cvt.u32.u16 %r3, %xh{0}; xor.b32 %d, %d, %r3;\n",
          i);
    for (int i = 0; i < kEach && integers_; ++i)
      text += fmt::format(
          "xor.b32 %d, %d, %xw{0}; mov.b64 {{%r3, %r4}}, %xl{0}; xor.b32 %d, %d, %r3; "
          "add.u32 %d, %d, %r4; @%xp{0} add.u32 %d, %d, {0};\n",
          i);
    for (int at = 0; at < 1024 && integers_; at += 128)
      text += fmt::format("ld.shared.u32 %r3, [room+{}]; add.u32 %d, %d, %r3;\n", at);
    return text;
  }
  /// Of an input: ordinary numbers, and now and then zeros, huge and tiny ones, infinities and NaN.
  std::vector<uint32_t> words() {
    static constexpr uint32_t kEdges[] = {0,          0x80000000, 0x7f7fffff, 0xff7fffff,
                                          0x00800000, 0x7f800000, 0xff800000, 0x7fc00000,
                                          0x477fe000, 0x00000001, 0x5f800000, 0xc2fe0000};
    std::vector<uint32_t> words(32);
    const uint32_t often = 2 + random_() % 30;
    for (uint32_t& word : words)
      word = random_() % often == 0 ? kEdges[random_() % std::size(kEdges)]
                                    : (uint32_t(random_()) & 0x80ffffff) + 0x3c000000 + (random_() % 8 << 24);
    return words;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  std::string stretch() {
    std::string text;
    for (int n = 1 + below(14); n > 0; --n) {
      const bool integral = integers_ && below(2);
      const Form& form = integral ? integer_forms[random_() % std::size(integer_forms)]
                                  : float_forms[random_() % std::size(float_forms)];
      std::string line = form.text;
      const auto put = [&](const std::string& mark, char type) {
        const std::string name = fmt::format("%x{}{}", type, below(kEach));
        for (size_t at; (at = line.find(mark)) != line.npos;) line.replace(at, mark.size(), name);
      };
      // "%d " alone: %t stays.
      if (form.to != '-') line.replace(line.find("%d"), 2, fmt::format("%x{}{}", form.to, below(kEach)));
      for (size_t i = 0; form.from[i]; ++i) put("%" + std::to_string(i), form.from[i]);
      const bool exchanges = line.starts_with("shfl");
      if (!exchanges && line[0] != '{' && line[0] != '@' && below(5) == 0)
        line = fmt::format("@{}%p{} {}", below(2) ? "!" : "", 1 + below(2), line);
      if (exchanges) continue;  // lanes may be apart
      text += line + (line[0] == '{' ? "\n" : ";\n");
    }
    return text;
  }
  /// Products by one factor or two in a row, as sums are rescaled, some of them in scopes.
  std::string rescaled() {
    const std::string name = fmt::format("%xs{}_", rescaled_++);
    std::string text = fmt::format(".reg .f32 {}<12>;\n", name), sums;
    for (int i = 0, count = 6 + below(7), factors = 1 + below(2); i < count; ++i) {
      static constexpr const char* kKinds[] = {"mul.f32", "mul.rn.f32", "mul.ftz.f32"};
      static constexpr const char* kScopes[] = {"{ ", "{ .reg .f32 %in; mul.f32 %in, %xf0, %xf3; ",
                                                "{ { .reg .f32 %in; mul.f32 %in, %xf1, %xf3; } "};
      const std::string product =
          fmt::format("{} {}{}, %xf{}, %xf{};", kKinds[below(3)], name, i, below(3), 3 + i % factors);
      const int scope = below(8);
      text += scope < 3 ? kScopes[scope] + product + " }\n" : product + "\n";
      sums += fmt::format("max.f32 %xf{0}, %xf{0}, {1}{2};\n", below(kEach), name, i);
    }
    return text + sums;
  }
  std::string product() {
    const auto four = [&](char type) { return fmt::format("{{%x{0}0, %x{0}1, %x{0}2, %x{0}3}}", type); };
    const auto two = [&](char type) { return fmt::format("{{%x{0}4, %x{0}{1}}}", type, below(4)); };
    switch (below(4)) {
      case 0:
        return fmt::format("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {}, {}, {}, {};\n", four('f'),
                           four('B'), two('B'), four('f'));
      case 1:
        return fmt::format("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {0}, {1}, {2}, {0};\n",
                           two('H'), four('H'), "{%xH1, %xH2}");
      case 2:
        return fmt::format("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {0}, {1}, {2}, {0};\n",
                           four('f'), "{%xH0, %xB1, %xB2, %xH3}", two('B'));
      default:
        return fmt::format(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%xd0, %xd1}}, {{%xd2}}, {{%xd{}}}, {{%xd3, "
            "%xd4}};\n",
            below(4));
    }
  }

  bool integers_;
  int rescaled_ = 0;
  std::mt19937 random_;
};

}  // namespace assay::vm
