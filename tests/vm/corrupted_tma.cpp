#include "tests/vm/corrupted_tma.h"

#include <cctype>

#include "src/base/numerics/bad_input.h"
#include "src/base/program/buffers.h"
#include "src/base/program/tile_map_bytes.h"
#include "src/base/vm/checks/checks.h"
#include "tools/hopper/programs.h"

namespace assay::hopper {
namespace {

/// Numbers, as the bytes have them; zeros behind the last.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  uint64_t number() { return uint64_t{byte()} << 8 | byte(); }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const uint8_t> bytes_;
};

/// Where whole numbers stand in the text behind its first brace: neither parts of names nor digits of
/// hexadecimal floats.
std::vector<std::pair<size_t, size_t>> numbers_in(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> found;
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '$' || c == '.' ||
           c == ':';
  };
  for (size_t at = text.find('{'); at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    if (text.find_first_not_of("0123456789", at) >= end) found.emplace_back(at, end - at);
    at = end;
  }
  return found;
}

std::string changed_number(const std::string& digits, Choices& choices) {
  static constexpr uint64_t kOdd[] = {0,       1,       2,          3,          7,          8,         15,
                                      16,      17,      31,         32,         48,         64,        127,
                                      128,     129,     255,        256,        1000,       4096,      65535,
                                      1048575, 1048576, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
  const uint64_t was = std::stoull(digits.substr(0, 18));
  switch (choices.byte() % 4) {
    case 0:
      return std::to_string(was + 1);
    case 1:
      return std::to_string(was ? was - 1 : 0xffffffff);
    case 2:
      return std::to_string((was ^ uint64_t{1} << choices.byte() % 32) & 0xffffffff);
    default:
      return std::to_string(kOdd[choices.byte() % std::size(kOdd)]);
  }
}

void change_text(Program& program, Choices& choices) {
  for (Module& module : program.modules) {
    std::string text = *module.ptx;
    for (int edits = choices.byte() % 4; edits > 0; --edits) {
      const auto numbers = numbers_in(text);
      if (numbers.empty()) break;
      const auto [at, length] = numbers[choices.number() % numbers.size()];
      text.replace(at, length, changed_number(text.substr(at, length), choices));
    }
    module.ptx = std::make_shared<const std::string>(std::move(text));
  }
}

/// Buffers get addresses that the tensor maps' own bytes can have.
void change_maps(Program& program, const TensorMap& inputs, Choices& choices) {
  uint64_t next = 0x2000'0000'0000;
  for (const Buffer& buffer : buffers_of(program, inputs))
    if (buffer.storage < 0) program.places[buffer.name] = next, next += 0x10'0000'0000;
  const auto address = [&](const PointerArgument& to) {
    return program.places.at(to.buffer) + static_cast<uint64_t>(to.offset);
  };
  for (Launch& launch : program.launches)
    for (Argument& argument : launch.arguments) {
      bool has_map = false;
      for (const Relocation& relocation : argument.relocations) has_map |= relocation.tile_map.has_value();
      if (!has_map) continue;
      argument.bytes = filled(argument, address, encode_tile_map);
      argument.relocations.clear();
      argument.content = Argument::Content::bytes;
      for (int flips = choices.byte() % 3; flips > 0; --flips) {
        const size_t at = choices.number() % argument.bytes.size();
        const uint8_t how = choices.byte();
        argument.bytes[at] ^= how % 4 ? std::byte{1} << how / 4 % 8 : static_cast<std::byte>(choices.byte());
      }
    }
}

template <class Run>
std::string fate_of(Run run) {
  try {
    const std::optional<Trap> trap = run();
    return std::string(trap ? name_of(trap->kind) : "ended");
  } catch (const BadInput&) {
    return "refused";
  } catch (const vm::OverBudget&) {
    return "hang";
  }
}

}  // namespace

Fate fate_of_corrupted(std::span<const uint8_t> bytes) {
  static const std::vector<NamedProgram> all = programs();
  Choices choices(bytes);
  const NamedProgram& chosen = all[choices.number() % all.size()];
  Program program = chosen.program;
  const uint8_t kinds = choices.byte();
  if (kinds % 4 != 0) change_maps(program, chosen.inputs, choices);
  if (kinds % 4 != 1) change_text(program, choices);
  vm::MachineOptions options{.threads = 1, .instruction_budget = uint64_t{1} << 14};
  options.most_lane_instructions = uint64_t{1} << 22;
  Fate fate;
  fate.plain = fate_of([&] { return vm::run(program, chosen.inputs, options).trap; });
  fate.checked = fate_of([&] {
    std::optional<Trap> trap;
    vm::run_checked(program, chosen.inputs, options, vm::Checks{}, &trap);
    return trap;
  });
  return fate;
}

}  // namespace assay::hopper
