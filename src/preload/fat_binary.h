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

/// A fat binary of its PTX alone, unpacked, each text as `change` gives it. Empty where it holds no PTX or
/// is damaged.
std::vector<std::byte> with_texts(
    const void* data,
    const std::function<std::string(const std::string& text, const std::string& path)>& change);

}  // namespace assay::preload
