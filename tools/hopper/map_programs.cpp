#include "tools/hopper/map_programs.h"

#include <fmt/format.h>

#include "src/base/program/tile_map_bytes.h"
#include "tools/hopper/drawn_maps.h"

namespace assay::hopper {
namespace {

/// A map to shared memory, changed there by one thread, and its 128 bytes to `other`. Where the tensor lies
/// is replaced too, as it is another address on every machine.
constexpr const char* kText =
    ".version 8.3\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 copy[128];\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 other, .param .u64 wide, .param .u32 "
    "narrow)\n{\n"
    ".reg .pred q; .reg .b32 %copy, %t, %at, %x, %narrow; .reg .b64 %map, %other, %from, %wide;\n"
    "mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %other, [other]; ld.param.u64 %wide, "
    "[wide];\n"
    "ld.param.u32 %narrow, [narrow]; mov.u32 %copy, copy; mov.u32 %t, %tid.x; shl.b32 %at, %t, 2;\n"
    "cvt.u64.u32 %from, %at; add.u64 %from, %map, %from; ld.b32 %x, [%from]; add.u32 %at, %copy, %at;\n"
    "st.shared.b32 [%at], %x; setp.ne.u32 q, %t, 0; bar.sync 0; @q bra CHANGED;\n"
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%copy], 0x123456780;\n"
    "INSTRUCTION;\nCHANGED: bar.sync 0; ld.shared.b32 %x, [%at]; mul.wide.u32 %from, %t, 4;\n"
    "add.u64 %other, %other, %from; st.global.b32 [%other], %x;\nret;\n}\n";

constexpr uint64_t kElsewhere = 0x123456780;  // as the text says

/// What a field is to become.
struct Change {
  const char* field;
  int axis;  ///< -1: of the whole map
  uint64_t value;
};

NamedProgram changed(const std::string& name, const TileMap& map, const Change& change) {
  NamedProgram made;
  made.name = name;
  const bool wide = std::string(change.field) == "global_stride";
  std::string text = kText;
  const std::string instruction =
      fmt::format("tensormap.replace.tile.{}.shared::cta.b1024.{} [%copy], {}{}", change.field,
                  wide ? "b64" : "b32", change.axis < 0 ? "" : fmt::format("{}, ", change.axis),
                  // what chooses among a few is a constant of the text
                  change.axis < 0 && std::string(change.field) != "rank" ? std::to_string(change.value)
                  : wide                                                 ? "%wide"
                                                                         : "%narrow");
  text.replace(text.find("INSTRUCTION"), 11, instruction);
  made.program.name = name;
  made.program.modules.push_back({"m", name + ".ptx", std::make_shared<std::string>(text)});
  made.inputs["g"] = Tensor("g", Dtype::i32, {{"T", kBufferBytes / 4}});
  made.program.outputs.push_back({"other", Dtype::i32, {{"T", 32}}});
  Launch launch;
  launch.module = "m", launch.function = "k", launch.block = {32, 1, 1};
  launch.arguments = {Argument::of(PointerArgument{"g", kFirstByte}, map), PointerArgument{"other", 0},
                      static_cast<int64_t>(change.value), static_cast<uint32_t>(change.value)};
  made.program.launches.push_back(launch);
  return made;
}

TileMap map_of(TileMap::Element element, uint32_t inner, TileMap::Swizzle swizzle, size_t axes) {
  TileMap map{.element = element, .swizzle = swizzle};
  for (size_t i = 0; i < axes; ++i) {
    map.sizes.push_back(i == 0 ? 64 : 6), map.box.push_back(i == 0 ? inner : 3), map.steps.push_back(1);
    if (i + 1 < axes) map.strides.push_back(i == 0 ? 512 : map.strides.back() * 6);
  }
  return map;
}

}  // namespace

std::vector<NamedProgram> map_programs() {
  using Element = TileMap::Element;
  using Swizzle = TileMap::Swizzle;
  const TileMap maps[] = {
      map_of(Element::f32, 16, Swizzle::none, 5), map_of(Element::bf16, 16, Swizzle::none, 3),
      map_of(Element::u8, 32, Swizzle::of_128_bytes, 2), map_of(Element::f64, 4, Swizzle::of_32_bytes, 4)};
  std::vector<NamedProgram> all;
  for (size_t m = 0; m < std::size(maps); ++m) {
    const TileMap& map = maps[m];
    const auto axes = static_cast<int>(map.sizes.size());
    std::vector<Change> changes;
    for (int axis = 0; axis < axes; ++axis) {
      changes.push_back({"global_dim", axis, 0x1234567u + static_cast<uint32_t>(axis)});
      if (axis + 1 < axes)
        changes.push_back({"global_stride", axis, 0x7654321000u + 4096u * static_cast<uint32_t>(axis)});
      changes.push_back({"box_dim", axis, axis == 0 ? map.box[0] / 2 : 5u + static_cast<uint32_t>(axis)});
      changes.push_back({"element_stride", axis, 2u + static_cast<uint32_t>(axis)});
    }
    for (int fewer = 0; fewer < axes; ++fewer) changes.push_back({"rank", -1, static_cast<uint64_t>(fewer)});
    // What no encoder makes is not asked for.
    for (uint64_t element = 0; element <= 12; ++element) {
      TileMap made = map;
      made.element = static_cast<Element>(element);
      if (fault_of(made, kElsewhere).empty()) changes.push_back({"elemtype", -1, element});
    }
    for (uint64_t kind = 0; kind <= 3; ++kind) {
      TileMap made = map;
      made.swizzle = static_cast<Swizzle>(kind);
      if (fault_of(made, kElsewhere).empty()) changes.push_back({"swizzle_mode", -1, kind});
    }
    changes.push_back({"interleave_layout", -1, 0});
    for (uint64_t fill = 0; fill <= (map.element >= Element::f16 ? 1 : 0); ++fill)
      changes.push_back({"fill_mode", -1, fill});
    for (const Change& change : changes)
      all.push_back(changed(fmt::format("replace-{}-{}{}-{:x}", m, change.field,
                                        change.axis < 0 ? "" : fmt::format("-{}", change.axis), change.value),
                            map, change));
  }
  return all;
}

}  // namespace assay::hopper
