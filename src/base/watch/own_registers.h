// What a compiler gave the entries of a text: registers of a thread, by what machine code says of itself.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace assay::watch {

/// By entry; empty where the bytes are no machine code of NVIDIA's, or do not say.
std::map<std::string, int> registers_of(std::string_view cubin);

}  // namespace assay::watch
