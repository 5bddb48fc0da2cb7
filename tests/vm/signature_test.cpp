// Meanings of the instruction table, and what decoding makes of them: ops, text and operands say the same.
#include "src/base/vm/signature.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/base/vm/code.h"
#include "tests/vm/small_kernel.h"
#include "tools/fidelity/program.h"

namespace assay::vm {
namespace {

using Registers = std::set<int32_t>;

/// Of one instruction: registers that its ops read and write, its own scratch cells left out.
struct Touched {
  Registers reads, writes;
};

std::map<int32_t, Touched> by_instruction(const Code& code) {
  std::map<Slot, int32_t> names;
  for (const RegisterPlace& place : code.registers) names[place.slot] = place.reg;
  std::map<int32_t, Touched> result;
  for (const Op& op : code.ops) {
    if (op.instruction < 0) continue;
    Touched& at = result[op.instruction];
    for (const Use& use : code.signature(op).reads)
      if (names.contains(use.slot)) at.reads.insert(names[use.slot]);
    for (const Use& use : code.signature(op).writes)
      if (names.contains(use.slot)) at.writes.insert(names[use.slot]);
  }
  return result;
}

std::string names_of(const ptx::Function& function, const Registers& registers) {
  std::string text;
  for (const int32_t reg : registers) text += " " + function.registers[static_cast<size_t>(reg)].name;
  return text;
}

/// The ops of wmma leave out registers of a fragment that repeat others, and prefetch does nothing.
void expect_agreement(const std::string& text, const std::string& entry, const std::string& about) {
  const auto module = std::make_shared<const ptx::Module>(ptx::parse(text, about));
  const std::shared_ptr<const Code> code = decode(module, entry);
  const ptx::Function& function = module->functions[static_cast<size_t>(code->entry)];
  for (const auto& [index, touched] : by_instruction(*code)) {
    const ptx::Instruction& in = function.body[static_cast<size_t>(index)];
    const TextSignature said = signature_of(in);
    ASSERT_NE(said.meaning, nullptr) << in.opcode;
    const Registers reads(said.reads.begin(), said.reads.end()),
        writes(said.writes.begin(), said.writes.end());
    EXPECT_TRUE(writes == touched.writes)
        << in.opcode << " in " << about << " writes" << names_of(function, writes) << ", its ops"
        << names_of(function, touched.writes);
    for (const int32_t reg : touched.reads)
      EXPECT_TRUE(reads.contains(reg) || writes.contains(reg))
          << in.opcode << " reads " << function.registers[static_cast<size_t>(reg)].name;
    using enum ptx::Operation;
    const ptx::Operation o = in.form.operation;
    if (o == wmma_load || o == wmma_store || o == wmma_mma || o == prefetch) continue;
    EXPECT_TRUE(reads == touched.reads)
        << in.opcode << " in " << about << " reads" << names_of(function, reads) << ", its ops"
        << names_of(function, touched.reads);
  }
}

TEST(Signatures, OpsAndTextTouchTheSameRegistersInEveryForm) {
  size_t count = 0;
  for (const fidelity::Form& form : fidelity::forms(10)) {
    if (form.name.find(".add.v") != std::string::npos)
      continue;  // below; program_text has no vectors of cells
    expect_agreement(fidelity::program_text(form), "check", form.name);
    ++count;
  }
  EXPECT_GT(count, 1500u);
}

const char* const kUnusual[] = {
    "bra DONE;",
    "@%p1 bra DONE;",
    "bar.sync 0, %r1;",
    "bar.red.popc.u32 %r1, 0, %p1;",
    "ld.global.v4.b32 {%r1, %r2, %r3, _}, [%rd1+16];",
    "st.shared.v2.b64 [%r1], {%rd1, %rd2};",
    "red.global.add.f32 [%rd1], %f1;",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
    "atom.shared.cas.b32 %r1, [%r2], %r3, %r4;",
    "atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f3, %f4};",
    "cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;",
    "cp.async.commit_group;",
    "cp.async.wait_group 1;",
    "mbarrier.init.shared.b64 [%r1], %r2;",
    "mbarrier.arrive.shared.b64 %rd1, [%r1];",
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], %r2;",
    "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;",
    "wgmma.fence.sync.aligned;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %rd1, "
    "%p1, 1, "
    "1, 0;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd1, %p1, 1, 1, 0, 0;",
    "wgmma.wait_group.sync.aligned 2;",
    "cvta.to.shared.u64 %rd1, %rd2;",
    "isspacep.shared %p1, %rd1;",
    "shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1;",
    "elect.sync %r1|%p1, -1;",
    "mov.b64 {%r1, %r2}, %rd1;",
    "cvt.u16.u32 %h1, %r1;",
    "cvt.u8.u64 %r1, %rd1;",
    "@!%p2 selp.f32 %f1, %f2, %f3, %p1;",
    "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1], %r9;",
    "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %r9;",
    "prefetch.global.L2 [%rd1];",
    "createpolicy.fractional.L2::evict_last.b64 %rd1, 0f3F800000;",
};

TEST(Signatures, OpsAndTextTouchTheSameRegistersWhereMemoryAndControlTakePart) {
  for (const char* const body : kUnusual) expect_agreement(text_of({.body = body}), "k", body);
}

/// The signature of the last instruction of `body`.
struct One {
  std::shared_ptr<const Code> code;
  Signature signature;
};
One last_of(const std::string& body) {
  const std::string text = text_of({.body = body + " trap;"});
  const auto module = std::make_shared<const ptx::Module>(ptx::parse(text, "test.ptx"));
  One made{decode(module, "k"), {}};
  for (size_t i = 0; i + 1 < made.code->ops.size(); ++i)
    if (made.code->signatures[i + 1].control == Control::trap) made.signature = made.code->signatures[i];
  return made;
}

TEST(Signatures, AccessesHaveSpaceWidthAndDirection) {
  using Direction = Access::Direction;
  const One load = last_of("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];");
  ASSERT_EQ(load.signature.accesses.size(), 1u);
  EXPECT_EQ(load.signature.accesses[0].space, ptx::Space::global);
  EXPECT_EQ(load.signature.accesses[0].bytes, 16u);
  EXPECT_EQ(load.signature.accesses[0].offset, 16);
  EXPECT_EQ(load.signature.accesses[0].direction, Direction::read);
  EXPECT_EQ(load.signature.writes.size(), 4u);
  EXPECT_EQ(load.signature.writes[3].type, ptx::Type::f32);
  const One copy = last_of("cp.async.cg.shared.global [%r1], [%rd1], 16;");
  ASSERT_EQ(copy.signature.accesses.size(), 2u);
  EXPECT_EQ(copy.signature.accesses[0].direction, Direction::read);
  EXPECT_EQ(copy.signature.accesses[1].space, ptx::Space::shared);
  EXPECT_EQ(copy.signature.accesses[1].direction, Direction::write);
  EXPECT_EQ(copy.signature.meaning->asynchronous.completion, Completion::copy_group);
  const One sum = last_of("red.release.gpu.global.add.f32 [%rd1], %f1;");
  EXPECT_EQ(sum.signature.accesses[0].direction, Direction::update);
  EXPECT_EQ(sum.signature.form.order, ptx::Order::release);
  EXPECT_EQ(sum.signature.form.combine, ptx::Combine::add);
  const One rows = last_of("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];");
  EXPECT_EQ(rows.signature.accesses[0].reach, Access::Reach::rows);
  EXPECT_TRUE(rows.signature.form.transposed);
  const One tiles = last_of(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd1, %p1, 1, 1, 0, 0;");
  ASSERT_EQ(tiles.signature.accesses.size(), 2u);
  EXPECT_EQ(tiles.signature.accesses[1].proxy, Proxy::async);
  EXPECT_EQ(tiles.signature.matrix.k, 16);
  EXPECT_EQ(tiles.signature.writes.size(), 4u);
}

TEST(Signatures, WaitsSayHowManyGroupsMayStay) {
  EXPECT_EQ(last_of("cp.async.wait_group 3;").signature.groups, 3u);
  EXPECT_EQ(last_of("cp.async.wait_all;").signature.groups, ~uint64_t{0});
  EXPECT_EQ(last_of("wgmma.wait_group.sync.aligned 1;").signature.groups, 1u);
}

TEST(Signatures, WgmmaWritesItsRegistersAndABranchTableNone) {
  const std::string text = text_of({.body = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, "
                                            "%f3, %f4}, %rd2, %rd1, %p1, 1, 1, 0, 0;"
                                            "TABLE: .branchtargets DONE; brx.idx %r1, TABLE;"});
  const ptx::Module module = ptx::parse(text, "test.ptx");
  const std::vector<ptx::Instruction>& body = module.functions[0].body;
  for (const ptx::Instruction& in : body) {
    if (in.form.operation == ptx::Operation::wgmma_mma_async) {
      EXPECT_EQ(signature_of(in).writes.size(), 4u);
    }
    if (in.form.operation == ptx::Operation::brx_idx) {
      EXPECT_TRUE(signature_of(in).writes.empty());
      EXPECT_EQ(signature_of(in).reads.size(), 1u);
    }
  }
}

TEST(Signatures, StatusIsGivenByArchitecture) {
  const ptx::Module module = ptx::parse(text_of({.body = "ex2.approx.ftz.f32 %f1, %f2;"}), "test.ptx");
  for (const ptx::Instruction& in : module.functions[0].body) {
    if (in.form.operation != ptx::Operation::ex2) continue;
    EXPECT_EQ(evidence_of(*meaning_of(in), in.opcode, 90), Evidence::measured);
    EXPECT_EQ(evidence_of(*meaning_of(in), in.opcode, 80), Evidence::modelled);
    EXPECT_EQ(evidence_of(*meaning_of(in), "wgmma.fence.sync.aligned", 80), Evidence::absent);
  }
}

}  // namespace
}  // namespace assay::vm
