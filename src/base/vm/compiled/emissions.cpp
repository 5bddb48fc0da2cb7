#include "src/base/vm/compiled/emissions.h"

#include <fmt/format.h>

#include <unordered_map>

#include "src/base/vm/instruction_row.h"

namespace assay::vm {
namespace {

using Zmm = Xbyak::Zmm;
using Ymm = Xbyak::Ymm;
using Emit = std::function<void(Emitter&, const Op&)>;

// d = f(..) of one register of lanes.
using One = std::function<void(Emitter&, const Zmm& d, const Zmm& a)>;
using Two = std::function<void(Emitter&, const Zmm& d, const Zmm& a, const Zmm& b)>;
using Three = std::function<void(Emitter&, const Zmm& d, const Zmm& a, const Zmm& b, const Zmm& c)>;

constexpr uint32_t parts_of(Cell cell) {
  return cell == Cell::wide ? 4 : 2;
}

Emit one(Cell cell, One f) {
  return [cell, f = std::move(f)](Emitter& e, const Op& op) {
    for (uint32_t part = 0; part < parts_of(cell); ++part) {
      const Zmm a = e.use(op.s[0], part), d = e.fresh();
      f(e, d, a);
      e.define(op.d, cell, part, d);
    }
  };
}
Emit two(Cell cell, Two f) {
  return [cell, f = std::move(f)](Emitter& e, const Op& op) {
    for (uint32_t part = 0; part < parts_of(cell); ++part) {
      const Zmm a = e.use(op.s[0], part), b = e.use(op.s[1], part), d = e.fresh();
      f(e, d, a, b);
      e.define(op.d, cell, part, d);
    }
  };
}
Emit three(Cell cell, Three f) {
  return [cell, f = std::move(f)](Emitter& e, const Op& op) {
    for (uint32_t part = 0; part < parts_of(cell); ++part) {
      const Zmm a = e.use(op.s[0], part), b = e.use(op.s[1], part), c = e.use(op.s[2], part), d = e.fresh();
      f(e, d, a, b, c);
      e.define(op.d, cell, part, d);
    }
  };
}

/// Eight words, the part's own or (odd parts) the upper half of them, each in 64 bits: part `part` of a wide
/// cell.
void widen(Emitter& e, const Zmm& to, Slot slot, uint32_t part, bool with_sign) {
  const Zmm words = e.use(slot, part / 2);
  Ymm eight(words.getIdx());
  if (part % 2) {
    eight = Ymm(to.getIdx());
    e.vextracti32x8(eight, words, 1);
  }
  if (with_sign)
    e.vpmovsxdq(to, eight);
  else
    e.vpmovzxdq(to, eight);
}

/// The integer types of 32 and 64 bits: what their rows share.
void add_integers(std::vector<Emission>& all) {
  const auto add = [&](const std::string& pattern, Emit emit) {
    all.push_back({pattern, Mode::any, std::move(emit)});
  };
  for (const char* type : {"u32", "s32"}) {
    add(fmt::format("add.{}", type),
        two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpaddd(d, a, b); }));
    add(fmt::format("sub.{}", type),
        two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpsubd(d, a, b); }));
    add(fmt::format("mul.lo.{}", type),
        two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpmulld(d, a, b); }));
    add(fmt::format("mad.lo.{}", type), three(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b, auto& c) {
          e.vpmulld(d, a, b);
          e.vpaddd(d, d, c);
        }));
  }
  for (const char* type : {"u64", "s64"}) {
    add(fmt::format("add.{}", type),
        two(Cell::wide, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpaddq(d, a, b); }));
    add(fmt::format("sub.{}", type),
        two(Cell::wide, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpsubq(d, a, b); }));
    add(fmt::format("mul.lo.{}", type),
        two(Cell::wide, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpmullq(d, a, b); }));
    add(fmt::format("mad.lo.{}", type), three(Cell::wide, [](Emitter& e, auto& d, auto& a, auto& b, auto& c) {
          e.vpmullq(d, a, b);
          e.vpaddq(d, d, c);
        }));
  }
  add("min.u32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpminud(d, a, b); }));
  add("max.u32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpmaxud(d, a, b); }));
  add("min.s32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpminsd(d, a, b); }));
  add("max.s32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpmaxsd(d, a, b); }));
  add("abs.s32", one(Cell::word, [](Emitter& e, auto& d, auto& a) { e.vpabsd(d, a); }));
}

/// mul.wide and mad.wide of 32 bits, and cvt between the widths.
void add_widening(std::vector<Emission>& all) {
  for (const bool is_signed : {false, true}) {
    const std::string letter = is_signed ? "s" : "u";
    const auto product = [is_signed](bool adds) -> Emit {
      return [=](Emitter& e, const Op& op) {
        for (uint32_t part = 0; part < 4; ++part) {
          const Zmm d = e.fresh();
          widen(e, d, op.s[0], part, is_signed);
          widen(e, e.zmm0, op.s[1], part, is_signed);
          if (is_signed)
            e.vpmuldq(d, d, e.zmm0);
          else
            e.vpmuludq(d, d, e.zmm0);
          if (adds) e.vpaddq(d, d, e.use(op.s[2], part));
          e.define(op.d, Cell::wide, part, d);
          e.finish_instruction();
        }
      };
    };
    all.push_back({"mul.wide." + letter + "32", Mode::any, product(false)});
    all.push_back({"mad.wide." + letter + "32", Mode::any, product(true)});
    for (const char* to : {"u64", "s64"})
      all.push_back(
          {fmt::format("cvt.{}.{}32", to, letter), Mode::any, [is_signed](Emitter& e, const Op& op) {
             for (uint32_t part = 0; part < 4; ++part) {
               const Zmm d = e.fresh();
               widen(e, d, op.s[0], part, is_signed);
               e.define(op.d, Cell::wide, part, d);
             }
           }});
    for (const char* from : {"u64", "s64"})
      all.push_back({fmt::format("cvt.{}32.{}", letter, from), Mode::any, [](Emitter& e, const Op& op) {
                       for (uint32_t part = 0; part < 2; ++part) {
                         const Zmm low = e.use(op.s[0], 2 * part), high = e.use(op.s[0], 2 * part + 1),
                                   d = e.fresh();
                         e.vpmovqd(Ymm(d.getIdx()), low);
                         e.vpmovqd(Ymm(0), high);
                         e.vinserti32x8(d, d, Ymm(0), 1);
                         e.define(op.d, Cell::word, part, d);
                       }
                     }});
  }
}

/// A shift of 64 bits by the words of a cell.
using Shift = void (*)(Emitter&, const Zmm& d, const Zmm& a, const Zmm& count);
Emit wide_shift(Shift f) {
  return [f](Emitter& e, const Op& op) {
    for (uint32_t part = 0; part < 4; ++part) {
      const Zmm a = e.use(op.s[0], part), d = e.fresh();
      widen(e, e.zmm0, op.s[1], part, false);
      f(e, d, a, e.zmm0);
      e.define(op.d, Cell::wide, part, d);
    }
  };
}

/// lop3 whose table is a constant is one instruction; the table is a cell here, so it stays the row's.
void add_logic(std::vector<Emission>& all) {
  const auto add = [&](const std::string& pattern, Emit emit) {
    all.push_back({pattern, Mode::any, std::move(emit)});
  };
  for (const auto& [width, cell] : {std::pair{32, Cell::word}, {64, Cell::wide}}) {
    add(fmt::format("and.b{}", width),
        two(cell, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpandd(d, a, b); }));
    add(fmt::format("or.b{}", width),
        two(cell, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpord(d, a, b); }));
    add(fmt::format("xor.b{}", width),
        two(cell, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpxord(d, a, b); }));
    add(fmt::format("not.b{}", width),
        one(cell, [](Emitter& e, auto& d, auto& a) { e.vpternlogd(d, a, a, 0x55); }));
  }
  // The host too gives 0, or the sign, beyond the width.
  add("shl.b32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpsllvd(d, a, b); }));
  add("shr.{b,u}32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpsrlvd(d, a, b); }));
  add("shr.s32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) { e.vpsravd(d, a, b); }));
  add("shl.b64", wide_shift([](Emitter& e, auto& d, auto& a, auto& b) { e.vpsllvq(d, a, b); }));
  add("shr.{b,u}64", wide_shift([](Emitter& e, auto& d, auto& a, auto& b) { e.vpsrlvq(d, a, b); }));
  add("shr.s64", wide_shift([](Emitter& e, auto& d, auto& a, auto& b) { e.vpsravq(d, a, b); }));
  const One copy = [](Emitter& e, auto& d, auto& a) { e.vmovdqa64(d, a); };
  add("mov.{b32,u32,s32,f16x2,bf16x2}", one(Cell::word, copy));
  add("mov.f32", one(Cell::word, copy));
  add("mov.{b64,u64,s64,f64}", one(Cell::wide, copy));
}

Emit select(Cell cell) {
  return [cell](Emitter& e, const Op& op) {
    for (uint32_t part = 0; part < parts_of(cell); ++part) {
      const Zmm a = e.use(op.s[0], part), b = e.use(op.s[1], part), d = e.fresh();
      e.kmovd(e.k1, e.mask_at(op.s[2]));
      if (part) e.kshiftrd(e.k1, e.k1, static_cast<uint8_t>(part * 32 / parts_of(cell)));
      if (cell == Cell::wide)
        e.vpblendmq(d | e.k1, b, a);
      else
        e.vpblendmd(d | e.k1, b, a);
      e.define(op.d, cell, part, d);
    }
  };
}

/// Predicates are words of memory.
void add_predicates(std::vector<Emission>& all) {
  const auto add = [&](const char* pattern, void (*f)(Emitter&, const Op&)) {
    all.push_back({pattern, Mode::any, [f](Emitter& e, const Op& op) {
                     e.mov(e.eax, e.mask_at(op.s[0]));
                     f(e, op);
                     e.define_mask(op.d);
                   }});
  };
  add("and.pred", [](Emitter& e, const Op& op) { e.and_(e.eax, e.mask_at(op.s[1])); });
  add("or.pred", [](Emitter& e, const Op& op) { e.or_(e.eax, e.mask_at(op.s[1])); });
  add("xor.pred", [](Emitter& e, const Op& op) { e.xor_(e.eax, e.mask_at(op.s[1])); });
  add("not.pred", [](Emitter& e, const Op&) { e.not_(e.eax); });
  add("mov.pred", [](Emitter&, const Op&) {});
  all.push_back({"selp.{b32,u32,s32}", Mode::any, select(Cell::word)});
  all.push_back({"selp.f32", Mode::any, select(Cell::word)});
  all.push_back({"selp.{b64,u64,s64}", Mode::any, select(Cell::wide)});
  all.push_back({"selp.f64", Mode::any, select(Cell::wide)});
}

/// setp: the lanes where `compare` holds, with the third predicate (Engine::run_compare).
using Compare = std::function<void(Emitter&, const Xbyak::Opmask&, const Zmm& a, const Zmm& b)>;
Emit comparison(Cell cell, Compare compare) {
  return [cell, compare = std::move(compare)](Emitter& e, const Op& op) {
    const Xbyak::Opmask masks[] = {e.k1, e.k2, e.k3, e.k4};
    for (uint32_t part = 0; part < parts_of(cell); ++part)
      compare(e, masks[part], e.use(op.s[0], part), e.use(op.s[1], part));
    if (cell == Cell::wide) {
      e.kunpckbw(e.k1, e.k2, e.k1);
      e.kunpckbw(e.k2, e.k4, e.k3);
    }
    e.kunpckwd(e.k1, e.k2, e.k1);
    const auto combined = [&] {
      if (op.boolean == BooleanOp::none) return;
      e.mov(e.ecx, e.mask_at(op.s[2]));
      if (op.third_negated) e.not_(e.ecx);
      if (op.boolean == BooleanOp::land) e.and_(e.eax, e.ecx);
      if (op.boolean == BooleanOp::lor) e.or_(e.eax, e.ecx);
      if (op.boolean == BooleanOp::lxor) e.xor_(e.eax, e.ecx);
    };
    // The second first: the third operand may be the first's register.
    if (op.d2 != no_slot) {
      e.kmovd(e.eax, e.k1);
      e.not_(e.eax);
      combined();
      e.mov(e.esi, e.eax);
    }
    e.kmovd(e.eax, e.k1);
    combined();
    e.define_mask(op.d);
    if (op.d2 == no_slot) return;
    e.mov(e.eax, e.esi);
    e.define_mask(op.d2);
  };
}

void add_comparisons(std::vector<Emission>& all) {
  struct Order {
    const char* name;
    uint8_t predicate;  ///< of vpcmp
  };
  constexpr Order orders[] = {{"{lt,lo}", 1}, {"{le,ls}", 2}, {"{gt,hi}", 6}, {"{ge,hs}", 5}};
  const auto add = [&](const char* name, const char* type, Compare compare, Cell cell) {
    all.push_back({fmt::format("setp.{}{{,.and,.or,.xor}}.{}", name, type), Mode::any,
                   comparison(cell, std::move(compare))});
  };
  for (const Order& order : {Order{"eq", 0}, {"ne", 4}}) {
    const uint8_t p = order.predicate;
    add(
        order.name, "{b32,u32,s32}", [p](Emitter& e, auto& k, auto& a, auto& b) { e.vpcmpd(k, a, b, p); },
        Cell::word);
    add(
        order.name, "{b64,u64,s64}", [p](Emitter& e, auto& k, auto& a, auto& b) { e.vpcmpq(k, a, b, p); },
        Cell::wide);
  }
  for (const Order& order : orders) {
    const uint8_t p = order.predicate;
    add(
        order.name, "u32", [p](Emitter& e, auto& k, auto& a, auto& b) { e.vpcmpud(k, a, b, p); }, Cell::word);
    add(
        order.name, "s32", [p](Emitter& e, auto& k, auto& a, auto& b) { e.vpcmpd(k, a, b, p); }, Cell::word);
    add(
        order.name, "u64", [p](Emitter& e, auto& k, auto& a, auto& b) { e.vpcmpuq(k, a, b, p); }, Cell::wide);
    add(
        order.name, "s64", [p](Emitter& e, auto& k, auto& a, auto& b) { e.vpcmpq(k, a, b, p); }, Cell::wide);
  }
  // Quiet predicates of vcmpps: ordered ones false for NaN, the others true.
  constexpr Order floats[] = {{"eq", 0x00},  {"ne", 0x0c},  {"lt", 0x11},  {"le", 0x12},  {"gt", 0x1e},
                              {"ge", 0x1d},  {"equ", 0x08}, {"neu", 0x04}, {"ltu", 0x19}, {"leu", 0x1a},
                              {"gtu", 0x16}, {"geu", 0x15}, {"num", 0x07}, {"nan", 0x03}};
  for (const Order& order : floats) {
    const Compare compare = [p = order.predicate](Emitter& e, auto& k, auto& a, auto& b) {
      e.vcmpps(k, a, b, p);
    };
    const std::string head = fmt::format("setp.{}{{,.and,.or,.xor}}", order.name);
    all.push_back({head + ".f32", Mode::plain, comparison(Cell::word, compare)});
    all.push_back({head + ".ftz.f32", Mode::flushing, comparison(Cell::word, compare)});
  }
}

/// fp32 in every rounding mode, which the instruction itself names; NaN is canonical. Flushing is MXCSR's
/// (host_mode.h).
void add_floats(std::vector<Emission>& all) {
  struct Rounding {
    const char* name;
    Xbyak::EvexModifierRounding how;
  };
  const Rounding roundings[] = {{"{,.rn}", Xbyak::util::T_rn_sae},
                                {".rz", Xbyak::util::T_rz_sae},
                                {".rm", Xbyak::util::T_rd_sae},
                                {".rp", Xbyak::util::T_ru_sae}};
  for (const Rounding& rounding : roundings)
    for (const bool ftz : {false, true}) {
      const auto how = rounding.how;
      const auto add = [&](const char* name, Emit emit) {
        all.push_back({fmt::format("{}{}{}.f32", name, rounding.name, ftz ? ".ftz" : ""),
                       ftz ? Mode::flushing : Mode::plain, std::move(emit)});
      };
      add("add", two(Cell::word, [how](Emitter& e, auto& d, auto& a, auto& b) {
            e.vaddps(d, a, b | how);
            e.make_canonical(d);
          }));
      add("sub", two(Cell::word, [how](Emitter& e, auto& d, auto& a, auto& b) {
            e.vsubps(d, a, b | how);
            e.make_canonical(d);
          }));
      add("mul", two(Cell::word, [how](Emitter& e, auto& d, auto& a, auto& b) {
            e.vmulps(d, a, b | how);
            e.make_canonical(d);
          }));
      if (how.rounding != Xbyak::EvexModifierRounding::T_RN_SAE) continue;  // Xbyak 6.68 has no other
      add("{fma,mad}", three(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b, auto& c) {
            e.vmovdqa64(d, c);
            e.vfmadd231ps(d, a, b);
            e.make_canonical(d);
          }));
    }
  for (const bool negates : {false, true})
    all.push_back(
        {negates ? "neg.f32" : "abs.f32", Mode::any, one(Cell::word, [negates](Emitter& e, auto& d, auto& a) {
           if (negates)
             e.vpxord(d, a, e.broadcast(0x80000000));
           else
             e.vpandd(d, a, e.broadcast(0x7fffffff));
           e.make_canonical(d);
         })});
}

/// d = a as bf16 to nearest even, in the low half.
void round_to_brain(Emitter& e, const Zmm& d, const Zmm& a) {
  e.vpsrld(d, a, 16);
  e.vpandd(d, d, e.broadcast(1));
  e.vpaddd(d, d, a);
  e.vpaddd(d, d, e.broadcast(0x7fff));
  e.vpsrld(d, d, 16);
  e.vcmpps(e.k1, a, a, 3);  // unordered
  e.vpbroadcastd(d | e.k1, e.constant(0x7fff));
}

void add_conversions(std::vector<Emission>& all) {
  const auto add = [&](const char* pattern, Emit emit) {
    all.push_back({pattern, Mode::any, std::move(emit)});
  };
  add("cvt.rn.f32.u32", one(Cell::word, [](Emitter& e, auto& d, auto& a) { e.vcvtudq2ps(d, a); }));
  add("cvt.rn.f32.s32", one(Cell::word, [](Emitter& e, auto& d, auto& a) { e.vcvtdq2ps(d, a); }));
  add("cvt.f32.bf16", one(Cell::word, [](Emitter& e, auto& d, auto& a) { e.vpslld(d, a, 16); }));
  add("cvt.rn.bf16.f32", one(Cell::word, round_to_brain));
  add("cvt.rn.bf16x2.f32", two(Cell::word, [](Emitter& e, auto& d, auto& a, auto& b) {
        round_to_brain(e, e.zmm0, a);
        round_to_brain(e, d, b);
        e.vpslld(e.zmm0, e.zmm0, 16);
        e.vpord(d, d, e.zmm0);
      }));
}

}  // namespace

const std::vector<Emission>& emissions() {
  static const std::vector<Emission> made = [] {
    std::vector<Emission> all;
    add_integers(all);
    add_widening(all);
    add_logic(all);
    add_predicates(all);
    add_comparisons(all);
    add_floats(all);
    add_conversions(all);
    return all;
  }();
  return made;
}

const Emission* emission_of(const Row& row) {
  static const auto made = [] {
    std::unordered_map<std::string, const Emission*> by_pattern;
    for (const Emission& emission : emissions()) by_pattern.emplace(emission.pattern, &emission);
    return by_pattern;
  }();
  const auto found = made.find(row.pattern);
  return found == made.end() ? nullptr : found->second;
}

}  // namespace assay::vm
