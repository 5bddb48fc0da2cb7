// Fat binaries whose PTX is another.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::preload {

/// Bytes of the fat binary at `data`, its header included; 0: there is none.
size_t fat_binary_bytes(const void* data);

/// A text as it is to be, of one and where it stands.
using Change = std::function<std::string(const std::string& text, const std::string& path)>;
/// Machine code of such a text for GPUs of that compute capability (90); empty where there is none.
using Compiled = std::function<std::string(const std::string& text, int capability)>;

/// A fat binary of its PTX, unpacked, each text as `change` gives it; where it has machine code for the
/// capability of a text, what `compiled` gives takes its place. Empty where it holds no PTX or is damaged.
std::vector<std::byte> with_texts(const void* data, const Change& change, const Compiled& compiled);

}  // namespace assay::preload
