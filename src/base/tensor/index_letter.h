// How the index along an axis is written: "t" along T.
#pragma once
#include <string>
#include <string_view>

namespace assay {

inline std::string index_letter(std::string_view axis) {
  std::string letter(axis);
  for (char& c : letter)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return letter;
}

}  // namespace assay
