#include "tools/hopper/cluster_programs.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>

#include "src/base/numerics/bad_input.h"

namespace assay::hopper {
namespace {

/// Blocks of 64 threads that have the words of x, and write one word each of y.
constexpr const char* kWords =
    ".version 8.3\n.target sm_90a\n.address_size 64\n.shared .align 128 .b8 tile[2048];\n.shared .align 8 "
    ".b8 gate[16];\n"
    ".visible .entry k(.param .u64 px, .param .u64 py)\n{\n"
    ".reg .pred p, q, first; .reg .b32 %r<24>; .reg .b64 %rd<12>; .reg .b16 %h<4>; .reg .f32 %f<8>;\n"
    "ld.param.u64 %rd0, [px]; ld.param.u64 %rd1, [py]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; "
    "mad.lo.u32 %r2, %r0, "
    "64, %r1;\n"
    "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2; ld.global.b32 %r3, "
    "[%rd3];\n"
    "mov.u32 %r4, tile; shl.b32 %r5, %r1, 2; add.u32 %r5, %r5, %r4; mov.u32 %r6, gate; mov.u32 %r7, "
    "%cluster_ctarank;\n"
    "mov.u32 %r8, %cluster_nctarank; setp.eq.u32 first, %r1, 0; mov.u32 %r20, 0;\n"
    "@first mbarrier.init.shared::cta.b64 [%r6], 1; @first fence.mbarrier_init.release.cluster;\n"
    "st.shared.b32 [%r5], %r3; fence.proxy.async; barrier.cluster.arrive.release; "
    "barrier.cluster.wait.acquire;\n";
constexpr const char* kLast =
    "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; st.global.b32 [%rd4], %r20;\nret;\n}\n";

NamedProgram of_words(const std::string& name, uint32_t cluster, const std::string& body) {
  NamedProgram made;
  made.name = name;
  constexpr uint32_t blocks = 16, words = blocks * 64;
  Tensor x("x", Dtype::i32, {{"T", words}});
  for (uint32_t i = 0; i < words; ++i)
    x.set_bits(i, std::bit_cast<uint32_t>(std::sin(static_cast<float>(i)) + 1.5f));
  made.inputs["x"] = std::move(x);
  made.program.name = name;
  made.program.modules.push_back({"m", name + ".ptx", std::make_shared<std::string>(kWords + body + kLast)});
  made.program.outputs.push_back({"y", Dtype::i32, {{"T", words}}});
  Launch launch;
  launch.module = "m", launch.function = "k", launch.grid = {blocks, 1, 1}, launch.block = {64, 1, 1};
  launch.cluster = {cluster, 1, 1};
  launch.arguments = {PointerArgument{"x", 0}, PointerArgument{"y", 0}};
  made.program.launches.push_back(launch);
  return made;
}

constexpr const char* kWait =
    "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%r6], 0; @!p bra WAIT;\n";

/// Sums of all blocks of the cluster, read from their shared memories.
const std::string kRemoteSums =
    "mov.u32 %r9, 0; mov.f32 %f0, 0f00000000;\nNEXT: mapa.shared::cluster.u32 %r10, %r5, %r9; "
    "ld.shared::cluster.f32 %f1, "
    "[%r10]; add.rn.f32 %f0, %f0, %f1; add.u32 %r9, %r9, 1; setp.lt.u32 p, %r9, %r8; @p bra NEXT; mov.b32 "
    "%r20, %f0;\n";
/// The same through generic addresses, with atomics on the first block.
const std::string kRemoteAtomics =
    "cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd6, %rd5, 0; add.u32 %r9, %r7, 1;\n"
    "st.shared.b32 [%r5], 0; barrier.cluster.arrive.release; barrier.cluster.wait.acquire; red.add.u32 "
    "[%rd6], %r9; "
    "atom.shared::cluster.add.u32 %r11, [%r5+1024], 0;\n"
    "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; ld.u32 %r20, [%rd6]; getctarank.u64 %r12, "
    "%rd6; "
    "add.u32 %r20, %r20, %r12;\n";
/// Each block's words to the next block by a bulk copy that completes at that block's mbarrier.
const std::string kRing =
    "add.u32 %r9, %r7, 1; rem.u32 %r9, %r9, %r8; add.u32 %r10, %r4, 1024; mapa.shared::cluster.u32 %r11, "
    "%r10, %r9; "
    "mapa.shared::cluster.u32 %r12, %r6, %r9;\n"
    "@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 256;\n"
    "@first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [%r4], 256, "
    "[%r12];\n" +
    std::string(kWait) + "ld.shared.b32 %r20, [%r5+1024];\n";
/// The first block's words to all blocks.
const std::string kMulticast =
    "@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 256;\nbarrier.cluster.arrive; "
    "barrier.cluster.wait;\n"
    "setp.eq.and.u32 q, %r7, 0, first; mov.u32 %r9, 1; shl.b32 %r9, %r9, %r8; sub.u32 %r9, %r9, 1; "
    "cvt.u16.u32 %h0, %r9;\n"
    "add.u32 %r10, %r4, 512;\n"
    "@q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r10], [%rd3], "
    "256, [%r6], "
    "%h0;\n" +
    std::string(kWait) + "ld.shared.b32 %r20, [%r5+512];\n";
/// All blocks arrive at the first one's mbarrier.
const std::string kRemoteArrivals =
    "setp.eq.and.u32 q, %r7, 0, first; add.u32 %r9, %r6, 8; @q mbarrier.init.shared::cta.b64 [%r9], %r8; @q "
    "fence.mbarrier_init.release.cluster;\n"
    "barrier.cluster.arrive.relaxed; barrier.cluster.wait; mapa.shared::cluster.u32 %r10, %r9, 0; "
    "mapa.shared::cluster.u32 "
    "%r11, %r5, 0; mul.lo.u32 %r12, %r7, 256;\n"
    "setp.ne.u32 p, %r7, 0; add.u32 %r11, %r11, %r12; @p st.shared::cluster.b32 [%r11], %r3; "
    "fence.acq_rel.cluster; "
    "bar.sync 0;\n"
    "@first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];\nsetp.ne.u32 p, %r7, 0; @p bra "
    "OVER;\n"
    "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%r9], 0; @!p bra AGAIN;\n"
    "mov.u32 %r13, 0; mov.u32 %r14, %r5;\nSUM: ld.shared.b32 %r15, [%r14]; add.u32 %r20, %r20, %r15; add.u32 "
    "%r14, %r14, "
    "256; add.u32 %r13, %r13, 1; setp.lt.u32 p, %r13, %r8; @p bra SUM;\nOVER:\n";
/// Bulk reductions into global memory, of all blocks into the same words.
const std::string kReduction =
    "shr.u32 %r9, %r3, 8; st.shared.b32 [%r5], %r9; fence.proxy.async; bar.sync 0;\n"
    "@first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r4], 256; @first "
    "cp.async.bulk.commit_group; @first cp.async.bulk.wait_group 0;\nexit;\n";

NamedProgram gemm() {
  NamedProgram made;
  made.name = "gemm";
  const std::string path = "tests/data/hopper_gemm.ptx";
  std::ifstream file(path);
  if (!file) throw BadInput("cannot open " + path + " (begin in the root of the source tree)");
  std::stringstream text;
  text << file.rdbuf();
  constexpr int64_t m = 512, n = 192, k = 320;
  Program& program = made.program;
  program.name = made.name;
  program.modules.push_back({"m", "hopper_gemm.ptx", std::make_shared<std::string>(text.str())});
  const auto matrix = [](const char* name, int64_t rows, float scale) {
    Tensor x(name, Dtype::bf16, {{"M", rows}, {"K", k}});
    for (int64_t i = 0; i < x.size(); ++i)
      x.set_bits(i, std::bit_cast<uint32_t>(scale * std::sin(static_cast<float>(i * i % 1009))) >> 16);
    return x;
  };
  made.inputs["a"] = matrix("a", m, 3.0f);
  made.inputs["b"] = matrix("b", n, 0.7f);
  program.outputs.push_back({"c", Dtype::fp32, {{"M", m}, {"N", n}}});
  const auto map = [](TileMap::Element element, uint64_t columns, uint64_t rows, uint32_t width,
                      uint32_t height, TileMap::Swizzle swizzle) {
    const uint64_t bytes = element == TileMap::Element::f32 ? 4 : 2;
    return TileMap{.element = element,
                   .sizes = {columns, rows},
                   .strides = {columns * bytes},
                   .box = {width, height},
                   .steps = {1, 1},
                   .swizzle = swizzle};
  };
  Launch launch;
  launch.module = "m", launch.function = "gemm", launch.grid = {m / 128, n / 64, 1},
  launch.block = {160, 1, 1};
  launch.shared_bytes = 113 * 1024;
  using Element = TileMap::Element;
  launch.arguments = {
      Argument::of(PointerArgument{"a"}, map(Element::bf16, k, m, 64, 128, TileMap::Swizzle::of_128_bytes)),
      Argument::of(PointerArgument{"b"}, map(Element::bf16, k, n, 64, 32, TileMap::Swizzle::of_128_bytes)),
      Argument::of(PointerArgument{"c"}, map(Element::f32, n, m, 64, 128, TileMap::Swizzle::none)),
      int32_t{k}};
  program.launches.push_back(launch);
  return made;
}

}  // namespace

std::vector<NamedProgram> cluster_programs() {
  std::vector<NamedProgram> all;
  for (const uint32_t cluster : {2u, 4u, 8u}) {
    const auto add = [&](const char* name, const std::string& body) {
      all.push_back(of_words(fmt::format("{}-{}", name, cluster), cluster, body));
    };
    add("remote-sums", kRemoteSums);
    add("remote-atomics", kRemoteAtomics);
    add("ring", kRing);
    add("multicast", kMulticast);
    add("remote-arrivals", kRemoteArrivals);
    all.push_back(of_words(fmt::format("reduction-{}", cluster), cluster, kReduction));
  }
  all.push_back(gemm());
  return all;
}

}  // namespace assay::hopper
