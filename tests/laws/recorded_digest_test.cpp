// What an H200 computed, computed again on the virtual machine: the same bits, case by case.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "src/base/backend/backend.h"
#include "src/verification/compare/digest.h"
#include "src/verification/verify/acceptance.h"

namespace assay {
namespace {

struct Recorded {
  Case c;
  uint64_t digest = 0;
};

std::vector<Recorded> recorded() {
  std::ifstream file(ASSAY_SOURCE_DIR "/tests/data/digests_h200.txt");
  std::vector<Recorded> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string token, digest;
    words >> token >> digest;
    rows.push_back({parse_token(token), std::stoull(digest, nullptr, 16)});
  }
  return rows;
}

uint64_t digest_on_machine(const Case& c, Backend& machine) {
  const Kernel& kernel = find_kernel(c.kernel);
  const Operator& op = find_operator(kernel.operator_name);
  const TensorMap inputs = draw_inputs(c, op);
  const Outcome outcome = machine.run(program_of(kernel, resolve_unchecked(c, op), inputs), inputs);
  EXPECT_FALSE(outcome.trap) << token_of(c) << ": " << outcome.trap->message;
  return digest(outcome.outputs);
}

/// One row in `parts` of the file, so that they run side by side.
constexpr size_t parts = 8;
class RecordedDigestPart : public testing::TestWithParam<size_t> {};

TEST_P(RecordedDigestPart, OfAnH200AreTheMachinesOwn) {
  const std::vector<Recorded> rows = recorded();
  ASSERT_GE(rows.size(), 500u);
  const auto machine = make_vm_backend({});
  for (size_t i = GetParam(); i < rows.size(); i += parts)
    EXPECT_EQ(digest_on_machine(rows[i].c, *machine), rows[i].digest) << token_of(rows[i].c);
}
INSTANTIATE_TEST_SUITE_P(Each, RecordedDigestPart, testing::Range(size_t{0}, parts));

TEST(RecordedDigests, TellTheArithmeticOfAnotherArchitecture) {
  BackendOptions options;
  options.arch = "sm_80";
  const auto machine = make_vm_backend(options);
  int differing = 0, looked_at = 0;
  for (const Recorded& row : recorded()) {
    if (row.c.kernel != "gla.chunk" || row.c.values != "normal") continue;
    differing += digest_on_machine(row.c, *machine) != row.digest;
    if (++looked_at == 40) break;
  }
  EXPECT_GT(differing, 0) << "of " << looked_at << " cases; sm_80 sums products in two steps";
}

}  // namespace
}  // namespace assay
