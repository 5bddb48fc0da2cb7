// Properties and faults that each of them sees: bits change, no bound is left. Each file of properties
// has its own.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/properties.h"
#include "src/verification/verify/verify.h"
#include "tests/fuzz/subject.h"

namespace assay::test {

struct Twin {
  const char* property;
  const char* fault;  ///< of the subject
  const char* token;  ///< a case in which the property sees it
};
std::vector<Twin> absence_twins();
std::vector<Twin> one_run_twins();
std::vector<Twin> symmetry_twins();
std::vector<Twin> time_twins();

inline Verification judged(const std::string& token, Backend& backend) {
  const Kernel kernel = subject_kernel();
  VerifyOptions options;
  options.threads = 1;
  options.twice = false;
  Verification v = verify(parse_token(token), kernel, backend, options);
  judge_properties(v, kernel, backend);
  return v;
}

inline bool names(const Verification& v, const std::string& property) {
  return std::any_of(v.properties_failed.begin(), v.properties_failed.end(),
                     [&](const std::string& line) { return line.starts_with(property + ":"); });
}

/// Each property sees its fault, and all are silent without one.
inline void expect_seen(const std::vector<Twin>& twins) {
  for (const Twin& twin : twins) {
    SubjectBackend broken(twin.fault), sound;
    const Verification bad = judged(twin.token, broken), good = judged(twin.token, sound);
    EXPECT_TRUE(names(bad, twin.property)) << twin.property << " / " << twin.fault << " / " << twin.token;
    EXPECT_EQ(bad.verdict, Verdict::finding) << twin.property;
    EXPECT_EQ(good.verdict, Verdict::pass)
        << (good.properties_failed.empty() ? good.cause : good.properties_failed[0]);
  }
}

/// Whether the property is asked of a case of the subject that passed.
inline bool applies(const std::string& property, const std::string& token, const Kernel& kernel) {
  Verification v;
  v.case_ = parse_token(token);
  v.verdict = Verdict::pass;
  return find_property(property).applies(v, kernel, find_operator(kernel.operator_name));
}

}  // namespace assay::test
