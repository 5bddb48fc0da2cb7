// Programs whose shared memory begins elsewhere.
#include "src/campaign/mutate/moved_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/base/ptx/program.h"
#include "src/base/vm/launch.h"
#include "tests/mutate/subject.h"

namespace assay {
namespace {

std::string own(const std::string& declarations) {
  return ".version 7.8\n.target sm_80\n.address_size 64\n" + declarations +
         "\n.visible .entry f()\n{\n.shared .align 4 .b8 own[64];\nret;\n}\n";
}

TEST(MovedMemory, PutsBytesBeforeAllThatIsDeclared) {
  for (const char* declared :
       {"", ".shared .align 16 .b8 other[32];", ".extern .shared .align 16 .b8 rest[];"}) {
    const auto moved = with_shared_memory_moved(own(declared));
    ASSERT_TRUE(moved);
    const auto was = std::make_shared<const ptx::Module>(ptx::parse(own(declared), "a.ptx")),
               is = std::make_shared<const ptx::Module>(ptx::parse(*moved, "a.ptx"));
    EXPECT_EQ(is->functions[0].body[0].ptx_line, was->functions[0].body[0].ptx_line);
    const auto before = vm::lay_out(was, 0), after = vm::lay_out(is, 0);
    EXPECT_EQ(after->shared_bytes, before->shared_bytes + 1024) << declared;
    for (const vm::NamedArea& area : after->shared_areas)
      EXPECT_EQ(area.offset >= 1024, area.name != "assay_before_all_shared_memory") << area.name;
  }
  EXPECT_FALSE(with_shared_memory_moved(".version 7.8\n.address_size 64\n.visible .entry f()\n{\nret;\n}\n"));
}

TEST(MovedMemory, ChangesNoBitOfAKernel) {
  const CleanCase clean = make_clean_case(small_case(), subject(), one_thread(), 0);
  const Kernel& chunk = find_kernel("gla.chunk");
  Case c;
  c.kernel = chunk.name, c.T = 9, c.K = 8, c.V = 8, c.dtype = Dtype::bf16, c.gate_dtype = Dtype::fp16;
  c.decay = "logsigmoid";
  const CleanCase shared = make_clean_case({c, 0}, chunk, one_thread(), 0);
  const Program moved = with_shared_memory_moved(shared.plan);
  ASSERT_FALSE(moved.launches.empty());
  EXPECT_NE(*moved.modules[0].ptx, *shared.plan.modules[0].ptx);
  EXPECT_TRUE(same_bits(shared.outcome, vm::run(moved, shared.inputs, one_thread())));
  EXPECT_TRUE(with_shared_memory_moved(clean.plan).launches.empty()) << "it has no shared memory";
}

}  // namespace
}  // namespace assay
