// atom and red (PTX ISA 9.7.13): lanes act one after another in ascending order. Launches that use them on
// global memory run their blocks one after another, so that results do not depend on the number of threads.
#include <array>
#include <cstring>
#include <map>

#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/mbarrier.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// old, b, c -> new value in memory, at the host pointers of the lanes.
template <class T, class F>
void apply(Warp& warp, const Op& op, uint32_t mask, std::byte** host) {
  const bool wide = sizeof(T) == 8;
  each_lane(mask, [&](int lane) {
    auto operand = [&](Slot slot) {
      T value{};
      if (slot != no_slot)
        std::memcpy(&value, wide ? static_cast<const void*>(warp.wide(slot) + lane) : warp.word(slot) + lane,
                    sizeof(T));
      return value;
    };
    T old;
    std::memcpy(&old, host[lane], sizeof(T));
    const T made = F{}(old, operand(op.s[1]), operand(op.s[2]));
    std::memcpy(host[lane], &made, sizeof(T));
    if (op.d == no_slot) return;
    uint64_t bits = 0;
    std::memcpy(&bits, &old, sizeof(T));
    if (wide)
      warp.wide(op.d)[lane] = bits;
    else
      warp.word(op.d)[lane] = static_cast<uint32_t>(bits);
  });
}

template <class T, class F>
bool atomic(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, sizeof(T), host)) return false;
  apply<T, F>(warp, op, mask, host);
  return true;
}

/// An operation that global memory and shared memory carry out differently.
template <class T, class Global, class Shared>
bool atomic_by_space(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, sizeof(T), host)) return false;
  if (warp.space == Space::global)
    apply<T, Global>(warp, op, mask, host);
  else
    apply<T, Shared>(warp, op, mask, host);
  return true;
}

/// red.async (PTX ISA, "red.async"): in another block's shared memory, its bytes completing at an mbarrier.
template <class T, class F>
bool reduce_async(Warp& warp, const Op& op, uint32_t mask) {
  Op plain = op;
  plain.s[2] = no_slot;  // the mbarrier: no operand of the sum
  std::byte* host[32];
  if (!translate(warp, op, mask, sizeof(T), host)) return false;
  apply<T, F>(warp, plain, mask, host);
  return complete_stored(warp, op, mask);
}

void decode_reduce_async(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  op.space = instruction.form.space == Space::shared ? Space::shared : Space::generic;
  op.type = *ptx::type_named(decoder.parts(instruction).back());
  op.element_bytes = static_cast<uint8_t>(ptx::bytes_of(op.type));
  decoder.address(instruction.operands[0], op);
  op.s[1] = decoder.source(instruction.operands[1], op.type);
  op.source_count = 2;
  decode_stored_barrier(decoder, instruction, op);
  op.d_cell = Cell::none;
}

void decode_atomic(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  const bool returns = words[0] == "atom", exchanges = words[words.size() - 2] == "cas";
  op.space = words[1] == "global" ? Space::global : words[1] == "shared" ? Space::shared : Space::generic;
  if (op.space != Space::shared) decoder.mark_global_atomics();
  op.type = *ptx::type_named(words.back());
  const size_t first = returns ? 1 : 0, sources = exchanges ? 2 : 1;
  decoder.expect_operands(instruction, first + 1 + sources, first + 2 + sources);
  if (returns) op.d = decoder.destination(instruction.operands[0], op.type);
  decoder.address(instruction.operands[first], op);
  for (size_t i = 0; i < sources; ++i)
    op.s[1 + i] = decoder.source(instruction.operands[first + 1 + i], op.type);
  op.source_count = static_cast<uint8_t>(1 + sources);
  op.element_bytes = static_cast<uint8_t>(ptx::bytes_of(op.type));
  op.d_cell = returns ? cell_of(op.type) : Cell::none;
}

/// atom.global.add.vN.type {d}, [a], {b}: each element is an atomic operation of its own (PTX ISA, "atom"),
/// and here an op of its own.
void decode_vector(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  const size_t first = words[0] == "atom" ? 1 : 0;
  decoder.expect_operands(instruction, first + 2, first + 2);
  const size_t count = static_cast<size_t>(words[words.size() - 2][1] - '0');
  const std::string scalar = words[0] + ".global.add." + words.back();
  const Op whole = op;
  for (size_t i = 0; i < count; ++i) {
    ptx::Instruction element = instruction;
    element.opcode = scalar;
    for (const size_t operand : {size_t{0}, first + 1}) {
      if (operand == 0 && first == 0) continue;
      const Operand& vector = instruction.operands[operand];
      if (vector.kind != Operand::Kind::vector || vector.elements.size() != count)
        decoder.fail(instruction, "needs vectors of " + std::to_string(count) + " registers");
      element.operands[operand] = vector.elements[i];
    }
    op = whole;
    op.row = find_row(scalar);
    decode_atomic(decoder, element, op);
    op.offset += static_cast<int64_t>(i) * op.element_bytes;
    if (i + 1 < count) decoder.emit(op);
  }
}

/// exch and cas of .b128 are two ops, of the lower and of the upper half: nothing comes between them.
enum PairPart : uint64_t { lower_half, upper_half };

bool exchange_half(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, op.immediate == lower_half ? 16 : 8, host)) return false;
  const auto put = [](uint64_t, uint64_t b, uint64_t) { return b; };
  apply<uint64_t, decltype(put)>(warp, op, mask, host);
  return true;
}

/// Compares both halves, as lanes before have left them, and says which lanes swap; swaps the lower one.
bool swap_lower(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, 16, host)) return false;
  std::map<const std::byte*, uint64_t> uppers;  // those that are to be put
  uint32_t taken = 0;
  each_lane(mask, [&](int lane) {
    uint64_t lower, upper;
    std::memcpy(&lower, host[lane], 8), std::memcpy(&upper, host[lane] + 8, 8);
    if (const auto put = uppers.find(host[lane]); put != uppers.end()) upper = put->second;
    if (lower == warp.wide(op.s[1])[lane] && upper == warp.wide(op.slots[0])[lane]) {
      taken |= 1u << lane;
      std::memcpy(host[lane], warp.wide(op.s[2]) + lane, 8);
      uppers[host[lane]] = warp.wide(op.slots[1])[lane];
    }
    if (op.d != no_slot) warp.wide(op.d)[lane] = lower;
  });
  warp.mask(op.d2) = (warp.mask(op.d2) & ~mask) | taken;
  return true;
}

bool swap_upper(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, 8, host)) return false;
  const uint32_t taken = warp.mask(op.s[3]);
  each_lane(mask, [&](int lane) {
    uint64_t upper;
    std::memcpy(&upper, host[lane], 8);
    if (taken >> lane & 1) std::memcpy(host[lane], warp.wide(op.s[2]) + lane, 8);
    if (op.d != no_slot) warp.wide(op.d)[lane] = upper;
  });
  return true;
}
bool swap_half(Warp& warp, const Op& op, uint32_t mask) {
  return op.immediate == lower_half ? swap_lower(warp, op, mask) : swap_upper(warp, op, mask);
}

/// atom.exch.b128 d, [a], b; atom.cas.b128 d, [a], b, c (PTX ISA, "atom"): registers are pairs of 64 bits.
void decode_pair(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  const std::vector<std::string>& words = decoder.parts(instruction);
  const bool swaps = words[words.size() - 2] == "cas";
  op.space = words[1] == "global" ? Space::global : words[1] == "shared" ? Space::shared : Space::generic;
  if (op.space != Space::shared) decoder.mark_global_atomics();
  decoder.expect_operands(instruction, swaps ? 4 : 3, swaps ? 5 : 4);
  op.type = Type::b64, op.element_bytes = 8, op.d_cell = Cell::wide;
  decoder.address(instruction.operands[1], op);
  const bool returns = instruction.operands[0].kind == Operand::Kind::reg;
  const auto old = returns ? decoder.register_pair(instruction.operands[0]) : std::array{no_slot, no_slot};
  const auto given = decoder.register_pair(instruction.operands[2]);
  const auto put = swaps ? decoder.register_pair(instruction.operands[3]) : std::array{no_slot, no_slot};
  op.source_count = swaps ? 3 : 2;
  Op lower = op;
  lower.immediate = lower_half, lower.d = old[0], lower.s[1] = given[0], lower.s[2] = put[0];
  op.immediate = upper_half, op.d = old[1], op.s[1] = given[1], op.s[2] = put[1], op.offset += 8;
  if (swaps) {
    decoder.set_slots(lower, {given[1], put[1]});
    lower.d2 = op.s[3] = decoder.new_cell(Cell::mask);
  }
  decoder.emit(lower);
}

Meaning atomic_meaning(Type type) {
  return {.flow = Flow::atomic, .result = type, .operands = {Role::write_any, Role::modify_at, Role::read}};
}

void add_vectors(std::vector<Row>& rows, const char* lengths_and_type, Type type) {
  add_warp_row(rows, std::string("{atom,red}{,.global}.add.") + lengths_and_type, atomic_meaning(type),
               nullptr, decode_vector);
}

template <class T, class F>
void add_atomic(std::vector<Row>& rows, const std::string& operation_and_type, Type type, F) {
  add_warp_row(rows, "{atom,red}{,.global,.shared}." + operation_and_type, atomic_meaning(type), atomic<T, F>,
               decode_atomic);
}

/// The asynchronous form of what `add` added last.
template <class T, class F>
void add_async(std::vector<Row>& rows, const std::string& operation_and_type, Type type, F) {
  add_warp_row(rows, "red.async.shared.mbarrier::complete_tx::bytes." + operation_and_type,
               {.flow = Flow::atomic,
                .result = type,
                .operands = {Role::modify_at, Role::read, Role::modify_at},
                .asynchronous = {Completion::mbarrier, Step::arrive}},
               reduce_async<T, F>, decode_reduce_async);
}

template <class T>
void add_order(std::vector<Row>& rows, const std::string& name, Type type) {
  add_atomic<T>(rows, "min." + name, type, [](T a, T b, T) { return b < a ? b : a; });
  add_atomic<T>(rows, "max." + name, type, [](T a, T b, T) { return a < b ? b : a; });
}

template <class T>
void add_bits(std::vector<Row>& rows, const std::string& name, Type type) {
  add_atomic<T>(rows, "and." + name, type, [](T a, T b, T) { return a & b; });
  add_atomic<T>(rows, "or." + name, type, [](T a, T b, T) { return a | b; });
  add_atomic<T>(rows, "xor." + name, type, [](T a, T b, T) { return a ^ b; });
  add_atomic<T>(rows, "exch." + name, type, [](T, T b, T) { return b; });
  add_atomic<T>(rows, "cas." + name, type, [](T a, T b, T c) { return a == b ? c : a; });
}

/// add.f32 flushes subnormal operands and results in global memory and keeps them in shared memory (PTX ISA,
/// "atom"); NaN results are canonical.
struct GlobalSum {
  static uint32_t flushed(uint32_t x) { return x & 0x7f800000u ? x : x & 0x80000000u; }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t) const {
    const float sum = std::bit_cast<float>(flushed(a)) + std::bit_cast<float>(flushed(b));
    return sum != sum ? 0x7fffffffu : flushed(std::bit_cast<uint32_t>(sum));
  }
};
struct SharedSum {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t) const {
    const float sum = std::bit_cast<float>(a) + std::bit_cast<float>(b);
    return sum != sum ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
  }
};
/// add.f64: a NaN passes with sign and payload, in shared memory made quiet; of two the second.
template <uint64_t quiet>
struct DoubleSum {
  uint64_t operator()(uint64_t a, uint64_t b, uint64_t) const {
    const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b), sum = x + y;
    if (sum == sum) return std::bit_cast<uint64_t>(sum);
    return y != y ? b | quiet : x != x ? a | quiet : 0xfff8000000000000ull;
  }
};

template <class T, class Global, class Shared>
void add_by_space(std::vector<Row>& rows, const std::string& operation_and_type, Type type) {
  add_atomic<T>(rows, operation_and_type, type, Global{});
  rows.back().warp = atomic_by_space<T, Global, Shared>;
}

/// The sum that the machine's own add gives, of one lane.
template <class T>
T half_sum(const Row* row, T a, T b) {
  uint32_t x[32] = {a}, y[32] = {b}, d[32];
  row->lanes(d, x, y, nullptr, nullptr);
  return static_cast<T>(d[0]);
}
template <class T>
void add_halves(std::vector<Row>& rows) {
  if constexpr (sizeof(T) == 2) {
    add_atomic<T>(rows, "add.f16", Type::f16, [](T a, T b, T) {
      static const Row* const row = find_row("add.f16");
      return half_sum<T>(row, a, b);
    });
    add_atomic<T>(rows, "add.bf16", Type::bf16, [](T a, T b, T) {
      static const Row* const row = find_row("add.bf16");
      return half_sum<T>(row, a, b);
    });
  } else {
    add_atomic<T>(rows, "add.f16x2", Type::f16x2, [](T a, T b, T) {
      static const Row* const row = find_row("add.f16x2");
      return half_sum<T>(row, a, b);
    });
    add_atomic<T>(rows, "add.bf16x2", Type::bf16x2, [](T a, T b, T) {
      static const Row* const row = find_row("add.bf16x2");
      return half_sum<T>(row, a, b);
    });
  }
}

}  // namespace

void add_atomic_rows(std::vector<Row>& rows) {
  const auto sum = [](auto a, auto b, auto) { return a + b; };
  const auto up = [](uint32_t a, uint32_t b, uint32_t) { return a >= b ? 0 : a + 1; };
  const auto down = [](uint32_t a, uint32_t b, uint32_t) { return a == 0 || a > b ? b : a - 1; };
  add_atomic<uint32_t>(rows, "add.{u32,s32}", Type::u32, sum);
  add_atomic<uint64_t>(rows, "add.{u64,s64}", Type::u64, sum);
  add_by_space<uint32_t, GlobalSum, SharedSum>(rows, "add.f32", Type::f32);
  add_by_space<uint64_t, DoubleSum<0>, DoubleSum<0x0008000000000000ull>>(rows, "add.f64", Type::f64);
  add_atomic<uint32_t>(rows, "inc.u32", Type::u32, up);
  add_atomic<uint32_t>(rows, "dec.u32", Type::u32, down);
  add_halves<uint16_t>(rows);
  add_halves<uint32_t>(rows);
  add_vectors(rows, "{v2,v4}.f32", Type::f32);
  add_vectors(rows, "{v2,v4,v8}.f16", Type::f16);
  add_vectors(rows, "{v2,v4,v8}.bf16", Type::bf16);
  add_vectors(rows, "{v2,v4}.f16x2", Type::f16x2);
  add_vectors(rows, "{v2,v4}.bf16x2", Type::bf16x2);
  add_order<uint32_t>(rows, "u32", Type::u32);
  add_order<int32_t>(rows, "s32", Type::s32);
  add_order<uint64_t>(rows, "u64", Type::u64);
  add_order<int64_t>(rows, "s64", Type::s64);
  add_atomic<uint16_t>(rows, "cas.b16", Type::b16,
                       [](uint16_t a, uint16_t b, uint16_t c) { return a == b ? c : a; });
  add_bits<uint32_t>(rows, "{b32,u32,s32,f32}", Type::b32);
  add_bits<uint64_t>(rows, "{b64,u64,s64,f64}", Type::b64);
  add_warp_row(rows, "atom{,.global,.shared}.exch.b128", atomic_meaning(Type::b64), exchange_half,
               decode_pair);
  add_warp_row(rows, "atom{,.global,.shared}.cas.b128", atomic_meaning(Type::b64), swap_half, decode_pair);
  add_async<uint32_t>(rows, "add.{u32,s32}", Type::u32, sum);
  add_async<uint64_t>(rows, "add.{u64,s64}", Type::u64, sum);
  add_async<uint32_t>(rows, "inc.u32", Type::u32, up);
  add_async<uint32_t>(rows, "dec.u32", Type::u32, down);
  add_async<uint32_t>(rows, "min.u32", Type::u32, [](auto a, auto b, auto) { return b < a ? b : a; });
  add_async<uint32_t>(rows, "max.u32", Type::u32, [](auto a, auto b, auto) { return a < b ? b : a; });
  add_async<int32_t>(rows, "min.s32", Type::s32, [](auto a, auto b, auto) { return b < a ? b : a; });
  add_async<int32_t>(rows, "max.s32", Type::s32, [](auto a, auto b, auto) { return a < b ? b : a; });
  add_async<uint32_t>(rows, "and.b32", Type::b32, [](auto a, auto b, auto) { return a & b; });
  add_async<uint32_t>(rows, "or.b32", Type::b32, [](auto a, auto b, auto) { return a | b; });
  add_async<uint32_t>(rows, "xor.b32", Type::b32, [](auto a, auto b, auto) { return a ^ b; });
}

}  // namespace assay::vm
