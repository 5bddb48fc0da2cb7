// A small program whose blocks store into an output o and a workspace w, and its source.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "src/base/program/program.h"

namespace assay {

/// Two blocks of 32 threads; o is [T,V]. The body's lines are source lines from 10 on, of a file that is not
/// there.
inline Program plan_of(const std::vector<std::string>& lines, int64_t T, int64_t V,
                       const std::string& file = "kernels/none/small.cu") {
  std::string text = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 po, .param .u64 pw, .param .u64 ps) {
  .reg .b32 %t, %c, %n, %b<16>;
  .reg .f32 %f<4>;
  .reg .b64 %o, %w, %s, %d<8>;
  .reg .pred %p<8>;
  .loc 1 1 0
  ld.param.u64 %o, [po];
  ld.param.u64 %w, [pw];
  ld.param.u64 %s, [ps];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.s32 %n, %c, 32, %t;
  mov.f32 %f1, 0f3F800000;
)";
  int number = 10;
  for (const std::string& line : lines)
    text += "  .loc 1 " + std::to_string(number++) + " 0\n  " + line + "\n";
  text += "  ret;\n}\n.file 1 \"" + file + "\"\n";
  Program plan;
  plan.name = "small";
  plan.modules.push_back({"m", "small.ptx", std::make_shared<const std::string>(text)});
  plan.outputs.push_back({"o", Dtype::fp32, {{"T", T}, {"V", V}}});
  plan.workspaces.push_back({"w", 256});
  plan.constants.emplace_back("s", Dtype::i32, std::vector<Axis>{{"N", 2}, {"field", 1}});
  plan.constants[0].set(1, 1);
  plan.launches.push_back({"m",
                           "kernel",
                           {2, 1, 1},
                           {32, 1, 1},
                           0,
                           {PointerArgument{"o"}, PointerArgument{"w"}, PointerArgument{"s"}}});
  return plan;
}

/// A source whose lines from 10 on are these.
inline std::string source_of(const std::vector<std::string>& lines) {
  std::string path =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".cu";
  std::ofstream file(path);
  file << std::string(9, '\n');
  for (const std::string& line : lines) file << line << '\n';
  return path;
}

}  // namespace assay
