#include "tools/hopper/programs.h"

#include <fmt/format.h>

#include "src/base/vm/tile_walk.h"
#include "tools/hopper/cluster_programs.h"
#include "tools/hopper/drawn_maps.h"
#include "tools/hopper/map_programs.h"

namespace assay::hopper {
namespace {

/// Numbers that a type has, special ones often.
enum class Contents : uint8_t { bits, f32, halves, f64, small };

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// One number of `bits` bits with so many of exponent: by `choice` zero, subnormal, infinite, NaN, or near 1.
uint64_t special(uint64_t number, int bits, int exponent, uint64_t choice) {
  const int fraction = bits - 1 - exponent;
  const uint64_t sign = uint64_t{1} << (bits - 1), fractions = (uint64_t{1} << fraction) - 1,
                 exponents = ((uint64_t{1} << exponent) - 1) << fraction,
                 near_one = exponents >> 1 & exponents;
  switch (choice & 7) {
    case 0:
      return number & (sign | fractions);
    case 1:
      return number | exponents;
    case 2:
      return (number & sign) | exponents;
    case 3:
      return number & sign;
    case 4:
      return number;
    case 5:  // midway between two tf32
      number = (number & ~uint64_t{0x1fff}) | 0x1000;
      [[fallthrough]];
    default:
      return (number & (sign | fractions)) | near_one | (choice >> 3 & 1) << fraction;
  }
}

uint64_t word_of(Contents contents, uint64_t seed) {
  const uint64_t word = mixed(seed), choice = mixed(word);
  uint64_t made = 0;
  switch (contents) {
    case Contents::f32:
      for (int i = 0; i < 2; ++i)
        made |= special(word >> (32 * i) & 0xffffffff, 32, 8, choice >> (8 * i)) << (32 * i);
      return made;
    case Contents::halves:
      for (int i = 0; i < 4; ++i)
        made |= special(word >> (16 * i) & 0xffff, 16, (choice >> 40 & 1) ? 8 : 5, choice >> (8 * i))
                << (16 * i);
      return made;
    case Contents::f64:
      return special(word, 64, 11, choice);
    case Contents::small:
      return word & 0x0000000700000007;
    default:
      return word;
  }
}

Tensor buffer(const std::string& name, uint32_t bytes, Contents contents, uint64_t seed) {
  Tensor made(name, Dtype::i32, {{"T", bytes / 4}});
  for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = word_of(contents, seed * 0x10000 + at / 8);
    std::memcpy(made.data.data() + at, &word, sizeof word);
  }
  return made;
}

Contents contents_of(TileMap::Element element) {
  switch (element) {
    case TileMap::Element::f16:
    case TileMap::Element::bf16:
      return Contents::halves;
    case TileMap::Element::f64:
      return Contents::f64;
    default:
      return element >= TileMap::Element::f32 ? Contents::f32 : Contents::bits;
  }
}

constexpr const char* kHead =
    ".version 8.3\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tile[32768];\n.shared .align 8 "
    ".b8 gate[8];\n"
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 other, .param .s32 c0, .param .s32 c1, "
    ".param .s32 "
    "c2,\n .param .s32 c3, .param .s32 c4, .param .u32 o0, .param .u32 o1, .param .u32 o2, .param .u32 "
    "expected, .param "
    ".u32 bytes)\n{\n"
    ".reg .pred p, q; .reg .b32 %c<5>, %bytes, %at, %t, %tile, %gate, %x, %expected, %done; .reg .b16 "
    "%o<3>;\n"
    ".reg .b64 %map, %other, %to;\n"
    "ld.param.s32 %c0, [c0]; ld.param.s32 %c1, [c1]; ld.param.s32 %c2, [c2]; ld.param.s32 %c3, [c3]; "
    "ld.param.s32 %c4, "
    "[c4];\n"
    "ld.param.u32 %x, [o0]; cvt.u16.u32 %o0, %x; ld.param.u32 %x, [o1]; cvt.u16.u32 %o1, %x; ld.param.u32 "
    "%x, [o2]; "
    "cvt.u16.u32 %o2, %x;\n"
    "ld.param.u32 %expected, [expected]; ld.param.u32 %bytes, [bytes]; mov.b64 %map, map; cvta.param.u64 "
    "%map, %map;\n"
    "ld.param.u64 %other, [other]; cvta.to.global.u64 %other, %other; mov.u32 %tile, tile; mov.u32 %gate, "
    "gate; mov.u32 "
    "%t, %tid.x;\n"
    "setp.ne.u32 q, %t, 0; shl.b32 %at, %t, 2;\n";

/// The tile to `other`, behind a word that says that it has come.
constexpr const char* kLoad =
    "FILL: setp.ge.u32 p, %at, %bytes; @p bra FILLED; add.u32 %x, %tile, %at; st.shared.b32 [%x], "
    "0xCDCDCDCD; add.u32 "
    "%at, %at, 512; bra FILL;\n"
    "FILLED: @q bra READY; mbarrier.init.shared::cta.b64 [%gate], 1; fence.mbarrier_init.release.cluster;\n"
    "READY: fence.proxy.async; bar.sync 0; @q bra WAIT;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%gate], %expected;\nINSTRUCTION;\n"
    "WAIT: mov.u32 %at, 0; mov.u32 %done, 0;\n"
    "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%gate], 0; @p mov.u32 %done, 1; @p bra COME;\n"
    "add.u32 %at, %at, 1; setp.lt.u32 p, %at, 400; @p bra AGAIN;\n"
    "COME: bar.sync 0; shl.b32 %at, %t, 2;\n"
    "COPY: setp.ge.u32 p, %at, %bytes; @p bra COPIED; add.u32 %x, %tile, %at; ld.shared.b32 %x, [%x]; "
    "cvt.u64.u32 %to, "
    "%at; add.u64 %to, %other, %to; st.global.b32 [%to+16], %x; add.u32 %at, %at, 512; bra COPY;\n"
    "COPIED: @q bra END; st.global.b32 [%other], %done;\nEND: ret;\n}\n";

/// What `other` holds to a tile.
constexpr const char* kStore =
    "FILL: setp.ge.u32 p, %at, %bytes; @p bra FILLED; cvt.u64.u32 %to, %at; add.u64 %to, %other, %to; "
    "ld.global.b32 %c0, "
    "[%to]; add.u32 %x, %tile, %at; st.shared.b32 [%x], %c0; add.u32 %at, %at, 512; bra FILL;\n"
    "FILLED: ld.param.s32 %c0, [c0]; fence.proxy.async; bar.sync 0; @q bra END;\nINSTRUCTION;\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND: ret;\n}\n";

std::string vector_of(const char* name, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i) text += (i ? ", " : "") + std::string(name) + std::to_string(i);
  return text + "}";
}

NamedProgram tile_program(const std::string& name, const DrawnTile& tile, const std::string& body,
                          const std::string& instruction) {
  NamedProgram made;
  made.name = name;
  std::string text = std::string(kHead) + body;
  text.replace(text.find("INSTRUCTION"), 11, instruction);
  Program& program = made.program;
  program.name = name;
  program.modules.push_back({"m", name + ".ptx", std::make_shared<std::string>(text)});
  const bool loads = body == kLoad;
  const auto bytes = static_cast<uint32_t>(vm::bytes_of_tile(tile.map));
  const auto held = static_cast<uint32_t>((vm::reach_of_tile(tile.map) * 5 / 4 + 511) / 512 * 512);
  const Contents contents = contents_of(tile.map.element);
  made.inputs["g"] = buffer("g", kBufferBytes, contents, 1);
  if (loads) {
    program.outputs.push_back({"other", Dtype::i32, {{"T", held / 4 + 4}}});
  } else {
    made.inputs["other"] = buffer("other", held, contents, 2);
    program.outputs.push_back({"g", Dtype::i32, {{"T", kBufferBytes / 4}}});
  }
  Launch launch;
  launch.module = "m", launch.function = "k", launch.block = {128, 1, 1};
  launch.arguments.push_back(Argument::of(PointerArgument{"g", kFirstByte + tile.offset}, tile.map));
  launch.arguments.push_back(PointerArgument{"other", 0});
  for (size_t i = 0; i < 5; ++i)
    launch.arguments.push_back(i < tile.coordinates.size() ? tile.coordinates[i] : int32_t{0});
  for (size_t i = 0; i < 3; ++i)
    launch.arguments.push_back(i < tile.offsets.size() ? uint32_t{tile.offsets[i]} : uint32_t{0});
  launch.arguments.push_back(bytes);
  launch.arguments.push_back(held);
  program.launches.push_back(launch);
  return made;
}

std::string load_of(const DrawnTile& tile) {
  const size_t axes = tile.coordinates.size();
  const bool im2col = tile.map.is_im2col();
  return fmt::format(
      "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes [%tile], [%map, {}], "
      "[%gate]{}",
      axes, im2col ? "im2col" : "tile", vector_of("%c", axes),
      im2col ? ", " + vector_of("%o", axes - 2) : "");
}

/// `combine`: empty, or "add".
std::string store_of(const DrawnTile& tile, const std::string& combine) {
  const size_t axes = tile.coordinates.size();
  return fmt::format("cp{}.async.bulk.tensor.{}d.global.shared::cta{}.{}.bulk_group [%map, {}], [%tile]",
                     combine.empty() ? "" : ".reduce", axes, combine.empty() ? "" : "." + combine,
                     tile.map.is_im2col() ? "im2col_no_offs" : "tile", vector_of("%c", axes));
}

bool reduces(const std::string& combine, TileMap::Element element) {
  using Element = TileMap::Element;
  const bool wide = vm::width_of(element) >= 4, floats = element >= Element::f16,
             half = element == Element::f16 || element == Element::bf16;
  if (combine == "add") return element != Element::i64 && element != Element::u8 && element != Element::u16;
  if (combine == "min" || combine == "max") return half || (wide && !floats);
  if (combine == "inc" || combine == "dec") return element == Element::u32;
  return wide && !floats;
}

uint32_t units_of(const TileMap& map) {
  uint32_t units = 1;
  for (size_t i = 0; i < map.box.size(); ++i) units *= (map.box[i] + map.steps[i] - 1) / map.steps[i];
  return units;
}

/// Words of shared memory combined with those of `g` by one bulk copy: cp.reduce.async.bulk of a type.
NamedProgram bulk_sum(const std::string& form, Contents contents) {
  NamedProgram made;
  made.name = "bulk-" + form;
  constexpr uint32_t bytes = 8192;
  const std::string text = fmt::format(
      ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 tile[{0}];\n"
      ".visible .entry k(.param .u64 pg, .param .u64 px)\n{{\n"
      ".reg .pred p, q; .reg .b32 %t, %at, %x, %tile; .reg .b64 %g, %px, %from;\n"
      "ld.param.u64 %g, [pg]; ld.param.u64 %px, [px]; mov.u32 %t, %tid.x; mov.u32 %tile, tile; shl.b32 %at, "
      "%t, 2;\n"
      "FILL: setp.ge.u32 p, %at, {0}; @p bra FILLED; cvt.u64.u32 %from, %at; add.u64 %from, %px, %from;\n"
      "ld.global.b32 %x, [%from]; add.u32 %t, %tile, %at; st.shared.b32 [%t], %x; add.u32 %at, %at, 512; bra "
      "FILL;\n"
      "FILLED: fence.proxy.async; bar.sync 0; mov.u32 %t, %tid.x; setp.ne.u32 q, %t, 0; @q bra END;\n"
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.{1} [%g], [%tile], {0};\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND: ret;\n}}\n",
      bytes, form);
  made.program.name = made.name;
  made.program.modules.push_back({"m", made.name + ".ptx", std::make_shared<std::string>(text)});
  made.inputs["g"] = buffer("g", bytes, contents, 3);
  made.inputs["x"] = buffer("x", bytes, contents, 4);
  made.program.outputs.push_back({"g", Dtype::i32, {{"T", bytes / 4}}});
  Launch launch;
  launch.module = "m", launch.function = "k", launch.block = {128, 1, 1};
  launch.arguments = {PointerArgument{"g", 0}, PointerArgument{"x", 0}};
  made.program.launches.push_back(launch);
  return made;
}

std::vector<NamedProgram> sum_programs() {
  std::vector<NamedProgram> all;
  for (const char* form : {"add.noftz.f16", "add.noftz.bf16", "min.f16", "max.f16", "min.bf16", "max.bf16"})
    all.push_back(bulk_sum(form, Contents::halves));
  all.push_back(bulk_sum("add.f32", Contents::f32));
  all.push_back(bulk_sum("add.f64", Contents::f64));
  for (const char* form : {"add.u32", "add.s32", "add.u64", "min.s32", "max.s32", "min.u64", "max.s64",
                           "and.b32", "or.b64", "xor.b32", "inc.u32", "dec.u32"})
    all.push_back(bulk_sum(form, Contents::bits));
  return all;
}

}  // namespace

std::vector<NamedProgram> unmodelled_programs() {
  std::vector<NamedProgram> all;
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    const DrawnTile tile = draw_interleaved_tile(random);
    NamedProgram made = tile_program(fmt::format("interleaved-{}", i), tile, kLoad, load_of(tile));
    std::vector<Argument>& arguments = made.program.launches[0].arguments;
    const uint32_t unit = 16u << (static_cast<int>(tile.map.interleave) - 1),
                   bytes = units_of(tile.map) * unit;
    arguments[arguments.size() - 2] = bytes;
    arguments[arguments.size() - 1] = (bytes + 511) / 512 * 512;
    made.program.outputs[0].axes = {{"T", (bytes + 511) / 512 * 128 + 4}};
    all.push_back(std::move(made));
  }
  return all;
}

std::vector<NamedProgram> programs() {
  std::vector<NamedProgram> all;
  std::mt19937_64 random(20261123);
  for (int i = 0; i < 160; ++i) {
    const DrawnTile tile = draw_tile(random, Tiles::boxes);
    all.push_back(tile_program(fmt::format("load-{}", i), tile, kLoad, load_of(tile)));
  }
  for (int i = 0; i < 100; ++i) {
    const DrawnTile tile = draw_tile(random, Tiles::im2col);
    all.push_back(tile_program(fmt::format("im2col-{}", i), tile, kLoad, load_of(tile)));
  }
  for (int i = 0; i < 80; ++i) {
    DrawnTile tile = draw_tile(random, i < 60 ? Tiles::boxes : Tiles::im2col);
    all.push_back(tile_program(fmt::format("store-{}", i), tile, kStore, store_of(tile, "")));
  }
  for (const char* combine : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
    for (int i = 0; i < 10;) {
      DrawnTile tile = draw_tile(random, Tiles::boxes);
      if (!reduces(combine, tile.map.element)) continue;
      tile.map.outside = TileMap::Outside::zeros;
      all.push_back(tile_program(fmt::format("{}-{}", combine, i++), tile, kStore, store_of(tile, combine)));
    }
  for (NamedProgram& program : cluster_programs()) all.push_back(std::move(program));
  for (NamedProgram& program : map_programs()) all.push_back(std::move(program));
  for (NamedProgram& program : sum_programs()) all.push_back(std::move(program));
  return all;
}

}  // namespace assay::hopper
