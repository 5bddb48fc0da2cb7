#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/diagnosis/mutated_run.h"

namespace assay {
namespace {

/// Small cases in which every meaning can show: several heads and sequences, K other than V or equal, both directions.
const char* const kScenes[] = {
    "gla.fused_recurrent/B1/T38/H3/K5/V4/fp32/g-fp32/logsigmoid/s1/h0/cu0,21,38",
    "gla.fused_recurrent/B2/T21/H2/K4/V4/fp32/g-fp32/mild/s2/h0/backward/dht",
    "rwkv6.fused_recurrent/B2/T19/H3/K4/V6/fp32/g-fp32/logsigmoid/s3/h0",
    "hgrn.fused_recurrent/B2/T21/V5/fp32/g-fp32/logsigmoid/s4/h0",
    "retention.fused_recurrent/B1/T37/H3/K4/V5/fp32/s5/h0",
    "gsa.fused_recurrent/B2/T18/H2/K4/V3/M4/fp32/g-fp32/logsigmoid/s6/h0",
};

TEST(Dev, Print) {
  for (const char* token : kScenes) {
    Case c;
    try { c = parse_token(token); } catch (const std::exception& e) { printf("%s: %s\n", token, e.what()); continue; }
    test::MutatedRun scene(c);
    std::map<std::string, int> tried;
    const FailingRun clean = with_explicit_gates(scene.run());
    for (const Meaning& m : meanings()) {
      int n = 0;
      for (const Variant& v : m.variants(clean)) {
        if (n >= 2) break;
        scene.store({});
        const auto p = v.predict();
        if (!p) continue;
        scene.store(*p);
        if (!scene.wrong()) continue;
        ++n;
        FailingRun r = scene.run();
        r.forward = r.backward = false;
        for (auto* o : r.wrong()) (o->name[0] == 'd' ? r.backward : r.forward) = true;
        const Weighed w = weigh_meanings(r, 20);
        const bool right = !w.fitting.empty() && w.fitting[0].cause == m.name;
        if (!right) {
          printf("%-30.30s %-32s [%s] ->", token, std::string(m.name).c_str(), v.text.c_str());
          for (size_t i = 0; i < std::min<size_t>(3, w.fitting.size()); ++i) printf(" %s %.2f;", w.fitting[i].cause.c_str(), w.fitting[i].score);
          printf("\n");
        }
      }
      if (n == 0) printf("%-30.30s %-32s shows in no variant\n", token, std::string(m.name).c_str());
    }
  }
}

}  // namespace
}  // namespace assay
