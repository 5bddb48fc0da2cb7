#include "src/base/program/parameters.h"

#include <fmt/format.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using Content = Argument::Content;

/// What an argument is said to be that its parameter is not. Untyped parameters (.b32) take all of their
/// size.
const char* mistaken_class(const Argument& argument, const ptx::Parameter& parameter) {
  const bool is_float = parameter.type == ptx::Type::f32 || parameter.type == ptx::Type::f64;
  if (is_float && argument.content == Content::integer) return "an integer";
  if (is_float && argument.content == Content::address) return "an address";
  const bool is_integer = !is_float && ptx::name_of(parameter.type)[0] != 'b';
  return is_integer && argument.content == Content::real ? "a float" : nullptr;
}

/// What is wrong with a tensor map; empty: nothing.
std::string fault_of(const Relocation& relocation) {
  if (!relocation.tile_map) return "";
  const TileMap& map = *relocation.tile_map;
  const size_t axes = map.sizes.size();
  if (map.is_im2col()) {
    if (axes < 3 || axes > 5 || map.strides.size() + 1 != axes || map.lower.size() + 2 != axes ||
        map.upper.size() + 2 != axes || map.steps.size() != axes)
      return fmt::format(
          "a tensor map of im2col of {} sizes, {} strides, {} and {} corners and {} steps; 3 to 5 axes have "
          "one of "
          "each, the innermost no stride, the innermost and the outermost no corners",
          axes, map.strides.size(), map.lower.size(), map.upper.size(), map.steps.size());
  } else if (axes < 1 || axes > 5 || map.strides.size() + 1 != axes || map.box.size() != axes ||
             map.steps.size() != axes)
    return fmt::format(
        "a tensor map of {} sizes, {} strides, {} box sizes and {} steps; 1 to 5 axes have one of each, "
        "the innermost no stride",
        axes, map.strides.size(), map.box.size(), map.steps.size());
  if (relocation.at % TileMap::alignment != 0)
    return fmt::format("a tensor map at byte {}, which is no multiple of {}", relocation.at,
                       TileMap::alignment);
  return "";
}

}  // namespace

void require_arguments(const Launch& launch, const ptx::Function& entry, const std::string& who) {
  if (launch.arguments.size() != entry.parameters.size())
    throw BadInput(fmt::format("{} has {} arguments, the entry takes {}", who, launch.arguments.size(),
                               entry.parameters.size()));
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    const ptx::Parameter& parameter = entry.parameters[i];
    const std::string which = fmt::format("{}: argument {} ({})", who, i, parameter.name);
    if (argument.bytes.size() != static_cast<size_t>(parameter.bytes))
      throw BadInput(fmt::format("{} has {} bytes, the entry expects {}", which, argument.bytes.size(),
                                 parameter.bytes));
    if (const char* given = mistaken_class(argument, parameter))
      throw BadInput(
          fmt::format("{} is {}, the entry expects .{}", which, given, ptx::name_of(parameter.type)));
    for (const Relocation& relocation : argument.relocations) {
      if (const std::string fault = fault_of(relocation); !fault.empty())
        throw BadInput(fmt::format("{} holds {}", which, fault));
      if (relocation.at + relocation.bytes() > argument.bytes.size())
        throw BadInput(fmt::format("{}: {} bytes for {} from byte {} on do not fit into its {}", which,
                                   relocation.bytes(), relocation.to.buffer, relocation.at,
                                   argument.bytes.size()));
    }
  }
}

}  // namespace assay
