// Numbers that shape an operator's mathematics beside its tensors (ParameterSpec), as a case gives them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/case/case.h"

namespace assay {

/// "layer_idx=3,num_layers=12"; empty where none is given.
std::string parameters_text(const std::map<std::string, double>&);
/// From one text of that form. Throws BadInput for what is no name=value, a number out of range, a name
/// twice.
std::map<std::string, double> parse_parameters(std::string_view text);

/// The case's value, else the operator's default. Throws BadInput where the operator has no such parameter.
double parameter_of(const Case&, const Operator&, std::string_view name);
/// Throws BadInput naming the parameter, its value and what it may be.
void validate_parameters(const Case&, const Operator&);

}  // namespace assay
