// A program of one thread that runs a few instructions for each of six steps, for tests of which lines are
// suspects.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/base/vm/moved_run.h"
#include "src/verification/diagnosis/suspect_lines.h"

namespace assay {

inline constexpr int64_t kSteps = 6;

/// One thread: `body` for each t, %x = x[t], %y = y[t], %s = 0 before the first; leaves %r for o[t], %q for
/// p[t].
inline Program steps_of(const std::string& body, const std::string& file = "steps.cu") {
  const std::string text =
      R"(.version 7.8
.target sm_80
.address_size 64
.file 1 ")" +
      file +
      R"("
.global .f32 given[2] = {0f40000000, 0f40400000}; )"
      R"(.visible .entry kernel(.param .u64 px, .param .u64 py, .param .u64 po, .param .u64 pp) {
  .reg .f32 %x, %y, %s, %r, %q, %f<8>;
  .reg .b32 %t, %i;
  .reg .b64 %ax, %ay, %ao, %ap, %base, %off;
  .reg .pred %at, %more;
  ld.param.u64 %ax, [px];
  ld.param.u64 %ay, [py];
  ld.param.u64 %ao, [po];
  ld.param.u64 %ap, [pp];
  mov.u32 %t, 0;
  mov.f32 %s, 0f00000000;
LOOP:
  ld.global.f32 %x, [%ax];
  ld.global.f32 %y, [%ay];
)" + body +
      R"(
  st.global.f32 [%ao], %r;
  st.global.f32 [%ap], %q;
  add.s64 %ax, %ax, 4;
  add.s64 %ay, %ay, 4;
  add.s64 %ao, %ao, 4;
  add.s64 %ap, %ap, 4;
  add.s32 %t, %t, 1;
  setp.lt.s32 %more, %t, 6;
  @%more bra LOOP;
  ret;
}
)";
  Program program;
  program.name = "steps";
  program.modules.push_back({"m", "steps.ptx", std::make_shared<const std::string>(text)});
  for (const char* name : {"o", "p"}) program.outputs.push_back({name, Dtype::fp32, {{"T", kSteps}}});
  program.launches.push_back(
      {"m",
       "kernel",
       {1, 1, 1},
       {1, 1, 1},
       0,
       {PointerArgument{"x"}, PointerArgument{"y"}, PointerArgument{"o"}, PointerArgument{"p"}}});
  return program;
}

inline TensorMap step_inputs() {
  TensorMap all;
  for (const char* name : {"x", "y"}) {
    Tensor t(name, Dtype::fp32, {{"T", kSteps}});
    for (int64_t i = 0; i < kSteps; ++i) t.set(i, 1 + 0.25 * static_cast<double>((i * 5 + name[0]) % 7));
    all[name] = t;
  }
  return all;
}

/// What the program gives against what the right one does.
inline SuspectLines all_suspects_of(const std::string& defective, const std::string& right,
                                    Values values = Values::all, const std::string& file = "steps.cu") {
  const vm::RealOutputs is = vm::run_moved(steps_of(defective, file), step_inputs(), {}, {});
  const vm::RealOutputs should = vm::run_moved(steps_of(right), step_inputs(), {}, {});
  std::vector<JudgedElement> elements;
  for (const auto& [name, values] : is)
    for (size_t i = 0; i < values.size(); ++i)
      elements.push_back(
          {name, static_cast<int64_t>(i), values[i], should.at(name)[i], values[i] != should.at(name)[i]});
  return suspect_lines(steps_of(defective, file), step_inputs(), {}, elements, values, 60);
}
inline std::vector<SuspectLine> suspects_of(const std::string& defective, const std::string& right,
                                            Values values = Values::all,
                                            const std::string& file = "steps.cu") {
  return all_suspects_of(defective, right, values, file).likeliest;
}

/// Place among the suspects of the line of the body that holds `text`; 0: it is none.
inline size_t place_of(const std::string& text, const std::vector<SuspectLine>& suspects) {
  for (size_t i = 0; i < suspects.size(); ++i)
    if (suspects[i].at.instruction.find(text) != std::string::npos) return i + 1;
  return 0;
}

}  // namespace assay
