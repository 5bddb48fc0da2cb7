// What a sweep has shown, in sentences computed from its cells alone.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/result/sweep_result.h"

namespace assay {

/// What a sentence would be too long for; rows begin with their heads.
struct AnswerTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::string note;  ///< what the cells say
};

struct Answer {
  std::string question;  ///< "Which gates are safe?"
  std::vector<std::string> sentences;
  AnswerTable table;  ///< shown before them; without rows where the sentences say everything
};

/// Value of an option in the cell, swept or not; "" where it has none.
std::string option_of(const SweepCell&, std::string_view option);

/// How precise each format is; safe gates; up to which length the error stays within the tolerance; which
/// kernel is more precise where; where error and bound part. A question that the sweep cannot answer (one
/// kernel, one length) is left out.
std::vector<Answer> answers(const Sweep&);

/// Tolerance of an output's largest error relative to its root mean square: the sweep's own, else 8 units
/// roundoff of bf16 and fp16, and 64 of fp32, whose outputs are the accumulators themselves.
double tolerance_of(const Sweep&, Dtype);

/// Least-squares slope of log2(y) against log2(x), for "grows as T^slope". Needs two positive points with
/// different x; NaN otherwise.
double growth(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace assay
