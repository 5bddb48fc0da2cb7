// Mistakes that users make with shapes, on every argument of every kernel: each is refused in one line that
// names the argument, or, where it is another order of the same elements, taken with a line that says so; how
// often the explanation is the right one is printed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/kernel.h"
#include "src/base/numerics/bad_input.h"
#include "src/case/given_inputs.h"
#include "src/case/layouts.h"

namespace assay {
namespace {

using Shape = std::vector<int64_t>;

struct Mistake {
  std::string what, argument;
  TensorMap raw;
  /// Words of the right explanation, all of them.
  std::vector<std::string> words;
  bool is_order = false;  ///< the same elements in another known order
};

/// All axes of different sizes, none of them 1.
Case case_of(const Kernel& kernel, bool packed) {
  Case c;
  c.kernel = kernel.name;
  c.B = packed ? 1 : 2, c.T = 7, c.H = 3, c.K = 5, c.V = 11;
  for (const ArgumentSpec& input : find_operator(kernel.operator_name).inputs)
    for (const std::string_view axis : input.axes) {
      if (axis == "M") c.M = 13;
      if (axis == "HV") c.HV = 6;
    }
  if (packed) c.cu_seqlens = {0, 2, 5, 6, 7};
  c.direction = directions_of(kernel).back();
  c.initial_state = true, c.final_state_gradient = runs_backward(c);
  return c;
}

Shape shape_of(const Case& c, const ArgumentSpec& spec) {
  Shape shape;
  for (const auto axis : spec.axes) shape.push_back(sizes_of(c).of(axis));
  return shape;
}

Tensor unnamed(Dtype dtype, const Shape& shape) {
  std::vector<Axis> axes;
  for (const int64_t size : shape) axes.push_back({"", size});
  return Tensor("", dtype, axes);
}

class Mistakes {
 public:
  Mistakes(const Case& c, const Operator& op) : case_(c), specs_(inputs_of(c, op)) {
    for (const ArgumentSpec& spec : specs_)
      if (is_present(c, spec)) sound_[std::string(spec.name)] = unnamed(dtype_of(c, spec), shape_of(c, spec));
    if (c.cu_seqlens.empty()) return;
    sound_["cu_seqlens"] = offsets(c.cu_seqlens);
  }

  const TensorMap& sound() const { return sound_; }

  std::vector<Mistake> all() {
    for (const ArgumentSpec& spec : specs_)
      if (is_present(case_, spec)) of_argument(spec);
    if (!case_.cu_seqlens.empty()) of_offsets();
    return std::move(mistakes_);
  }

 private:
  static Tensor offsets(const Shape& values) {
    Tensor tensor = unnamed(Dtype::i64, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) tensor.as<int64_t>()[i] = values[i];
    return tensor;
  }

  void add(const std::string& what, const std::string& argument, Tensor changed,
           std::vector<std::string> words, bool is_order = false) {
    Mistake mistake{what, argument, sound_, std::move(words), is_order};
    mistake.raw[argument] = std::move(changed);
    mistakes_.push_back(std::move(mistake));
  }

  /// The only argument with this axis decides its size: a change of that size alone is no mistake.
  bool shared(const ArgumentSpec& spec, size_t axis) const {
    if (spec.axes[axis] == "N") return true;
    for (const ArgumentSpec& other : specs_)
      if (other.name != spec.name && is_present(case_, other))
        for (const auto letter : other.axes)
          if (letter == spec.axes[axis] ||
              (letter == "H*V" && (spec.axes[axis] == "H" || spec.axes[axis] == "V")))
            return true;
    return spec.axes[axis] == "H*V";
  }

  /// Exchanged they leave every other shape as it is: weight[H*V,K] of merge_heads fits both.
  bool only_multiplied(const std::string& a, const std::string& b) const {
    return std::any_of(specs_.begin(), specs_.end(), [&](const ArgumentSpec& s) {
      return std::find(s.axes.begin(), s.axes.end(), a + "*" + b) != s.axes.end();
    });
  }

  void of_argument(const ArgumentSpec& spec) {
    const Shape right = shape_of(case_, spec);
    const std::string name(spec.name);
    const Dtype dtype = dtype_of(case_, spec);
    const auto axis = [&](size_t i) { return std::string(spec.axes[i]); };
    const auto is_heads = [](const std::string& a) { return a == "H" || a == "HV" || a == "HQ"; };
    for (size_t i = 0; i < right.size(); ++i) {
      for (size_t j = i + 1; j < right.size(); ++j) {
        if (right[i] == right[j] || (!shared(spec, i) && !shared(spec, j)) ||
            only_multiplied(axis(i), axis(j)))
          continue;
        Shape shape = right;
        std::swap(shape[i], shape[j]);
        const bool heads_first = axis(i) == "T" && is_heads(axis(j));
        add(fmt::format("{} and {} exchanged", axis(i), axis(j)), name, unnamed(dtype, shape),
            {heads_first ? "heads-first" : fmt::format("{} and {} look exchanged", axis(i), axis(j))},
            heads_first);
      }
      if (right[i] > 1) {
        Shape shape = right;
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i));
        const bool per_head = spec.role == Role::log_decay && i + 1 == right.size();
        add(axis(i) + " missing", name, unnamed(dtype, shape),
            {per_head ? "per-head gate" : fmt::format("axis {} is missing", axis(i))});
      }
      if (right[i] > 1 && shared(spec, i)) {
        Shape shape = right;
        shape[i] = 1;
        const bool state = axis(i) == "N";
        add(axis(i) + " of size 1", name, unnamed(dtype, shape),
            {state ? "one state given" : fmt::format("{} has size 1", axis(i))});
      }
      if (i + 1 < right.size() && right[i] > 1 && right[i + 1] > 1) {
        Shape shape = right;
        shape[i] *= shape[i + 1];
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        const bool channels = is_heads(axis(i)) && i + 2 == right.size() && right.size() > 2;
        add(fmt::format("{} and {} merged", axis(i), axis(i + 1)), name, unnamed(dtype, shape),
            {channels ? "heads merged" : fmt::format("{} and {} look merged", axis(i), axis(i + 1))},
            channels);
      }
    }
    if (spec.axes[0] == "N") {
      Shape shape = right;
      ++shape[0];
      add("N + 1 states", name, unnamed(dtype, shape), {"one too many states"});
    }
    const Dtype other = dtype == Dtype::fp16 ? Dtype::bf16 : Dtype::fp16;
    if (spec.role != Role::log_decay && plain_with_company(spec))
      add("another format", name, unnamed(other, right), {fmt::format("got {}", format(other).name)});
    add("a format of integers", name, unnamed(Dtype::i64, right), {"got i64"});
    if (name.starts_with("d"))
      for (const ArgumentSpec& shape_giver : specs_)
        if (shape_of(case_, shape_giver) != right && shape_giver.axes.size() == spec.axes.size() &&
            is_present(case_, shape_giver))
          add(fmt::format("shape of {}", shape_giver.name), name,
              unnamed(dtype, shape_of(case_, shape_giver)), {});
  }

  /// A plain argument alone decides the format.
  bool plain_with_company(const ArgumentSpec& spec) const {
    if (spec.role == Role::state) return true;
    return std::count_if(specs_.begin(), specs_.end(),
                         [&](const ArgumentSpec& s) { return is_plain(s.role) && is_present(case_, s); }) > 1;
  }

  void of_offsets() {
    add("offsets that decrease", "cu_seqlens", offsets({0, 5, 2, 6, 7}), {"must not decrease"});
    add("offsets that end early", "cu_seqlens", offsets({0, 2, 5, 6, 6}), {"must end at T = 7"});
    add("offsets that begin late", "cu_seqlens", offsets({1, 2, 5, 6, 7}), {"must start at 0"});
    add("offsets in fp32", "cu_seqlens", unnamed(Dtype::fp32, {5}), {"i32 or i64"});
    add("offsets of two axes", "cu_seqlens", unnamed(Dtype::i64, {5, 1}), {"a list"});
  }

  const Case case_;
  const std::vector<ArgumentSpec> specs_;
  TensorMap sound_;
  std::vector<Mistake> mistakes_;
};

/// The message about these inputs, or what is said of them where they are taken.
struct Answer {
  bool taken = false;
  std::string text;
};

Answer answer(const Case& c, const Operator& op, const TensorMap& raw) {
  Case base;
  base.kernel = c.kernel, base.direction = c.direction;
  try {
    return {true, fmt::format("{}", fmt::join(fit_inputs(base, op, raw, "inputs").notes, "; "))};
  } catch (const BadInput& error) {
    return {false, error.what()};
  }
}

TEST(ShapeMistakes, OfEveryArgumentOfEveryKernelAreRefusedOrSaidAndNearlyAllExplained) {
  int made = 0, refused = 0, taken = 0, explained = 0;
  std::set<std::string> seen;
  for (const Kernel& kernel : kernels())
    for (const bool packed : {false, true}) {
      const Operator& op = find_operator(kernel.operator_name);
      const Case c = case_of(kernel, packed);
      Mistakes mistakes(c, op);
      const Answer sound = answer(c, op, mistakes.sound());
      ASSERT_TRUE(sound.taken && sound.text.empty()) << kernel.name << ": " << sound.text;
      for (const Mistake& mistake : mistakes.all()) {
        const auto [is_taken, message] = answer(c, op, mistake.raw);
        ++made, refused += !is_taken, taken += is_taken;
        EXPECT_NE(message, "") << kernel.name << ": " << mistake.argument << ": " << mistake.what;
        EXPECT_TRUE(!is_taken || mistake.is_order)
            << kernel.name << ": " << mistake.argument << ": " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        bool right = message.find(mistake.argument) != message.npos;
        for (const std::string& word : mistake.words) right &= message.find(word) != message.npos;
        explained += right;
        if (!right && seen.insert(mistake.argument + mistake.what).second)
          std::printf("%s: %s: %s: %s\n", kernel.name.c_str(), mistake.argument.c_str(), mistake.what.c_str(),
                      message.c_str());
      }
    }
  std::printf("%d mistakes, %d refused, %d taken, %d explained rightly (%.1f %%)\n", made, refused, taken,
              explained, 100.0 * explained / made);
  EXPECT_GT(taken, 0);
  EXPECT_GE(explained, 0.9 * made);
}

TEST(ShapeMistakes, StridesThatOverlapAreNamedOnEveryInput) {
  int made = 0;
  for (const Kernel& kernel : kernels()) {
    const Operator& op = find_operator(kernel.operator_name);
    const Case c = case_of(kernel, false);
    for (const ArgumentSpec& spec : inputs_of(c, op)) {
      Tensor rows = unnamed(Dtype::fp32, shape_of(c, spec));
      for (size_t axis = 0; axis + 1 < spec.axes.size(); ++axis) {
        Case overlapping = c;
        Shape strides = rows.strides();
        --strides[axis];
        overlapping.layout = layout_text({{std::string(spec.name), nullptr, strides}});
        ++made;
        try {
          validate(overlapping, op);
          ADD_FAILURE() << overlapping.layout;
        } catch (const BadInput& error) {
          EXPECT_EQ(std::string(error.what())
                        .find(fmt::format("strides of {}: axis {} has stride {}", spec.name, spec.axes[axis],
                                          strides[axis])),
                    0u)
              << error.what();
        }
      }
    }
  }
  EXPECT_GT(made, 100);
}

}  // namespace
}  // namespace assay
