// ld, st, prefetch, and what turns addresses from one space to another (PTX ISA 9.7.9).
#include <cstring>
#include <span>

#include "src/base/ptx/type.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/mbarrier.h"
#include "src/base/vm/memory.h"
#include "src/base/vm/rows/warp_rows.h"
#include "src/base/vm/warp.h"

namespace assay::vm {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr const char* types = "{b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}";

Space space_named(const std::string& word) {
  if (word == "global") return Space::global;
  if (word == "shared") return Space::shared;
  if (word == "local") return Space::local;
  if (word == "param") return Space::param;
  if (word == "const") return Space::constant;
  return Space::none;
}

/// Where the lanes of one ld or st find a vector element.
struct Elements {
  std::byte* const* host;
  uint32_t offset, mask;
  Places places;  ///< of whole vectors
};

/// Loads an element of T into cells of C: signed types are sign-extended to the register, others
/// zero-extended.
template <class T, class C>
void load_lanes(const Elements& from, void* cell) {
  auto* to = static_cast<C*>(cell);
  if (from.places == Places::one) {
    T value;
    std::memcpy(&value, from.host[0] + from.offset, sizeof(T));
    for (int lane = 0; lane < 32; ++lane) to[lane] = static_cast<C>(value);
    return;
  }
  if (from.places == Places::in_row) {
    T row[32];
    std::memcpy(row, from.host[0], sizeof row);
    for (int lane = 0; lane < 32; ++lane) to[lane] = static_cast<C>(row[lane]);
    return;
  }
  const auto load_one = [&](int lane) {
    T value;
    std::memcpy(&value, from.host[lane] + from.offset, sizeof(T));
    to[lane] = static_cast<C>(value);
  };
  if (from.mask != ~0u) return each_lane(from.mask, load_one);
#pragma GCC unroll 8
  for (int lane = 0; lane < 32; ++lane) load_one(lane);
}

template <class C>
void load_element(Type type, uint32_t bytes, const Elements& from, void* cell) {
  const bool extend = is_signed(type);
  if (bytes == 4) return extend ? load_lanes<int32_t, C>(from, cell) : load_lanes<uint32_t, C>(from, cell);
  if (bytes == 8) return load_lanes<uint64_t, C>(from, cell);
  if (bytes == 2) return extend ? load_lanes<int16_t, C>(from, cell) : load_lanes<uint16_t, C>(from, cell);
  return extend ? load_lanes<int8_t, C>(from, cell) : load_lanes<uint8_t, C>(from, cell);
}

/// Of Warp::places what holds for elements: only single ones lie in a row without gaps.
Places places_of_elements(const Warp& warp, const Op& op) {
  return warp.places == Places::in_row && op.vector_length > 1 ? Places::apart : warp.places;
}

using Words = uint32_t __attribute__((vector_size(16)));

/// Words at[0..3] of four lanes, transposed: word i of each.
struct Quads {
  Words word[4];
  static Quads transposed(const Words& a, const Words& b, const Words& c, const Words& d) {
    const Words ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Words above = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                beyond = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    return {{__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
             __builtin_shufflevector(above, beyond, 0, 1, 4, 5),
             __builtin_shufflevector(above, beyond, 2, 3, 6, 7)}};
  }
};

Words four_words(const void* from) {
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

/// .v4 of 32 bits, all lanes.
void load_quads(Warp& warp, const Op& op, std::byte* const* host) {
  for (int lane = 0; lane < 32; lane += 4) {
    const Quads of = Quads::transposed(four_words(host[lane]), four_words(host[lane + 1]),
                                       four_words(host[lane + 2]), four_words(host[lane + 3]));
    for (int i = 0; i < 4; ++i) std::memcpy(warp.word(op.slots[i]) + lane, &of.word[i], sizeof of.word[i]);
  }
}
void store_quads(Warp& warp, const Op& op, std::byte* const* host) {
  for (int lane = 0; lane < 32; lane += 4) {
    const auto part = [&](int i) { return four_words(warp.word(op.slots[i]) + lane); };
    const Quads of = Quads::transposed(part(0), part(1), part(2), part(3));
    for (int i = 0; i < 4; ++i) std::memcpy(host[lane + i], &of.word[i], sizeof of.word[i]);
  }
}
bool is_whole_quad(const Op& op, uint32_t mask) {
  return mask == ~0u && op.vector_length == 4 && op.element_bytes == 4 && op.immediate == 0;
}

/// Cell of each vector element: bit i of Op::immediate is set where the register is 64 bits wide.
bool load(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, op.element_bytes * op.vector_length, host)) return false;
  if (is_whole_quad(op, mask) && warp.places != Places::one) {
    load_quads(warp, op, host);
    return true;
  }
  Elements from{host, 0, mask, places_of_elements(warp, op)};
  for (uint32_t i = 0; i < op.vector_length; ++i, from.offset += op.element_bytes) {
    void* cell = warp.file + op.slots[i];
    if ((op.immediate >> i) & 1)
      load_element<uint64_t>(op.type, op.element_bytes, from, cell);
    else
      load_element<uint32_t>(op.type, op.element_bytes, from, cell);
  }
  return true;
}

template <class T, class C>
void store_lanes(const Elements& to, const void* cell) {
  const auto* from = static_cast<const C*>(cell);
  if (to.places == Places::in_row) {
    T row[32];
    for (int lane = 0; lane < 32; ++lane) row[lane] = static_cast<T>(from[lane]);
    std::memcpy(to.host[0], row, sizeof row);
    return;
  }
  each_lane(to.mask, [&](int lane) {
    const auto value = static_cast<T>(from[lane]);
    std::memcpy(to.host[lane] + to.offset, &value, sizeof(T));
  });
}

template <class C>
void store_element(uint32_t bytes, const Elements& to, const void* cell) {
  if (bytes == 4) return store_lanes<uint32_t, C>(to, cell);
  if (bytes == 8) return store_lanes<uint64_t, C>(to, cell);
  if (bytes == 2) return store_lanes<uint16_t, C>(to, cell);
  return store_lanes<uint8_t, C>(to, cell);
}

/// Lanes that store to one address: the highest lane's value stays.
bool store(Warp& warp, const Op& op, uint32_t mask) {
  std::byte* host[32];
  if (!translate(warp, op, mask, op.element_bytes * op.vector_length, host)) return false;
  if (is_whole_quad(op, mask)) {
    store_quads(warp, op, host);
    return true;
  }
  Elements to{host, 0, mask, places_of_elements(warp, op)};
  for (uint32_t i = 0; i < op.vector_length; ++i, to.offset += op.element_bytes) {
    const void* cell = warp.file + op.slots[i];
    if ((op.immediate >> i) & 1)
      store_element<uint64_t>(op.element_bytes, to, cell);
    else
      store_element<uint32_t>(op.element_bytes, to, cell);
  }
  return true;
}

/// A register of 128 bits is two of 64 (PTX ISA 9.7.9.8 and 9.7.9.11, "ld", "st": type .b128).
void decode_pair_access(Decoder& decoder, Op& op, const Operand& data, bool is_load) {
  const std::array<Slot, 2> halves = decoder.register_pair(data);
  op.type = Type::b64, op.element_bytes = 8, op.vector_length = 2;
  op.immediate = 0b11;
  decoder.set_slots(op, {halves[0], halves[1]}, is_load ? 2 : 0);
  op.d_cell = Cell::none;
}

/// {space}{.vN}.type of ld and st.
void decode_access(Decoder& decoder, const ptx::Instruction& instruction, Op& op, const Operand& address,
                   const Operand& data, bool is_load) {
  op.space = Space::generic;
  for (const std::string& word : decoder.parts(instruction)) {
    if (const Space space = space_named(word); space != Space::none)
      op.space = space;
    else if (word == "v2")
      op.vector_length = 2;
    else if (word == "v4")
      op.vector_length = 4;
    else if (word == "v8")
      op.vector_length = 8;
    else if (const auto type = ptx::type_named(word))
      op.type = *type;
  }
  op.element_bytes = static_cast<uint8_t>(ptx::bytes_of(op.type));
  decoder.address(address, op);
  if (op.type == Type::b128) return decode_pair_access(decoder, op, data, is_load);
  const std::span<const Operand> elements = data.kind == Operand::Kind::vector
                                                ? std::span<const Operand>(data.elements)
                                                : std::span<const Operand>(&data, 1);
  if (elements.size() != op.vector_length) decoder.fail(instruction, "has a vector of a wrong length");
  std::vector<Slot> slots;
  for (size_t i = 0; i < elements.size(); ++i) {
    Cell cell = ptx::bytes_of(op.type) == 8 ? Cell::wide : Cell::word;
    if (elements[i].kind == Operand::Kind::reg) {
      const auto [slot, have] = decoder.register_cell(elements[i]);
      if (have == Cell::mask || (cell == Cell::wide && have == Cell::word))
        decoder.fail(instruction, "a register is narrower than the element");
      cell = have;
      slots.push_back(slot);
    } else {
      slots.push_back(is_load ? decoder.destination(elements[i], op.type)
                              : decoder.source(elements[i], op.type));
    }
    if (cell == Cell::wide) op.immediate |= uint64_t{1} << i;
  }
  decoder.set_slots(op, slots, is_load ? slots.size() : 0);
  op.d_cell = Cell::none;
}

void decode_load(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 3);  // a third is a cache policy
  decode_access(decoder, instruction, op, instruction.operands[1], instruction.operands[0], true);
}
void decode_store(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 3);
  decode_access(decoder, instruction, op, instruction.operands[0], instruction.operands[1], false);
}

bool store_async(Warp& warp, const Op& op, uint32_t mask) {
  return store(warp, op, mask) && complete_stored(warp, op, mask);
}

void decode_store_async(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 3, 3);
  decode_access(decoder, instruction, op, instruction.operands[0], instruction.operands[1], false);
  decode_stored_barrier(decoder, instruction, op);
}

/// cvta{.to}.space: global, constant and parameter addresses are generic already; shared and local ones lie
/// in windows.
bool convert_address(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    if (op.d_cell == Cell::wide)
      warp.wide(op.d)[lane] = warp.wide(op.s[0])[lane] + op.immediate;
    else
      warp.word(op.d)[lane] = warp.word(op.s[0])[lane];
  });
  return true;
}

void decode_convert_address(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  const std::vector<std::string>& words = decoder.parts(instruction);
  const bool to = words[1] == "to";
  const std::string& space = words[to ? 2 : 1];
  const uint64_t window = space == "shared" ? shared_window : space == "local" ? local_window : 0;
  op.immediate = to ? 0 - window : window;
  const Operand& symbol = instruction.operands[1];
  op.d = decoder.destination(instruction.operands[0], Type::u64);
  op.s[0] = decoder.source(symbol, Type::u64);
  op.d_cell = Cell::wide;
  op.source_count = 1;
}

/// isspacep.space p, a: the window that a generic address lies in.
bool is_space(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t result = 0;
  each_lane(mask, [&](int lane) {
    const uint64_t address = warp.wide(op.s[0])[lane];
    const bool shared = address - shared_window < window_bytes, local = address - local_window < window_bytes;
    const bool answer = op.space == Space::shared  ? shared
                        : op.space == Space::local ? local
                                                   : !shared && !local;
    result |= static_cast<uint32_t>(answer) << lane;
  });
  warp.mask(op.d) = (warp.mask(op.d) & ~mask) | result;
  return true;
}

void decode_is_space(Decoder& decoder, const ptx::Instruction& instruction, Op& op) {
  decoder.expect_operands(instruction, 2, 2);
  op.space = instruction.form.space;
  op.d = decoder.destination(instruction.operands[0], Type::pred);
  op.s[0] = decoder.source(instruction.operands[1], Type::u64);
  op.d_cell = Cell::mask;
  op.source_count = 1;
}

void decode_nothing(Decoder&, const ptx::Instruction&, Op& op) {
  op.kind = Kind::nothing;
}

}  // namespace

void add_memory_rows(std::vector<Row>& rows) {
  add_warp_row(rows, std::string("{ld,ldu}{,.global,.shared,.const,.local,.param}{,.v2,.v4,.v8}.") + types,
               {.flow = Flow::load, .operands = {Role::write, Role::load_from, Role::read}}, load,
               decode_load);
  add_warp_row(rows, std::string("st{,.global,.shared,.local,.param}{,.v2,.v4,.v8}.") + types,
               {.flow = Flow::store, .operands = {Role::store_to, Role::read}}, store, decode_store);
  add_warp_row(rows, "{ld,ldu}{,.global,.shared,.const,.local,.param}.b128",
               {.flow = Flow::load, .operands = {Role::write, Role::load_from, Role::read}}, load,
               decode_load);
  add_warp_row(rows, "st{,.global,.shared,.local,.param}.b128",
               {.flow = Flow::store, .operands = {Role::store_to, Role::read}}, store, decode_store);
  add_warp_row(rows,
               "st.async.shared.mbarrier::complete_tx::bytes{,.v2,.v4}.{b32,u32,s32,f32,b64,u64,s64,f64}",
               {.flow = Flow::store,
                .operands = {Role::store_to, Role::read, Role::modify_at},
                .asynchronous = {Completion::mbarrier, Step::arrive}},
               store_async, decode_store_async);
  add_warp_row(rows, "cvta{,.to}.{global,shared,local,const,param}.{u64,b64}", {.flow = Flow::address},
               convert_address, decode_convert_address);
  add_warp_row(rows, "isspacep.{global,shared,shared::cluster,local}", {.flow = Flow::comparison}, is_space,
               decode_is_space);
  for (const char* pattern :
       {"prefetch{,.global,.local}.{L1,L2}", "prefetch.global.L2::{evict_last,evict_normal}", "prefetchu.L1",
        "applypriority{,.global}.L2::evict_normal"})
    add_warp_row(rows, pattern, {.operands = {Role::read}}, nullptr, decode_nothing);
}

}  // namespace assay::vm
