#include "kernels/kernel.h"

#include <gtest/gtest.h>

#include "kernels/defect.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/resolved_case.h"

namespace assay {
namespace kernel_test {

std::string refusal(const std::string& name) {
  try {
    find_kernel(name);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(Kernel, IsFoundByNameAndBelongsToAnOperator) {
  for (const Kernel& kernel : kernels()) {
    EXPECT_EQ(&find_kernel(kernel.name), &kernel);
    EXPECT_EQ(kernel.name.substr(0, kernel.name.find('.')), kernel.operator_name);
    EXPECT_NO_THROW(find_operator(kernel.operator_name));
    EXPECT_FALSE(kernel.summary.empty() || kernel.arithmetic_text.empty()) << kernel.name;
    EXPECT_GE(kernel.resume_granularity, 1);
  }
}

/// A slip in a declaration (a function of the C library's in place of ours, a count for an error) makes a
/// bound under which everything passes.
TEST(Kernel, DeclaresNoErrorAsLargeAsWhatErrs) {
  int64_t numbers = 0;
  for (const Kernel& kernel : kernels())
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
      Case c;
      c.kernel = kernel.name, c.dtype = dtype, c.T = 100, c.K = c.V = 64;
      const ResolvedCase resolved = resolve_unchecked(c, find_operator(kernel.operator_name));
      const auto expect_small = [&](const auto& fields, const auto& declared) {
        for (const auto& field : fields) {
          if (field.unit != ArithmeticUnit::relative) continue;
          const double error = field.error(declared);
          EXPECT_TRUE(error >= 0 && error < 0.5)
              << kernel.name << ' ' << format(dtype).name << ' ' << field.name << " = " << error;
          numbers += error > 0;
        }
      };
      if (kernel.arithmetic) expect_small(kArithmeticFields, kernel.arithmetic(resolved));
      if (!kernel.adjoint_arithmetic) continue;
      const AdjointArithmetic adjoint = kernel.adjoint_arithmetic(resolved);
      expect_small(kAdjointFields, adjoint);
      expect_small(kArithmeticFields, adjoint.state);
      expect_small(kArithmeticFields, adjoint.adjoint);
    }
  EXPECT_GT(numbers, static_cast<int64_t>(kernels().size()));
}

TEST(Kernel, UnknownNamesAreRefusedWithWhatThereIs) {
  EXPECT_EQ(refusal("gla.chonk"), "unknown kernel 'gla.chonk': did you mean 'gla.chunk'?");
  for (const char* kernel : {"gla.chunk", "gla.fused_recurrent"}) {
    std::string names;
    for (const Defect& defect : defects())
      if (defect.kernel == kernel) names += (names.empty() ? "" : ", ") + defect.name;
    ASSERT_NE(names.find("D1"), names.npos);
    EXPECT_EQ(refusal(std::string(kernel) + "@S9"),
              std::string(kernel) + " has no defect 'S9'; there are: " + names);
  }
}

TEST(Kernel, WithADefectKeepsItsPlanAndSaysWhatIsWrong) {
  for (const Defect& defect : defects()) {
    const std::string name = defect.kernel + "@" + defect.name;
    const Kernel& kernel = find_kernel(name);
    EXPECT_EQ(kernel.name, name);
    EXPECT_EQ(&find_kernel(name), &kernel) << "references stay valid";
    EXPECT_NE(kernel.summary.find(defect.what), std::string::npos);
    EXPECT_FALSE(kernel.exponents_nonpositive);
    EXPECT_EQ(kernel.exponents_meant_nonpositive, find_kernel(defect.kernel).exponents_nonpositive);
  }
}

}  // namespace kernel_test
}  // namespace assay
