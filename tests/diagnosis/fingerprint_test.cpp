// What is said of two functions that depend otherwise on their inputs.
#include "src/verification/diagnosis/fingerprint.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

constexpr int64_t kTokens = 20, kHeads = 2;

TensorMap inputs() {
  TensorMap all;
  int64_t n = 0;
  for (const char* name : {"g", "k", "q"}) {
    Tensor t(name, Dtype::fp32, {{"T", kTokens}, {"H", kHeads}});
    for (int64_t i = 0; i < t.size(); ++i, ++n)
      t.set(i, name[0] == 'g' ? -0.01 * static_cast<double>(1 + i % 7)
                              : 1 + 0.125 * static_cast<double>(n * 37 % 16));
    all[name] = t;
  }
  Tensor state("h0", Dtype::fp32, {{"H", kHeads}});
  state.set(0, 0.5), state.set(1, -0.75);
  all["h0"] = state;
  return all;
}

/// o[t] = q[t] S[t], S[t] = e^g[t] S[t-1] + k[t], S[-1] = h0, by head; what a test changes is taken by the
/// names that it gives.
struct Recurrence {
  std::function<double(const std::function<double(const char*, int64_t, int64_t)>&, const char* name,
                       int64_t t, int64_t h)>
      read = [](const auto& at, const char* name, int64_t t, int64_t h) { return at(name, t, h); };
  std::function<double(double, int64_t t, int64_t h)> output = [](double o, int64_t, int64_t) { return o; };

  std::optional<vm::RealOutputs> operator()(const vm::InputMoves& moves) const {
    const TensorMap tensors = inputs();
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, tensor] : tensors)
      for (int64_t i = 0; i < tensor.size(); ++i) values[name].push_back(tensor.value(i));
    for (const auto& [name, elements] : moves)
      for (const vm::ElementMove& move : elements) values[name][static_cast<size_t>(move.flat)] += move.by;
    const auto at = [&](const char* name, int64_t t, int64_t h) {
      return values.at(name)[static_cast<size_t>(t * kHeads + h)];
    };
    const std::function<double(const char*, int64_t, int64_t)> plain = at;
    std::vector<double> o(static_cast<size_t>(kTokens * kHeads));
    for (int64_t h = 0; h < kHeads; ++h) {
      double state = read(plain, "h0", 0, h);
      for (int64_t t = 0; t < kTokens; ++t) {
        state = std::exp(read(plain, "g", t, h)) * state + read(plain, "k", t, h);
        o[static_cast<size_t>(t * kHeads + h)] = output(read(plain, "q", t, h) * state, t, h);
      }
    }
    return vm::RealOutputs{{"o", o}};
  }
};

Fingerprint fingerprint_of(const Recurrence& program, double seconds = 60) {
  const std::vector<Tensor> outputs{Tensor("o", Dtype::fp32, {{"T", kTokens}, {"H", kHeads}})};
  return fingerprint(inputs(), outputs, program, Recurrence(), seconds);
}
std::vector<std::string> said_of(const Recurrence& program, double seconds = 60) {
  return fingerprint_of(program, seconds).sentences;
}

TEST(Fingerprint, SaysNothingWhereNothingDiffers) {
  EXPECT_TRUE(said_of({}).empty());
}

TEST(Fingerprint, AnInputThatIsIgnoredByOneHead) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return name[0] == 'h' && h == 1 ? 0.0 : at(name, t, h);
  };
  EXPECT_EQ(said_of(program).front(), "o[h = 1] does not depend on h0");
}

/// Half of the next token's factor is added: what lies later takes part, and nothing is lacking.
TEST(Fingerprint, LaterTokensThatTakePartAreNamed) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return at(name, t, h) + (name[0] == 'q' && t + 1 < kTokens ? 0.5 * at(name, t + 1, h) : 0);
  };
  EXPECT_EQ(fingerprint_of(program).later, std::vector<std::string>{"q"});
}

/// Where another input's token is lost beside, that is more than a mask.
TEST(Fingerprint, LaterTokensBesideWhatIsLackingAreNotCalledTooMany) {
  const Tensor o("o", Dtype::fp32, {{"T", 4}});
  const auto dependence = [&](const char* input, double later, double lost) {
    Dependence d{o, Tensor(input, Dtype::fp32, {{"T", 4}}), {}};
    for (int64_t from = 0; from < 4; ++from) {
      DependenceColumn c{from, std::vector<double>(4), std::vector<double>(4)};
      c.reference[static_cast<size_t>(from)] = 1;
      c.program[static_cast<size_t>(from)] = from == 2 ? 1 - lost : 1;
      if (from > 0) c.program[static_cast<size_t>(from) - 1] = later;
      d.columns.push_back(std::move(c));
    }
    return d;
  };
  EXPECT_EQ(sentences_of({dependence("q", 0.5, 0), dependence("u", 0, 0)}, {}).later,
            std::vector<std::string>{"q"});
  EXPECT_TRUE(sentences_of({dependence("q", 0.5, 0), dependence("u", 0, 1)}, {}).later.empty());
}

TEST(Fingerprint, ATokenThatIsLeftOut) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return name[0] == 'k' && t == 7 ? 0.0 : at(name, t, h);
  };
  EXPECT_EQ(said_of(program).front(), "o does not depend on k[t = 7]");
}

TEST(Fingerprint, AnotherHeadsOperandIsDependedOn) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return at(name, t, name[0] == 'q' ? 0 : h);
  };
  const std::vector<std::string> said = said_of(program);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.front().find("q"), std::string::npos) << said.front();
  EXPECT_EQ(said.front().find("k"), std::string::npos) << said.front();
}

TEST(Fingerprint, ATermOfTheTokenBefore) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return name[0] != 'k' ? at(name, t, h) : t > 0 ? at(name, t - 1, h) : 0;
  };
  EXPECT_EQ(said_of(program).front(), "o: its dependence on k[t] has the weight of k[t+1]");
}

TEST(Fingerprint, AnOutputThatIsScaledFromATokenOn) {
  Recurrence program;
  program.output = [](double o, int64_t t, int64_t) { return t >= 16 ? 1.5 * o : o; };
  EXPECT_EQ(said_of(program).front(), "o[t >= 16] is 1.5 times what it should be");
}

TEST(Fingerprint, AFactorThatIsAnInputs) {
  Recurrence program;
  program.output = [](double o, int64_t t, int64_t h) {
    return o * std::exp(inputs().at("g").value(t * kHeads + h));
  };
  EXPECT_EQ(said_of(program).front(),
            "o: its dependence on g and h0 and k and q is e^g times what it should be");
}

TEST(Fingerprint, OneTokenThatTakesNoPartIsDropped) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return name[0] == 'k' && t == 7 ? 0.0 : at(name, t, h);
  };
  EXPECT_EQ(fingerprint_of(program).dropped, std::vector<std::string>{"k"});
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return name[0] == 'k' && t >= 7 ? 0.0 : at(name, t, h);
  };
  EXPECT_TRUE(fingerprint_of(program).dropped.empty());
}

TEST(Fingerprint, AnInputOfAnotherHeadIsMisread) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return at(name, t, name[0] == 'g' ? 1 - h : h);
  };
  const Fingerprint found = fingerprint_of(program);
  EXPECT_EQ(found.sentences.front(), "o depends on g of another h than it should");
  ASSERT_EQ(found.misread.size(), 1u);
  EXPECT_EQ(found.misread.front().input, "g");
  EXPECT_EQ(found.misread.front().axis, "H");
}

/// Pairs of tokens have each other's query; k and g are read rightly.
TEST(Fingerprint, AnInputOfAnotherTokenIsMisreadWhereThatAloneIsDependedOn) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return at(name, name[0] == 'q' ? t ^ 1 : t, h);
  };
  const Fingerprint found = fingerprint_of(program);
  ASSERT_EQ(found.misread.size(), 1u);
  EXPECT_EQ(found.misread.front().input, "q");
  EXPECT_EQ(found.misread.front().axis, "T");
}

TEST(Fingerprint, WhereEveryInputIsOfAnotherHeadTheOutputMayBe) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) { return at(name, t, 1 - h); };
  EXPECT_TRUE(fingerprint_of(program).misread.empty());
}

/// The second head goes on with the first one's state, as where it is not loaded again.
TEST(Fingerprint, AStateOfAnotherHeadIsNoInputThatIsMisread) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    if (name[0] == 'h') return at(name, t, 0);
    return name[0] == 'k' && h == 1 ? at(name, t, 1) + at(name, t, 0) : at(name, t, h);
  };
  EXPECT_TRUE(fingerprint_of(program).misread.empty());
}

TEST(Fingerprint, ATermOfTheTokenBeforeIsNoOtherElementsOfTheAxis) {
  Recurrence program;
  program.read = [](const auto& at, const char* name, int64_t t, int64_t h) {
    return name[0] != 'k' ? at(name, t, h) : t > 0 ? at(name, t - 1, h) : 0;
  };
  EXPECT_TRUE(fingerprint_of(program).misread.empty());
}

TEST(Fingerprint, WhatTheTimeDoesNotReachIsLeftOut) {
  Recurrence program;
  program.output = [](double o, int64_t, int64_t) { return 2 * o; };
  EXPECT_TRUE(said_of(program, 0).empty());
}

}  // namespace
}  // namespace assay
