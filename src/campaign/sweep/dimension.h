// What a sweep varies: one option of a case and the values it takes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/case/case.h"

namespace assay {

struct Dimension {
  std::string option;  ///< "length", as on the command line without its dashes
  std::vector<std::string> values;
};

/// From "length=64..4096" (doubling), "length=64..4096*4", "length=64..1024+64", "dtype=bf16,fp32", or a list
/// with semicolons where its items hold commas: "cu-seqlens=0,15,100;0,50,100". Throws BadInput for an option
/// that no case has, an empty or endless range, a value given twice.
Dimension parse_dimension(std::string_view text);

/// Sets the option of the case. Throws BadInput where the value is none.
void apply(Case&, std::string_view option, const std::string& value);

/// Names of the options that can be swept, for help.
std::vector<std::string> swept_options();

}  // namespace assay
