#include "src/base/program/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr const char* module_name = "steps";
constexpr int64_t threads = 128, most_blocks = 2147483647;

/// One thread an element of {0} bits; {1}: its size in bytes, {2}: the registers that hold it.
constexpr std::string_view entries = R"(
.visible .entry fill_{0}(.param .u64 to, .param .u64 count, .param .b32 pattern) {{
  .reg .pred %p;
  .reg .b16 %rs;
  .reg .b32 %r<5>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [count];
  ld.param.b32 %r4, [pattern];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd3, %r1, %r2;
  cvt.u64.u32 %rd4, %r3;
  add.s64 %rd3, %rd3, %rd4;
  setp.ge.u64 %p, %rd3, %rd2;
  @%p bra DONE;
  mad.lo.s64 %rd5, %rd3, {1}, %rd1;
  {3}
DONE:
  ret;
}}
.visible .entry copy_{0}(.param .u64 from, .param .u64 to, .param .u64 count) {{
  .reg .pred %p;
  .reg .b16 %rs;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.param.u64 %rd3, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd4, %r1, %r2;
  cvt.u64.u32 %rd5, %r3;
  add.s64 %rd4, %rd4, %rd5;
  setp.ge.u64 %p, %rd4, %rd3;
  @%p bra DONE;
  mad.lo.s64 %rd6, %rd4, {1}, %rd1;
  mad.lo.s64 %rd7, %rd4, {1}, %rd2;
  ld.global.b{0} {2}, [%rd6];
  st.global.b{0} [%rd7], {2};
DONE:
  ret;
}}
)";

std::shared_ptr<const std::string> text() {
  static const auto made = [] {
    std::string ptx = ".version 7.0\n.target sm_80\n.address_size 64\n";
    ptx += fmt::format(entries, 8, 1, "%rs", "cvt.u16.u32 %rs, %r4;\n  st.global.b8 [%rd5], %rs;");
    ptx += fmt::format(entries, 16, 2, "%rs", "cvt.u16.u32 %rs, %r4;\n  st.global.b16 [%rd5], %rs;");
    ptx += fmt::format(entries, 32, 4, "%r1", "st.global.b32 [%rd5], %r4;");
    return std::make_shared<const std::string>(std::move(ptx));
  }();
  return made;
}

void add(Program& program, const std::string& what, int64_t count, int width,
         std::vector<Argument> arguments) {
  const bool known = std::any_of(program.modules.begin(), program.modules.end(),
                                 [](const Module& module) { return module.name == module_name; });
  if (!known) program.modules.push_back({module_name, "steps.ptx", text()});
  const int64_t blocks = (count + threads - 1) / threads;
  if (blocks > most_blocks)
    throw BadInput(fmt::format("a {} of {} elements: more than one launch has", what, count));
  program.launches.push_back({.module = module_name,
                              .function = fmt::format("{}_{}", what, 8 * width),
                              .grid = {static_cast<uint32_t>(blocks), 1, 1},
                              .block = {threads, 1, 1},
                              .arguments = std::move(arguments)});
}

/// Buffers start at multiples of 256 bytes but for those that lie in others; of a view nothing is known.
int64_t place_of(const Program& program, const PointerArgument& pointer) {
  if (program.layouts.contains(pointer.buffer)) return 1;
  for (const Alias& alias : program.aliases)
    if (alias.name == pointer.buffer) return alias.offset + pointer.offset;
  return pointer.offset;
}

bool divides(int width, std::initializer_list<int64_t> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [width](int64_t number) { return number % width == 0; });
}

}  // namespace

void add_fill(Program& program, const PointerArgument& to, int64_t bytes, uint32_t pattern, int width) {
  const bool one_of = width == 1 || width == 2 || width == 4;
  if (!one_of || bytes < 0 || !divides(width, {bytes, place_of(program, to)}))
    throw BadInput(fmt::format("a fill of {} bytes from byte {} of {} on by {} bytes at a time", bytes,
                               to.offset, to.buffer, width));
  if (bytes > 0)
    add(program, "fill", bytes / width, width, {to, bytes / width, static_cast<int32_t>(pattern)});
}

void add_copy(Program& program, const PointerArgument& from, const PointerArgument& to, int64_t bytes) {
  if (bytes < 0) throw BadInput(fmt::format("a copy of {} bytes to {}", bytes, to.buffer));
  const int64_t start = place_of(program, from), end = place_of(program, to);
  const int width = divides(4, {bytes, start, end}) ? 4 : divides(2, {bytes, start, end}) ? 2 : 1;
  if (bytes > 0) add(program, "copy", bytes / width, width, {from, to, bytes / width});
}

}  // namespace assay
