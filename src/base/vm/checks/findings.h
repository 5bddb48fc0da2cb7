// Every finding: the check that makes it, its kind and its sentence. In a sentence {at}, {thread} and
// {access} are where it showed, which thread and what that did; {other...} the same of the second place;
// {element} the memory or register concerned. What else stands in braces is given beside them.
#pragma once

namespace assay::vm {

struct FindingKind {
  const char *check, *name, *sentence;
};

namespace finding {

#define RACE "{element}: {other_did} at {other} by {other_thread}; {did} at {at} by {thread}: {missing}"
inline constexpr FindingKind race{"races", "race", RACE}, warp_race{"races", "warp-race", RACE};
#undef RACE

#define UNWRITTEN \
  "{element}, never written, {other_access} at {other} by {other_thread}, {access} {opcode} at {at}"
inline constexpr FindingKind unwritten_branch{"unwritten", "unwritten-branch", UNWRITTEN},
    unwritten_address{"unwritten", "unwritten-address", UNWRITTEN};
#undef UNWRITTEN
#define SPOILED                                                                              \
  "{count} of {size} elements of {name}, first {element}, depend on {what}, never written, " \
  "{access} at {at} by {thread}"
inline constexpr FindingKind unwritten_output{"unwritten", "unwritten-output", SPOILED},
    unwritten_tensor_core{"unwritten", "unwritten-tensor-core", SPOILED ", an operand of {through}"},
    never_written{
        "unwritten", "never-written",
        "{count} of {size} elements of {name} {shape} were never written, from {element} to {last}"};
#undef SPOILED

inline constexpr FindingKind out_of_bounds{"bounds", "out-of-bounds",
                                           "{access} of {bytes} bytes at {at} by {thread} reaches {element}: "
                                           "{by} bytes {side} {area} of {size} bytes, "
                                           "whose address it was made from"};

inline constexpr FindingKind index_wrap{
    "wrap", "index-wrap",
    "{made} at {at} wraps around at 32 bits: the index is {is} and should be {meant}; {used} at {other} by "
    "{other_thread} reaches {element}"};

inline constexpr FindingKind copy_race{"async", "async-copy-race",
                                       "{element}: {did} at {at} by {thread} while the cp.async at {other} "
                                       "by {other_thread} that fills it is in "
                                       "flight: no cp.async.wait_group covers it"};

// Four ways into one kind.
inline constexpr FindingKind wgmma_registers{"async", "wgmma-race",
                                             "{element}: {access} at {at} by {thread} while the "
                                             "wgmma.mma_async at {other} that {does} it is in flight: "
                                             "no wgmma.wait_group between them"};
inline constexpr FindingKind wgmma_unfenced{"async", "wgmma-race",
                                            "{element}: written at {other}, then used by the wgmma.mma_async "
                                            "at {at} by {thread}: no wgmma.fence between "
                                            "them"};
inline constexpr FindingKind wgmma_overwritten{"async", "wgmma-race",
                                               "{element}: written at {at} by {thread} while the "
                                               "wgmma.mma_async at {other} by {other_thread} that reads it "
                                               "is in flight: no wgmma.wait_group covers it"};
inline constexpr FindingKind wgmma_proxy{"async", "wgmma-race",
                                         "{element}: written at {other} by {other_thread}, {access} by the "
                                         "wgmma.mma_async at {at} by {thread}: no "
                                         "fence.proxy.async between them"};

}  // namespace finding
}  // namespace assay::vm
