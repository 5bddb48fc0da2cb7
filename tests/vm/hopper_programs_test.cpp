// Programs of tensor copies and clusters against what an H200 left in memory, and a product of matrices
// against arithmetic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "src/base/backend/backend.h"
#include "src/base/vm/checks/checks.h"
#include "src/verification/compare/digest.h"
#include "tools/hopper/programs.h"

namespace assay::hopper {
namespace {

NamedProgram named(const std::string& name) {
  for (NamedProgram& program : programs())
    if (program.name == name) return std::move(program);
  ADD_FAILURE() << "no program " << name;
  return {};
}

/// Name -> digest in hex.
std::map<std::string, std::string> recorded() {
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/tests/data/hopper_h200.txt");
  std::map<std::string, std::string> digests;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) digests[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
  return digests;
}

TEST(HopperPrograms, LeaveTheBitsOfAnH200) {
  std::map<std::string, std::string> left = recorded();
  ASSERT_GT(left.size(), 300u);
  const auto machine = make_vm_backend({.threads = 1});
  for (const NamedProgram& program : programs()) {
    const auto found = left.find(program.name);
    const Outcome outcome = machine->run(program.program, program.inputs);
    if (found == left.end()) {  // an illegal instruction there
      EXPECT_TRUE(outcome.trap) << program.name;
      continue;
    }
    ASSERT_FALSE(outcome.trap) << program.name << ": " << outcome.trap->message;
    EXPECT_EQ(fmt::format("{:016x}", digest(outcome.outputs)), found->second) << program.name;
    left.erase(found);
  }
  for (const auto& [name, digest] : left) ADD_FAILURE() << name << " is recorded, but no program";
}

TEST(HopperPrograms, AMultipliedMatrixIsTheProduct) {
  NamedProgram gemm = named("gemm");
  const Outcome outcome = make_vm_backend({.threads = 1})->run(gemm.program, gemm.inputs);
  ASSERT_FALSE(outcome.trap) << outcome.trap->message;
  const Tensor &a = gemm.inputs.at("a"), &b = gemm.inputs.at("b"), &c = outcome.outputs.at("c");
  const int64_t rows = a.axes[0].size, columns = b.axes[0].size, depth = a.axes[1].size;
  for (int64_t m = 0; m < rows; m += 7)
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double product = a.value(m * depth + k) * b.value(n * depth + k);
        sum += product, magnitude += std::fabs(product);
      }
      // Sums of 16 products cut off at 2^-24 of the largest term each.
      ASSERT_NEAR(c.value(m * columns + n), sum, magnitude * static_cast<double>(depth) * 0x1p-24)
          << m << ' ' << n;
    }
}

TEST(HopperPrograms, AreSilentUnderTheChecks) {
  for (const NamedProgram& program : programs()) {
    const bool drawn = program.inputs.contains("g");
    // What reductions add to was never written.
    if ((drawn && !program.name.ends_with("7")) || program.name.starts_with("reduction")) continue;
    std::optional<Trap> trap;
    const CheckReport report =
        vm::run_checked(program.program, program.inputs, vm::MachineOptions{.threads = 1}, {}, &trap);
    if (trap) continue;
    for (const CheckFinding& finding : report.findings)
      if (!drawn || finding.kind != CheckKind::never_written)  // three words beside the first one
        ADD_FAILURE() << program.name << ": " << name_of(finding.kind) << ": " << finding.message;
  }
}

TEST(HopperPrograms, EveryTileArrives) {
  const auto machine = make_vm_backend({.threads = 1});
  int loads = 0;
  for (const NamedProgram& program : programs()) {
    const Outcome outcome = machine->run(program.program, program.inputs);
    if (outcome.trap || !outcome.outputs.contains("other") || program.name.starts_with("replace")) continue;
    ++loads;
    EXPECT_EQ(outcome.outputs.at("other").bits(0), 1u) << program.name;
  }
  EXPECT_GT(loads, 200);
}

}  // namespace
}  // namespace assay::hopper
