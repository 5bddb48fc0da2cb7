// Which cause is named first where a kernel computes a mutated meaning.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "tests/diagnosis/mutated_run.h"

namespace assay::test {

/// Directions with a wrong output only, as the pipeline asks.
inline FailingRun wrong_directions(const MutatedRun& scene) {
  FailingRun run = scene.run();
  const bool forward = run.forward, backward = run.backward;
  run.forward = run.backward = false;
  for (const OutputComparison* o : run.wrong()) (o->name[0] == 'd' ? run.backward : run.forward) = true;
  run.forward &= forward, run.backward &= backward;
  return run;
}

/// The first cause where `prediction` is what the kernel gave.
inline std::string first_cause(MutatedRun& scene, const Prediction& prediction) {
  scene.store(prediction);
  EXPECT_TRUE(scene.wrong());
  const Weighed weighed = weigh_meanings(wrong_directions(scene), 60);
  return weighed.fitting.empty() ? "" : weighed.fitting.front().cause;
}

/// The variant of a meaning with that text; fails the test where there is none.
inline std::optional<Prediction> predicted(const FailingRun& run, std::string_view name,
                                           const std::string& text) {
  for (const Meaning& meaning : meanings())
    if (meaning.name == name)
      for (const Variant& variant : meaning.variants(run))
        if (variant.text == text) return variant.predict();
  ADD_FAILURE() << name << " has no variant " << text;
  return std::nullopt;
}

}  // namespace assay::test
