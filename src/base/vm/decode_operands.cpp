// Operands -> slots: registers, immediates, special registers, addresses, and where variables lie.
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format.h"
#include "src/base/vm/decoder.h"
#include "src/base/vm/memory.h"

namespace assay::vm {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

constexpr Slot constant_flag = 0x80000000u;  // slots of constants until the register part's size is known
constexpr uint32_t cell_bytes(Cell cell) {
  return cell == Cell::wide ? 256 : cell == Cell::word ? 128 : 64;
}

constexpr int64_t largest_local =
    512 << 10;  // bytes per thread (CUDA C++ Programming Guide, "Compute Capabilities")
constexpr int64_t stack_bytes = 32 << 10;  // of frames of recursion, per thread; CUDA's own default is 1 KiB
// Variables of a module lie as far apart as buffers do, as many as fit below these; further ones, as headers
// declare by hundreds, lie closer, behind the functions.
constexpr uint64_t variables_apart = (allocation_base - variable_base) / allocation_gap;
constexpr uint64_t further_base = function_base + allocation_gap, further_gap = uint64_t{1} << 26;
constexpr uint64_t most_variables = variables_apart + (parameter_base - further_base) / further_gap;
constexpr int64_t largest_declared = 1 << 24;  // far above any block's; the launch checks what a block has

int64_t align_up(int64_t value, int64_t align) {
  return align > 1 ? (value + align - 1) / align * align : value;
}

}  // namespace

uint64_t variable_address(int32_t index) {
  const auto i = static_cast<uint64_t>(index);
  if (i < variables_apart) return variable_base + i * allocation_gap;
  return further_base + (i - variables_apart) * further_gap;
}

uint64_t function_address(int32_t index) {
  return function_base + static_cast<uint64_t>(index) * 16;
}

std::vector<uint64_t> variable_addresses(const ptx::Module& module,
                                         const std::map<std::string, uint64_t>& places) {
  std::vector<uint64_t> addresses;
  if (module.variables.size() > most_variables)
    throw BadInput(fmt::format("{}: {} variables; at most {} are possible", module.path,
                               module.variables.size(), most_variables));
  for (const ptx::Variable& variable : module.variables) {
    if (addresses.size() >= variables_apart && variable.bytes > static_cast<int64_t>(further_gap / 2))
      throw BadInput(
          fmt::format("{}: variable {} of {} bytes behind {} others: at most {} are possible there",
                      module.path, variable.name, variable.bytes, addresses.size(), further_gap / 2));
    const auto placed = places.find(variable.name);
    addresses.push_back(placed != places.end() ? placed->second
                                               : variable_address(static_cast<int32_t>(addresses.size())));
  }
  return addresses;
}

std::vector<std::byte> initial_bytes(const ptx::Variable& variable, const std::vector<uint64_t>& addresses) {
  std::vector<std::byte> bytes(static_cast<size_t>(variable.bytes), std::byte{0});
  if (!variable.initial.empty()) std::memcpy(bytes.data(), variable.initial.data(), variable.initial.size());
  for (const ptx::Variable::Address& address : variable.addresses) {
    const uint64_t to = (address.function >= 0 ? function_address(address.function)
                                               : addresses[static_cast<size_t>(address.variable)]) +
                        static_cast<uint64_t>(address.offset);
    std::memcpy(bytes.data() + address.at, &to, sizeof to);
  }
  return bytes;
}

std::string source_name(const std::string& name) {
  if (!name.starts_with("_Z")) return name;  // "s" would be short
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !plain) return name;
  const std::string whole = plain.get();
  const size_t scope = whole.rfind("::");
  return scope == std::string::npos ? whole : whole.substr(scope + 2);
}

namespace {

void name_area(std::vector<NamedArea>& areas, const ptx::Variable& variable, int64_t offset, int32_t function,
               int32_t index) {
  areas.push_back({source_name(variable.name), static_cast<uint32_t>(offset),
                   static_cast<uint32_t>(variable.bytes), function, index, false});
}

}  // namespace

std::string area_text(const std::vector<NamedArea>& areas, uint64_t address) {
  const auto below = static_cast<int64_t>(address);
  if (below < 0 && !areas.empty()) return std::to_string(-below) + " bytes before " + areas.front().name;
  const NamedArea* before = nullptr;
  for (const NamedArea& area : areas)
    if (area.offset <= address) before = &area;
  if (!before) return "byte " + std::to_string(below);
  const uint64_t offset = address - before->offset;
  if (before->dynamic || offset < before->bytes)
    return offset == 0 ? before->name : before->name + " + " + std::to_string(offset);
  const uint64_t past = offset - before->bytes;
  return (past == 0 ? "the byte" : std::to_string(past) + " bytes") + " past the end of " + before->name +
         " (" + std::to_string(before->bytes) + " bytes)";
}

/// Static shared variables of the module and of the entry, then dynamic shared memory; call frames in local
/// memory.
void Decoder::lay_out_memory() {
  int64_t shared = 0, local = 0, dynamic_align = 16;
  auto limit = [this](int64_t bytes, int64_t most, const char* what) {
    if (bytes > most)
      throw BadInput(module_->path + ": entry " + module_->functions[static_cast<size_t>(code_->entry)].name +
                     " needs " + std::to_string(bytes) + " bytes of " + what + "; at most " +
                     std::to_string(most) + " are possible");
  };
  variable_offsets_.assign(module_->variables.size(), -1);
  for (size_t i = 0; i < module_->variables.size(); ++i) {
    const ptx::Variable& variable = module_->variables[i];
    if (variable.space != Space::shared) continue;
    if (variable.bytes == 0) {
      dynamic_align = std::max<int64_t>(dynamic_align, variable.align);
      continue;
    }
    shared = align_up(shared, variable.align);
    variable_offsets_[i] = shared;
    name_area(code_->shared_areas, variable, shared, -1, static_cast<int32_t>(i));
    shared += variable.bytes;
    limit(shared, largest_declared, "shared memory");
  }
  std::vector<int32_t> reached = call_graph_.reached_from(code_->entry);
  std::sort(reached.begin(), reached.end());
  for (const int32_t f : reached) {
    const ptx::Function& function = module_->functions[static_cast<size_t>(f)];
    const int64_t before = local;
    const bool framed = call_graph_.leads_to_itself(f);
    if (framed) local = 0;
    for (size_t v = 0; v < function.variables.size(); ++v) {
      const ptx::Variable& variable = function.variables[v];
      int64_t& next = variable.space == Space::shared ? shared : local;
      next = align_up(next, variable.align);
      function_offsets_[{f, static_cast<int32_t>(v)}] = next;
      if (variable.space == Space::shared || !framed)
        name_area(variable.space == Space::shared ? code_->shared_areas : code_->local_areas, variable, next,
                  f, static_cast<int32_t>(v));
      next += variable.bytes;
    }
    limit(local, largest_local, "local memory per thread");
    limit(shared, largest_declared, "shared memory");
    if (function.entry) continue;
    for (size_t p = 0; p < function.parameters.size() + function.returns.size(); ++p) {
      const size_t inputs = function.parameters.size();
      const ptx::Parameter& parameter = p < inputs ? function.parameters[p] : function.returns[p - inputs];
      local = align_up(local, parameter.align);
      function_offsets_[{f, -1 - static_cast<int32_t>(p)}] = local;
      local += parameter.bytes;
    }
    limit(local, largest_local, "local memory per thread");
    if (framed) {
      kept_registers_[f] = align_up(local, 8);
      frame_bytes_[f] =
          align_up(kept_registers_[f] + 16 * static_cast<int64_t>(function.registers.size()), 16);
      local = before;
    }
  }
  stack_ = align_up(local, 16);
  if (!frame_bytes_.empty()) local = stack_ + stack_bytes;
  local = lay_out_stack(reached, local);
  shared = align_up(shared, dynamic_align);
  for (size_t i = 0; i < module_->variables.size(); ++i)
    if (module_->variables[i].space == Space::shared && variable_offsets_[i] < 0) {
      variable_offsets_[i] = shared;
      name_area(code_->shared_areas, module_->variables[i], shared, -1, static_cast<int32_t>(i));
      code_->shared_areas.back().dynamic = true;
    }
  code_->shared_bytes = static_cast<uint32_t>(shared);
  code_->local_bytes = static_cast<uint32_t>(align_up(local, 16));
}

Slot Decoder::register_slot(int32_t reg) {
  std::vector<Slot>& known = registers_[static_cast<size_t>(function_)];
  if (known.empty()) known.assign(here().registers.size(), no_slot);
  Slot& slot = known[static_cast<size_t>(reg)];
  if (slot != no_slot) return slot;
  const Type type = here().registers[static_cast<size_t>(reg)].type;
  slot = new_cell(type == Type::b128 ? Cell::wide : cell_of(type));
  if (type == Type::b128) new_cell(Cell::wide);
  return slot;
}

Slot Decoder::new_cell(Cell cell) {
  const Slot slot = code_->register_bytes;
  code_->register_bytes += cell_bytes(cell);
  note_cell(slot, cell);
  return slot;
}

void Decoder::note_cell(Slot slot, Cell cell) {
  if (slot / 64 >= cells_.size()) cells_.resize(slot / 64 + 1, Cell::none);
  cells_[slot / 64] = cell;
}

Slot Decoder::constant_slot(uint64_t bits, Cell cell) {
  if (cell == Cell::word) bits &= 0xffffffffu;
  const auto [found, is_new] = constants_.try_emplace({bits, cell}, no_slot);
  if (is_new) {
    found->second = constant_flag | constant_bytes_;
    constant_bytes_ += cell_bytes(cell);
    code_->immediates.push_back({found->second, cell, bits});
  }
  return found->second;
}

Slot Decoder::special_slot(const std::string& name, Cell cell) {
  const auto [found, is_new] = specials_.try_emplace(name + (cell == Cell::wide ? ":wide" : ""), no_slot);
  if (is_new) {
    found->second = constant_flag | constant_bytes_;
    constant_bytes_ += cell_bytes(cell);
    code_->specials.push_back({found->second, cell, name});
  }
  return found->second;
}

std::pair<Slot, Cell> Decoder::register_cell(const Operand& operand) {
  if (operand.kind != Operand::Kind::reg) fail("expected a register");
  if (!operand.name.empty()) fail("a part of a register, ." + operand.name + ", is no operand here");
  const Type type = here().registers[static_cast<size_t>(operand.reg)].type;
  return {register_slot(operand.reg), type == Type::b128 ? Cell::none : cell_of(type)};
}

std::array<Slot, 2> Decoder::register_pair(const Operand& operand) {
  const auto [slot, cell] = register_cell(operand);
  if (cell != Cell::none) fail("expected a register of 128 bits");
  return {slot, slot + cell_bytes(Cell::wide)};
}

Slot Decoder::source(const Operand& operand, Type type) {
  const Cell cell = cell_of(type);
  if (operand.negated) fail("a negated operand is not allowed here");
  switch (operand.kind) {
    case Operand::Kind::reg: {
      const auto [slot, have] = register_cell(operand);
      if (have != cell)
        fail("operand " + here().registers[static_cast<size_t>(operand.reg)].name + " is declared ." +
             std::string(ptx::name_of(here().registers[static_cast<size_t>(operand.reg)].type)) +
             ", the instruction reads ." + std::string(ptx::name_of(type)));
      return slot;
    }
    case Operand::Kind::immediate:
      return constant_slot(literal_bits(operand, type), cell);
    case Operand::Kind::special:
      return special_slot(operand.name, cell);
    case Operand::Kind::symbol:
      if (cell == Cell::mask) fail("an address is no predicate");
      if (is_framed(operand)) {
        if (cell != Cell::wide) fail("an address in a frame of recursion has 64 bits");
        return frame_address(operand);
      }
      return constant_slot(symbol_value(operand) + static_cast<uint64_t>(operand.offset), cell);
    case Operand::Kind::sink:
      return constant_slot(0, cell);
    default:
      fail("unexpected kind of source operand");
  }
}

Slot Decoder::destination(const Operand& operand, Type type) {
  if (operand.kind == Operand::Kind::sink) {
    scratch_.resize(4, no_slot);
    Slot& slot = scratch_[static_cast<size_t>(cell_of(type))];
    if (slot == no_slot) slot = new_cell(cell_of(type));
    return slot;
  }
  const auto [slot, cell] = register_cell(operand);
  if (cell != cell_of(type))
    fail("destination " + here().registers[static_cast<size_t>(operand.reg)].name + " does not fit ." +
         std::string(ptx::name_of(type)));
  return slot;
}

/// An immediate as the bits of `type`: decimal and 0d literals are rounded to narrower float types.
uint64_t Decoder::literal_bits(const Operand& operand, Type type) const {
  if (type == Type::pred) return operand.bits ? 0xffffffffu : 0;
  if (!operand.is_float_literal) {
    if (type == Type::f64 || type == Type::f32) {
      // An integer where a float is read is its value in decimal text ("1" for 1.0).
      const auto value = static_cast<double>(static_cast<int64_t>(operand.bits));
      return type == Type::f64 ? std::bit_cast<uint64_t>(value)
                               : std::bit_cast<uint32_t>(static_cast<float>(value));
    }
    return operand.bits;
  }
  if (operand.literal_bytes == 4) {
    if (type == Type::f64)
      return std::bit_cast<uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.bits))));
    return operand.bits;
  }
  const auto value = std::bit_cast<double>(operand.bits);
  switch (type) {
    case Type::f32:
    case Type::tf32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Type::f16:
      return encode(Dtype::fp16, value);
    case Type::bf16:
      return encode(Dtype::bf16, value);
    default:
      return operand.bits;
  }
}

Slot Decoder::scratch_word() {
  return new_cell(Cell::word);
}

uint64_t Decoder::constant(const Operand& operand) {
  if (operand.kind != Operand::Kind::immediate) fail("expected a constant operand");
  return operand.bits;
}

Space Decoder::symbol_space(const Operand& operand) const {
  if (operand.parameter >= 0) return here().entry ? Space::global : Space::local;
  const auto count = static_cast<int32_t>(module_->variables.size());
  const ptx::Variable& variable = operand.symbol < count
                                      ? module_->variables[static_cast<size_t>(operand.symbol)]
                                      : here().variables[static_cast<size_t>(operand.symbol - count)];
  if (variable.space == Space::shared) return Space::shared;
  if (variable.space == Space::local || variable.space == Space::param) return Space::local;
  return Space::global;
}

/// Address of a variable or parameter in its own space.
uint64_t Decoder::symbol_value(const Operand& operand) {
  if (operand.parameter >= 0) {
    if (here().entry)
      return parameter_base +
             static_cast<uint64_t>(here().parameters[static_cast<size_t>(operand.parameter)].offset);
    return static_cast<uint64_t>(function_offsets_.at({function_, -1 - operand.parameter}));
  }
  const auto count = static_cast<int32_t>(module_->variables.size());
  if (operand.symbol < 0) return function_address(call_graph_.function_named(operand.name));
  if (operand.symbol >= count)
    return static_cast<uint64_t>(function_offsets_.at({function_, operand.symbol - count}));
  const Space space = module_->variables[static_cast<size_t>(operand.symbol)].space;
  if (space == Space::shared)
    return static_cast<uint64_t>(variable_offsets_[static_cast<size_t>(operand.symbol)]);
  auto& named = code_->named_variables;
  if (const auto at = std::lower_bound(named.begin(), named.end(), operand.symbol);
      at == named.end() || *at != operand.symbol)
    named.insert(at, operand.symbol);
  return code_->variables[static_cast<size_t>(operand.symbol)];
}

void Decoder::address(const Operand& operand, Op& op) {
  if (operand.kind != Operand::Kind::address) fail("expected an address in brackets");
  if (op.space == Space::constant) op.space = Space::global;
  if (op.space == Space::param) op.space = here().entry ? Space::global : Space::local;
  // Parameters of calls live in local memory, also where the caller is an entry.
  if (operand.parameter >= 0 || operand.symbol >= 0) op.space = symbol_space(operand);
  std::tie(op.s[0], op.offset) = second_address(operand, &op.address_wide);
  op.source_count = std::max<uint8_t>(op.source_count, 1);
}

std::pair<Slot, int64_t> Decoder::second_address(const Operand& operand, bool* wide) {
  auto offset = static_cast<uint64_t>(operand.offset);
  if (operand.parameter >= 0 || operand.symbol >= 0) offset += symbol_value(operand);
  *wide = true;
  if (is_framed(operand)) return {frame_, static_cast<int64_t>(offset)};
  if (operand.reg < 0) return {constant_slot(0, Cell::wide), static_cast<int64_t>(offset)};
  const Cell cell = cell_of(here().registers[static_cast<size_t>(operand.reg)].type);
  if (cell == Cell::mask) fail("a predicate is no address");
  *wide = cell == Cell::wide;
  return {register_slot(operand.reg), static_cast<int64_t>(offset)};
}

void Decoder::set_slots(Op& op, const std::vector<Slot>& slots, size_t written) {
  code_->slot_pool.push_back(std::make_unique<Slot[]>(slots.size()));
  std::copy(slots.begin(), slots.end(), code_->slot_pool.back().get());
  op.slots = code_->slot_pool.back().get();
  op.slot_count = static_cast<uint16_t>(slots.size());
  op.written_slots = static_cast<uint16_t>(written);
}

/// Constants follow the registers in the file.
void Decoder::relocate_constants() {
  const uint32_t base = code_->register_bytes;
  auto fix = [base](Slot& slot) {
    if (slot != no_slot && (slot & constant_flag)) slot = (slot & ~constant_flag) + base;
  };
  for (Op& op : code_->ops) {
    for (Slot& slot : op.s) fix(slot);
    // Triples of calls are offsets in local memory: never flagged.
    for (uint16_t i = 0; i < op.slot_count; ++i) fix(const_cast<Slot&>(op.slots[i]));
  }
  for (Immediate& immediate : code_->immediates) fix(immediate.slot);
  for (SpecialCell& special : code_->specials) fix(special.slot);
  code_->file_bytes = base + constant_bytes_;
}

}  // namespace assay::vm
