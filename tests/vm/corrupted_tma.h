// Programs of Hopper's copy engine with bytes of their tensor maps and numbers of their text (byte counts,
// coordinates, phases, offsets) exchanged, as a string of bytes says.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace assay::hopper {

/// What came of it on the machine, without checks and with all of them: "refused", "ended", or the kind of
/// the trap.
struct Fate {
  std::string plain, checked;
};
/// The same bytes give the same program.
Fate fate_of_corrupted(std::span<const uint8_t> bytes);

}  // namespace assay::hopper
