// Every form of the instruction table against what an H200 computed: tests/data/fidelity_h200.txt holds, for
// each form, the digest of a subset of the operands that tools/fidelity compared with the hardware.
#include <gtest/gtest.h>

#include <array>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>

#include "src/base/vm/held_entries.h"
#include "tools/fidelity/comparison.h"
#include "tools/fidelity/program.h"
#include "tools/fidelity/recorded.h"

namespace assay::fidelity {
namespace {

/// What --log2 was when the file was recorded: where some subsets lie depends on it.
constexpr int recorded_log2_indices = 21;

std::map<std::string, std::string> recorded() {
  return recorded_digests(std::string(ASSAY_SOURCE_DIR) + "/tests/data/fidelity_h200.txt");
}

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setfill('0') << std::setw(16) << value;
  return out.str();
}

Form form_named(const std::string& name) {
  static const std::vector<Form> all = forms(20);
  for (const Form& form : all)
    if (form.name == name) return form;
  ADD_FAILURE() << "no form " << name;
  return {};
}

/// An engine with a wrong row: the plan's PTX with one text in place of another.
class WrongEngine : public Backend {
 public:
  WrongEngine(std::string right, std::string wrong)
      : right_(std::move(right)), wrong_(std::move(wrong)), machine_(make_vm_backend({})) {}
  std::string name() const override { return "wrong"; }
  Outcome run(const Program& plan, const TensorMap& inputs) override {
    Program changed = plan;
    std::string text = *plan.modules[0].ptx;
    if (const size_t at = text.find(right_); at != std::string::npos) text.replace(at, right_.size(), wrong_);
    changed.modules[0].ptx = std::make_shared<std::string>(text);
    return machine_->run(changed, inputs);
  }

 private:
  std::string right_, wrong_;
  std::unique_ptr<Backend> machine_;
};

constexpr int64_t few = 1 << 14;

TEST(Fidelity, EveryRecordedFormIsInTheTable) {
  std::map<std::string, std::string> left = recorded();
  ASSERT_GT(left.size(), 1700u);
  for (const Form& form : forms(recorded_log2_indices)) left.erase(form.name);
  for (const auto& [name, digest] : left) ADD_FAILURE() << name << " is recorded but not in the table";
}

/// One form in `parts` of the table, so that they run side by side.
constexpr size_t parts = 8;
class FidelityPart : public testing::TestWithParam<size_t> {};

TEST_P(FidelityPart, EveryFormGivesTheBitsOfAnH200) {
  const std::map<std::string, std::string> digests = recorded();
  const auto machine = make_vm_backend({.threads = 1});
  const std::vector<Form> all = forms(recorded_log2_indices);
  vm::hold_at_most(1);  // each program runs once
  for (size_t i = GetParam(); i < all.size(); i += parts)
    if (const auto found = digests.find(all[i].name); found != digests.end()) {
      EXPECT_EQ(hex(subset_digest(all[i], *machine)), found->second) << all[i].name;
    }
}
INSTANTIATE_TEST_SUITE_P(Each, FidelityPart, testing::Range(size_t{0}, parts));

TEST(Fidelity, CoversEveryRowThatIsAFunctionOfRegisters) {
  std::vector<std::string> others;
  std::set<std::string> covered;
  for (const Form& form : forms(14, &others)) covered.insert(form.name);
  for (const vm::Row& row : vm::rows())
    if (row.kind == vm::Kind::lanes || row.kind == vm::Kind::exponential || row.kind == vm::Kind::compare ||
        row.flow == vm::Flow::matrix || row.flow == vm::Flow::exchange || row.flow == vm::Flow::atomic)
      for (const std::string& name : vm::forms_of(row)) {
        if (name.starts_with("red.async")) continue;  // of another block's memory: tests/vm/cluster_test.cpp
        if (name.ends_with(".b128")) continue;        // bits moved as they are: tests/vm/memory_test.cpp
        EXPECT_TRUE(covered.contains(name)) << name;
      }
  for (const std::string& name : others) EXPECT_FALSE(covered.contains(name)) << name;
}

TEST(Fidelity, AWrongRowIsCaughtWithTheOperandsThatShowIt) {
  const auto machine = make_vm_backend({});
  WrongEngine wrong("and.b32 %d0", "or.b32 %d0");
  const Comparison found = compare(form_named("and.b32"), 0, few, fold, *machine, wrong);
  EXPECT_GT(found.mismatches, 0);
  ASSERT_TRUE(found.first);
  ASSERT_EQ(found.first->operands.size(), 2u);
  const uint64_t a = found.first->operands[0], b = found.first->operands[1];
  EXPECT_EQ(found.first->tested, a & b);
  EXPECT_EQ(found.first->expected, a | b);
}

TEST(Fidelity, WrongRoundingsNaNsAndLanesAreCaught) {
  const auto machine = make_vm_backend({});
  const std::vector<std::array<std::string, 2>> twins = {
      {"add.rz.f32", "add.rm.f32"},
      {"fma.rn.f32", "fma.rz.f32"},
      {"mul.rn.ftz.f32", "mul.rn.f32"},
      {"fma.rn.f16x2", "fma.rn.relu.f16x2"},
      {"cvt.rn.bf16.f32", "cvt.rz.bf16.f32"},
      {"max.f32", "max.NaN.f32"},
      {"shfl.sync.up.b32", "shfl.sync.down.b32"},
      {"setp.lt.f32", "setp.ltu.f32"},
      {"shf.l.wrap.b32", "shf.l.clamp.b32"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
       "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"}};
  for (const auto& [right, other] : twins) {
    WrongEngine wrong("\n" + right + " ", "\n" + other + " ");
    EXPECT_GT(compare(form_named(right), 0, few, fold, *machine, wrong).mismatches, 0) << right;
    EXPECT_EQ(compare(form_named(right), 0, few, fold, *machine, *machine).mismatches, 0) << right;
  }
}

TEST(Fidelity, AFormThatAnEngineRefusesIsReportedAsRefused) {
  const auto machine = make_vm_backend({});
  WrongEngine wrong("and.b32 %d0", "nonsense.b32 %d0");
  const Comparison found = compare(form_named("and.b32"), 0, few, fold, *machine, wrong);
  ASSERT_TRUE(found.refused);
  EXPECT_NE(found.refused->find("nonsense.b32"), std::string::npos) << *found.refused;
  EXPECT_EQ(found.results, 0);
}

/// All pairs of table entries meet: 64 * 64 of them among the first 4096 indices.
TEST(Fidelity, SpecialValuesOfTwoOperandsAreCrossed) {
  const auto machine = make_vm_backend({});
  const Form form = form_named("add.f32");
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const Program plans[] = {bare_plan(form, 0, 64, 64, 0), bare_plan(form, 0, 64, 64, 1)};
  const Tensor a = machine->run(plans[0], {}).outputs.at("digests"),
               b = machine->run(plans[1], {}).outputs.at("digests");
  for (int64_t i = 0; i < a.size(); ++i) seen.insert({a.bits(i), b.bits(i)});
  const uint64_t specials[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000, 0x3f800000,
                               0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0x7fffffff};
  for (const uint64_t x : specials)
    for (const uint64_t y : specials) EXPECT_TRUE(seen.contains({x, y})) << std::hex << x << ' ' << y;
}

}  // namespace
}  // namespace assay::fidelity
