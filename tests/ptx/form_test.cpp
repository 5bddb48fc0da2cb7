// Opcodes taken apart.
#include "src/base/ptx/form.h"

#include <gtest/gtest.h>

#include "src/base/ptx/program.h"

namespace assay::ptx {
namespace {

TEST(Forms, SayWhatTheirPartsSay) {
  const Form fma = form_of("fma.rz.ftz.sat.f32");
  EXPECT_EQ(fma.operation, Operation::fma);
  EXPECT_EQ(fma.rounding, Rounding::rz);
  EXPECT_TRUE(fma.ftz && fma.saturates);
  EXPECT_EQ(fma.type(), Type::f32);
  const Form load = form_of("ld.acquire.gpu.global.L1::no_allocate.v4.b32");
  EXPECT_EQ(load.operation, Operation::ld);
  EXPECT_EQ(load.order, Order::acquire);
  EXPECT_EQ(load.space, Space::global);
  EXPECT_EQ(load.vector, 4);
  const Form cvt = form_of("cvt.rn.bf16x2.f32");
  EXPECT_EQ(cvt.types[0], Type::bf16x2);
  EXPECT_EQ(cvt.type(), Type::f32);
  EXPECT_TRUE(cvt.packed);
}

TEST(Forms, TellPartsOfTwoMeaningsApart) {
  EXPECT_EQ(form_of("mul.hi.u32").product, Product::hi);
  EXPECT_EQ(form_of("mul.hi.u32").comparison, Comparison::none);
  EXPECT_EQ(form_of("setp.hi.and.u32").comparison, Comparison::hi);
  EXPECT_EQ(form_of("setp.hi.and.u32").combine, Combine::and_);
  EXPECT_EQ(form_of("setp.hi.and.u32").product, Product::none);
  EXPECT_EQ(form_of("and.b32").combine, Combine::none);
  EXPECT_EQ(form_of("atom.shared::cta.and.b32").combine, Combine::and_);
}

TEST(Forms, NamesOfSeveralPartsAreTheLongestThatFit) {
  EXPECT_EQ(form_of("cp.async.cg.shared.global.L2::cache_hint").operation, Operation::cp_async);
  EXPECT_TRUE(form_of("cp.async.cg.shared.global.L2::cache_hint").cache_hint);
  EXPECT_EQ(form_of("cp.async.wait_group").operation, Operation::cp_async_wait_group);
  EXPECT_EQ(form_of("barrier.cta.sync.aligned").operation, Operation::bar_sync);
  EXPECT_EQ(form_of("bar.red.popc.u32").combine, Combine::popc);
  EXPECT_EQ(form_of("fence.proxy.async.shared::cta").operation, Operation::fence_proxy_async);
  EXPECT_EQ(form_of("fence.acq_rel.gpu").operation, Operation::fence);
  EXPECT_EQ(form_of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16").operation,
            Operation::wgmma_mma_async);
  EXPECT_EQ(form_of("addc.cc.u32").carry_in, true);
  EXPECT_EQ(form_of("addc.cc.u32").carry_out, true);
  EXPECT_EQ(form_of("unheard.of").operation, Operation::none);
  EXPECT_EQ(name_of(Operation::cp_async_wait_group), "cp.async.wait_group");
}

TEST(Forms, MovesFromAndToVectorsAreToldByTheirOperands) {
  const Module module = parse(
      ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<3>; .reg .b64 "
      "%d;\n"
      "mov.b64 %d, {%r1, %r2}; mov.b64 {%r1, %r2}, %d; mov.b64 %d, 1; ret;\n}\n",
      "test.ptx");
  const std::vector<Instruction>& body = module.functions[0].body;
  EXPECT_TRUE(body[0].form.is_pack);
  EXPECT_TRUE(body[1].form.is_unpack);
  EXPECT_FALSE(body[2].form.is_pack || body[2].form.is_unpack);
}

TEST(Forms, ArePutTogetherAgain) {
  EXPECT_EQ(with_part("mad.lo.s32", "lo", ""), "mad.s32");
  EXPECT_EQ(with_part("setp.lt.f32", "lt", "ge"), "setp.ge.f32");
  EXPECT_EQ(canonical_form("ld.volatile.global.ca.f32"), "ld.global.f32");
}

}  // namespace
}  // namespace assay::ptx
