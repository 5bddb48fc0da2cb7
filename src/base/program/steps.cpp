#include "src/base/program/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr const char* module_name = "steps";
constexpr int64_t threads = 128, most_blocks = 2147483647;

/// One thread an element of {1} bits: where it goes is in %rd3. {0}: what is done, {2}: the parameter with
/// what is written, {3}: the element's size in bytes, {4}: the instructions that write it.
constexpr std::string_view entry = R"(
.visible .entry {0}_{1}(.param .u64 to, .param .u64 count, .param {2}) {{
  .reg .pred %p;
  .reg .b16 %rs;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.u32 %rd1, %r1, %r2;
  cvt.u64.u32 %rd2, %r3;
  add.s64 %rd1, %rd1, %rd2;
  ld.param.u64 %rd2, [count];
  setp.ge.u64 %p, %rd1, %rd2;
  @%p bra DONE;
  ld.param.u64 %rd3, [to];
  mad.lo.s64 %rd3, %rd1, {3}, %rd3;
{4}DONE:
  ret;
}}
)";

/// {0}: bits, {1}: the register that holds them, {2}: how the pattern comes there.
constexpr std::string_view fill = R"(  ld.param.b32 %r4, [pattern];
{2}  st.global.b{0} [%rd3], {1};
)";
/// {0}: bits, {1}: the register that holds them, {2}: bytes.
constexpr std::string_view copy = R"(  ld.param.u64 %rd4, [from];
  mad.lo.s64 %rd4, %rd1, {2}, %rd4;
  ld.global.b{0} {1}, [%rd4];
  st.global.b{0} [%rd3], {1};
)";

std::shared_ptr<const std::string> text() {
  static const auto made = [] {
    std::string ptx = ".version 7.0\n.target sm_80\n.address_size 64\n";
    for (const int bytes : {1, 2, 4}) {
      const int bits = 8 * bytes;
      const char* held = bytes == 4 ? "%r4" : "%rs";
      const char* narrowed = bytes == 4 ? "" : "  cvt.u16.u32 %rs, %r4;\n";
      ptx += fmt::format(entry, "fill", bits, ".b32 pattern", bytes, fmt::format(fill, bits, held, narrowed));
      ptx += fmt::format(entry, "copy", bits, ".u64 from", bytes, fmt::format(copy, bits, held, bytes));
    }
    return std::make_shared<const std::string>(std::move(ptx));
  }();
  return made;
}

/// A step that writes `count` elements of `width` bytes with `what`: a pattern, or where they are read.
void add(Program& program, const std::string& step, const PointerArgument& to, int64_t count, int width,
         Argument what) {
  const bool known = std::any_of(program.modules.begin(), program.modules.end(),
                                 [](const Module& module) { return module.name == module_name; });
  if (!known) program.modules.push_back({module_name, "steps.ptx", text()});
  const int64_t blocks = (count + threads - 1) / threads;
  if (blocks > most_blocks)
    throw BadInput(fmt::format("a {} of {} elements: more than one launch has", step, count));
  program.launches.push_back({.module = module_name,
                              .function = fmt::format("{}_{}", step, 8 * width),
                              .grid = {static_cast<uint32_t>(blocks), 1, 1},
                              .block = {threads, 1, 1},
                              .arguments = {to, count, std::move(what)}});
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
  if (bytes > 0) add(program, "fill", to, bytes / width, width, static_cast<int32_t>(pattern));
}

void add_copy(Program& program, const PointerArgument& from, const PointerArgument& to, int64_t bytes) {
  if (bytes < 0) throw BadInput(fmt::format("a copy of {} bytes to {}", bytes, to.buffer));
  const int64_t start = place_of(program, from), end = place_of(program, to);
  const int width = divides(4, {bytes, start, end}) ? 4 : divides(2, {bytes, start, end}) ? 2 : 1;
  if (bytes > 0) add(program, "copy", to, bytes / width, width, from);
}

}  // namespace assay
