// A ring of mbarriers: one thread brings tiles by bulk copies, a warp adds them up, each waits for the other
// by parities. Errors planted in what they count are found, sound rings are silent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/vm/checks/checked_kernel.h"

namespace assay::vm {
namespace ring_parity_test {

/// What the two sides do at each tile, as PTX; those that change are planted errors. %r10: the tile, %r11:
/// its stage, %r12: the parity of the wait, %r13: the full barrier of the stage, the empty one 32 bytes
/// behind it.
struct Ring {
  int stages = 2, tiles = 6, arrivals = 32, first_empty = 1, first_full = 0, bytes = 128;
  std::string wait_empty =
      "EMPTY: mbarrier.try_wait.parity.shared.b64 %p4, [%r13+32], %r12; @!%p4 bra EMPTY;\n";
  std::string wait_full = "FULL: mbarrier.try_wait.parity.shared.b64 %p4, [%r13], %r12; @!%p4 bra FULL;\n";
  std::string before_read, after_read = "mbarrier.arrive.shared.b64 _, [%r13+32];\n";
  std::string flip_empty = "@%p5 xor.b32 %r12, %r12, 1;\n",
              flip_full = flip_empty;  ///< %p5: behind the last stage
};

/// From one stage to the next, until all tiles have passed.
std::string step(const Ring& ring, const std::string& flip, const char* loop) {
  return fmt::format(
      "add.u32 %r11, %r11, 1; setp.eq.u32 %p5, %r11, {}; @%p5 mov.u32 %r11, 0;\n{}"
      "add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, {}; @%p6 bra {};\n",
      ring.stages, flip, ring.tiles, loop);
}

SmallKernel kernel_of(const Ring& ring) {
  std::string body =
      "mov.u32 %r4, tile; mov.u32 %r5, gates; setp.eq.u32 %p3, %r32, 0; ld.param.u64 %rd1, [pa];\n"
      "@!%p3 bra READY;\n";
  for (int stage = 0; stage < ring.stages; ++stage)
    body += fmt::format("mbarrier.init.shared.b64 [%r5+{}], 1; mbarrier.init.shared.b64 [%r5+{}], {};\n",
                        8 * stage, 8 * stage + 32, ring.arrivals);
  const std::string places =
      "shl.b32 %r13, %r11, 3; add.u32 %r13, %r13, %r5; shl.b32 %r15, %r11, 7; add.u32 %r15, %r15, %r4;\n";
  body +=
      "fence.mbarrier_init.release.cluster;\nREADY: bar.sync 0;\nmov.u32 %r10, 0; mov.u32 %r11, 0;\n"
      "setp.ge.u32 %p1, %r32, 32; @%p1 bra CONSUMER; @!%p3 bra DONE;\n";
  body += fmt::format("mov.u32 %r12, {};\nPRODUCE: {}{}", ring.first_empty, places, ring.wait_empty);
  body += fmt::format(
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r13], {};\n"
      "and.b32 %r14, %r10, 1; shl.b32 %r14, %r14, 7; cvt.u64.u32 %rd2, %r14; add.u64 %rd2, %rd2, %rd1;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%rd2], 128, [%r13];\n",
      ring.bytes);
  body += step(ring, ring.flip_empty, "PRODUCE") + "bra DONE;\n";
  body += fmt::format("CONSUMER: mov.u32 %r12, {};\nCONSUME: {}{}", ring.first_full, places, ring.wait_full);
  body += "and.b32 %r16, %r32, 31; shl.b32 %r16, %r16, 2; add.u32 %r16, %r16, %r15;\n" + ring.before_read +
          "ld.shared.b32 %r17, [%r16]; add.u32 %d, %d, %r17;\n" + ring.after_read;
  body += step(ring, ring.flip_full, "CONSUME");
  SmallKernel kernel{.declarations = ".shared .align 128 .b8 tile[512]; .shared .align 8 .b8 gates[64];",
                     .body = body,
                     .threads = 64};
  for (uint32_t i = 0; i < 64; ++i) kernel.a.push_back(i);
  return kernel;
}

TEST(RingParity, SoundRingsOfAnyDepthAreSilentAndAddUpEveryTile) {
  for (const bool of_number : {false, true})
    for (int stages = 1; stages <= 4; ++stages)
      for (const int tiles : {1, 4, 9}) {
        Ring ring{.stages = stages, .tiles = tiles};
        if (of_number)  // the parity anew of the next tile's number
          ring.flip_full =
              fmt::format("add.u32 %r18, %r10, 1; div.u32 %r18, %r18, {}; and.b32 %r12, %r18, 1;\n", stages),
          ring.flip_empty = ring.flip_full + "xor.b32 %r12, %r12, 1;\n";
        const SmallKernel kernel = kernel_of(ring);
        const CheckedRun run = run_checked(kernel);
        EXPECT_FALSE(run.trap) << run.trap->message;
        EXPECT_TRUE(run.report.findings.empty()) << stages << " stages\n" << all_messages(run.report);
        const std::vector<uint32_t> words = words_of(run_small(kernel));
        for (uint32_t lane = 0; lane < 32 && !words.empty(); ++lane)
          EXPECT_EQ(words[32 + lane],
                    static_cast<uint32_t>(tiles) * lane + static_cast<uint32_t>(tiles / 2) * 32);
      }
}

struct Planted {
  const char* name;
  std::vector<std::string> kinds;  ///< one of them is found, or is what the run traps for
  Ring ring;
};

Ring with(void (*change)(Ring&)) {
  Ring ring;
  change(ring);
  return ring;
}

const std::string kEachTile = "xor.b32 %r12, %r12, 1;\n";
const std::string kOneEarly = "setp.eq.u32 %p7, %r11, 1; @%p7 xor.b32 %r12, %r12, 1;\n";

const std::string kFirstStage =
    "EMPTY: mbarrier.try_wait.parity.shared.b64 %p4, [%r5+32], %r12; @!%p4 bra EMPTY;\n";

// What a wrong parity leads to depends on who comes first: a wait that passes too early, or never ends.
const Planted planted[] = {
    {"the producer waits for the second parity first", {"hang"}, with([](Ring& r) { r.first_empty = 0; })},
    {"the producer's parity never changes",
     {"race", "bulk-copy-race", "mbarrier-phase", "barrier", "hang"},
     with([](Ring& r) { r.flip_empty.clear(); })},
    {"the producer's parity changes with each tile",
     {"race", "bulk-copy-race", "mbarrier-phase", "hang"},
     with([](Ring& r) { r.flip_empty = kEachTile; })},
    {"the producer's parity changes one stage early",
     {"race", "bulk-copy-race", "mbarrier-phase", "hang"},
     with([](Ring& r) { r.flip_empty = kOneEarly; })},
    {"the producer does not wait", {"race", "bulk-copy-race", "barrier"}, with([](Ring& r) {
       r.wait_empty.clear();
     })},
    {"the producer waits at the first stage alone",
     {"race", "bulk-copy-race", "mbarrier-phase"},
     with([](Ring& r) { r.wait_empty = kFirstStage; })},
    {"the consumer waits for the second parity first", {"race", "bulk-copy-race"}, with([](Ring& r) {
       r.first_full = 1;
     })},
    {"the consumer's parity never changes",
     {"race", "bulk-copy-race", "mbarrier-phase", "hang"},
     with([](Ring& r) { r.flip_full.clear(); })},
    {"the consumer's parity changes with each tile",
     {"race", "bulk-copy-race", "mbarrier-phase", "hang"},
     with([](Ring& r) { r.flip_full = kEachTile; })},
    {"the consumer's parity changes one stage early",
     {"race", "bulk-copy-race", "mbarrier-phase", "hang"},
     with([](Ring& r) { r.flip_full = kOneEarly; })},
    {"the consumer does not wait", {"race", "bulk-copy-race"}, with([](Ring& r) { r.wait_full.clear(); })},
    {"the consumer gives the stage back before it reads", {"race", "bulk-copy-race"}, with([](Ring& r) {
       std::swap(r.before_read, r.after_read);
     })},
    {"one arrival of 32 gives the stage back", {"race", "bulk-copy-race", "hang"}, with([](Ring& r) {
       r.arrivals = 1;
     })},
    {"half of the bytes are expected", {"bulk-copy-race", "hang"}, with([](Ring& r) { r.bytes = 64; })},
};

class RingParity : public testing::TestWithParam<Planted> {};
INSTANTIATE_TEST_SUITE_P(Planted, RingParity, testing::ValuesIn(planted), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

TEST_P(RingParity, IsFound) {
  const CheckedRun run = run_checked(kernel_of(GetParam().ring));
  const std::string trap(run.trap ? name_of(run.trap->kind) : "");
  EXPECT_TRUE(std::ranges::any_of(GetParam().kinds,
                                  [&](const auto& kind) { return trap == kind || run.first(kind); }))
      << all_messages(run.report) << (run.trap ? run.trap->message : "");
}

}  // namespace ring_parity_test
}  // namespace assay::vm
