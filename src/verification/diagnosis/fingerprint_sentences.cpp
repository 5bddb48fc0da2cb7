// What differs between two tables of derivatives, in axis names: the pairs (output element, input element)
// whose derivatives differ are told from the others by the fewest conditions on indices and on their
// differences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "src/base/tensor/index_letter.h"
#include "src/verification/diagnosis/fingerprint.h"

namespace assay {
namespace {

/// Two derivatives agree within this share of the larger one, or of the largest by this input element: far
/// above what rounded constants of a kernel (2^-24, times exponents of some hundred) and the doubles of both
/// sides leave, far below any other weight.
constexpr double kSame = 0x1p-14, kOfTheLargest = 0x1p-20;
/// Ratios of derivatives are one within this share.
constexpr double kOneRatio = 0x1p-9;
constexpr size_t kMostPairs = 200'000, kMostSentences = 6, kMostUnsaid = 2, kMostConditions = 3;

struct Pair {
  int64_t to = 0;  ///< element of the output
  const DependenceColumn* column = nullptr;
  double is = 0, should = 0;
};

/// Something that the indices of a pair have: of the output, of the input, or the first less the second.
struct Feature {
  int of_output = -1, of_input = -1;  ///< axes
  std::string letter;
  bool is_difference() const { return of_output >= 0 && of_input >= 0; }
};
struct Condition {
  Feature feature;
  int64_t low = 0, high = 0, least = 0, most = 0;  ///< and what there is at all
  /// One index, or all from one on.
  bool is_simple() const { return low == high || low == least || high == most; }
};

class Sentence {
 public:
  explicit Sentence(const Dependence& d) : d_(d) {
    for (const DependenceColumn& c : d.columns) sort_column(c);
  }

  bool differs() const { return !wrong_.empty(); }
  bool depends() const { return support_ > 0; }

  /// The one ratio of all wrong pairs, where there is one.
  std::optional<double> ratio() const {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const Pair& p : wrong_) {
      if (zero(p, p.is) && zero(p, p.should)) continue;
      if (zero(p, p.should)) return std::nullopt;
      const double r = zero(p, p.is) ? 0 : p.is / p.should;
      least = std::min(least, r), most = std::max(most, r);
    }
    if (!(most - least <= kOneRatio * std::max(std::fabs(least), std::fabs(most)))) return std::nullopt;
    return (least + most) / 2;
  }
  bool only_extra() const {
    return std::all_of(wrong_.begin(), wrong_.end(), [&](const Pair& p) { return zero(p, p.should); });
  }

  const std::string& input_name() const { return d_.input.name; }
  const Tensor& of_input() const { return d_.input; }
  std::string output() const { return d_.output.name + bracket(true); }
  std::string input() const { return d_.input.name + bracket(false); }
  /// Conditions are found for pairs that differ against the rest: of those that depend at all, or of all.
  void find_conditions(bool among_all);
  std::string share() const {
    if (left_ == 0) return "";
    return fmt::format(" for {} of {} pairs of elements", wrong_.size(), wrong_.size() + left_);
  }
  struct Shift {
    std::string axis;
    int64_t by = 0;
  };
  /// Along one axis the program's derivatives by an element are the reference's by its neighbour.
  std::optional<Shift> shifted() const;
  /// Elements of the input for which others along an axis stand, to which the outputs owe nothing.
  std::optional<std::string> misread_axis() const;
  std::optional<std::string> factor(const TensorMap& inputs, bool by_output) const;
  /// Some pair depends where it should not, or the reverse.
  bool is_misplaced() const {
    return std::any_of(wrong_.begin(), wrong_.end(),
                       [&](const Pair& p) { return zero(p, p.is) != zero(p, p.should); });
  }
  std::string another_weight() const;
  /// What it depends on and should not are elements of later tokens.
  bool is_of_later_tokens() const;
  /// Of elements that take no part where they should: they are those of one token, and of all others some do.
  bool is_of_one_token() const {
    return left_ == 0 && !right_.empty() && conditions_.size() == 1 &&
           conditions_[0].low == conditions_[0].high && conditions_[0].feature.of_output < 0 &&
           conditions_[0].feature.letter == "T";
  }

 private:
  void sort_column(const DependenceColumn&);
  static double largest(const DependenceColumn& c) {
    double size = 0;
    for (size_t i = 0; i < c.program.size(); ++i)
      size = std::max({size, std::fabs(c.program[i]), std::fabs(c.reference[i])});
    return size;
  }
  bool zero(const Pair& p, double x) const { return std::fabs(x) <= kOfTheLargest * largest_.at(p.column); }
  int64_t value(const Feature& f, const Pair& p) const {
    const auto index = [](const Tensor& t, int axis, int64_t flat) {
      return flat / t.strides()[static_cast<size_t>(axis)] % t.axes[static_cast<size_t>(axis)].size;
    };
    const int64_t out = f.of_output >= 0 ? index(d_.output, f.of_output, p.to) : 0;
    const int64_t in = f.of_input >= 0 ? index(d_.input, f.of_input, p.column->from) : 0;
    return f.is_difference() ? out - in : f.of_output >= 0 ? out : in;
  }
  std::vector<Feature> features() const;
  std::string bracket(bool of_output) const;

  const Dependence& d_;
  std::map<const DependenceColumn*, double> largest_;
  std::vector<Pair> wrong_, right_, unrelated_;  ///< unrelated: both derivatives are 0
  size_t support_ = 0, left_ = 0;
  std::vector<Condition> conditions_;
};

void Sentence::sort_column(const DependenceColumn& c) {
  const double size = largest_[&c] = largest(c);
  for (size_t i = 0; i < c.program.size(); ++i) {
    const Pair p{static_cast<int64_t>(i), &c, c.program[i], c.reference[i]};
    if (!std::isfinite(p.is) || !std::isfinite(p.should)) continue;
    const double most = std::max(std::fabs(p.is), std::fabs(p.should));
    const bool same = std::fabs(p.is - p.should) <= kSame * most + kOfTheLargest * size;
    const bool none = most <= kOfTheLargest * size;
    support_ += !none;
    std::vector<Pair>& list = !same ? wrong_ : none ? unrelated_ : right_;
    if (list.size() < kMostPairs) list.push_back(p);
  }
}

std::vector<Feature> Sentence::features() const {
  std::vector<Feature> all;
  const auto axis = [](const Tensor& t, const std::string& letter) {
    for (size_t i = 0; i < t.axes.size(); ++i)
      if (t.axes[i].name == letter) return static_cast<int>(i);
    return -1;
  };
  for (const Axis& a : d_.output.axes)
    if (const int in = axis(d_.input, a.name); in >= 0 && a.size > 1)
      all.push_back({axis(d_.output, a.name), in, a.name});
  for (const Axis& a : d_.output.axes)
    if (a.size > 1) all.push_back({axis(d_.output, a.name), -1, a.name});
  for (const Axis& a : d_.input.axes)
    if (a.size > 1) all.push_back({-1, axis(d_.input, a.name), a.name});
  return all;
}

bool Sentence::is_of_later_tokens() const {
  for (const Feature& f : features())
    if (f.is_difference() && f.letter == "T")
      return only_extra() &&
             std::all_of(wrong_.begin(), wrong_.end(), [&](const Pair& p) { return value(f, p) < 0; });
  return false;
}

void Sentence::find_conditions(bool among_all) {
  conditions_.clear();
  std::vector<const Pair*> rest;
  for (const Pair& p : right_) rest.push_back(&p);
  if (among_all)
    for (const Pair& p : unrelated_) rest.push_back(&p);
  std::vector<Feature> open = features();
  while (!rest.empty() && conditions_.size() < kMostConditions) {
    std::optional<Condition> best, simple;
    size_t most = 0, most_simply = 0;
    for (const Feature& f : open) {
      Condition c{f, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN};
      for (const Pair& p : wrong_) {
        c.low = std::min(c.low, value(f, p)), c.high = std::max(c.high, value(f, p));
      }
      c.least = c.low, c.most = c.high;
      size_t told = 0;
      for (const Pair* p : rest) {
        const int64_t x = value(f, *p);
        c.least = std::min(c.least, x), c.most = std::max(c.most, x);
        told += x < c.low || x > c.high;
      }
      if (told > most) most = told, best = c;
      if (c.is_simple() && told > most_simply) most_simply = told, simple = c;
    }
    if (simple) best = simple;
    if (!best) break;
    conditions_.push_back(*best);
    std::erase_if(rest, [&](const Pair* p) {
      const int64_t x = value(best->feature, *p);
      return x < best->low || x > best->high;
    });
  }
  left_ = rest.size();
}

/// Of the output "t >= 64", "h"; of the input "t-1", "t' < t", "h = 1".
std::string Sentence::bracket(bool of_output) const {
  std::vector<std::string> parts;
  for (const Condition& c : conditions_) {
    const std::string letter = index_letter(c.feature.letter);
    const auto interval = [&](const std::string& name) {
      if (c.low == c.high) return fmt::format("{} = {}", name, c.low);
      if (c.high == c.most) return fmt::format("{} >= {}", name, c.low);
      if (c.low == c.least) return fmt::format("{} <= {}", name, c.high);
      return fmt::format("{} = {} to {}", name, c.low, c.high);
    };
    const auto behind = [&](int64_t by) {
      return by == 0 ? letter : by > 0 ? fmt::format("{}-{}", letter, by) : fmt::format("{}+{}", letter, -by);
    };
    if (c.feature.is_difference()) {
      if (of_output) {
        parts.push_back(letter);
      } else if (c.low == c.high) {
        parts.push_back(behind(c.low));
      } else if (c.high == c.most && c.low <= 1 && c.low >= 0) {
        parts.push_back(fmt::format("{0}' {1} {0}", letter, c.low == 0 ? "<=" : "<"));
      } else if (c.low == c.least && c.high <= 0 && c.high >= -1) {
        parts.push_back(fmt::format("{0}' {1} {0}", letter, c.high == 0 ? ">=" : ">"));
      } else {
        parts.push_back(fmt::format("{} to {}", behind(c.high), behind(c.low)));
      }
    } else if ((c.feature.of_output >= 0) == of_output) {
      parts.push_back(interval(letter));
    }
  }
  return parts.empty() ? "" : fmt::format("[{}]", fmt::join(parts, ", "));
}

/// What the derivatives of every output element, or those by every element of the input, are multiplied by,
/// where that is a function of an input element at its place.
std::optional<std::string> Sentence::factor(const TensorMap& inputs, bool by_output) const {
  std::map<int64_t, double> ratios;
  const Tensor& of = by_output ? d_.output : d_.input;
  for (const Pair& p : wrong_) {
    if (zero(p, p.should)) return std::nullopt;
    const double r = p.is / p.should;
    const auto [known, is_new] = ratios.emplace(by_output ? p.to : p.column->from, r);
    if (!is_new && std::fabs(known->second - r) > kOneRatio * std::fabs(r)) return std::nullopt;
  }
  if (ratios.size() < 2) return std::nullopt;
  struct Function {
    const char* name;
    double (*of)(double);
  };
  static constexpr Function functions[] = {{"e^", [](double x) { return std::exp(x); }},
                                           {"e^-", [](double x) { return std::exp(-x); }},
                                           {"", [](double x) { return x; }},
                                           {"1/", [](double x) { return 1 / x; }}};
  for (const auto& [name, input] : inputs) {
    std::vector<std::pair<size_t, size_t>> axes;  // of the input, of the output
    for (size_t a = 0; a < input.axes.size(); ++a)
      for (size_t b = 0; b < of.axes.size(); ++b)
        if (input.axes[a] == of.axes[b]) axes.emplace_back(a, b);
    if (axes.size() != input.axes.size() || !input.is_held()) continue;
    for (const Function& f : functions) {
      const bool fits = std::all_of(ratios.begin(), ratios.end(), [&](const auto& entry) {
        const std::vector<int64_t> to = of.index(entry.first);
        std::vector<int64_t> from(input.axes.size());
        for (const auto& [a, b] : axes) from[a] = to[b];
        const double x = f.of(input.value(input.offset(from)));
        return std::isfinite(x) && x != 0 && std::fabs(x - entry.second) <= kOneRatio * std::fabs(x);
      });
      if (!fits) continue;
      return f.name + name;
    }
  }
  return std::nullopt;
}

std::optional<Sentence::Shift> Sentence::shifted() const {
  std::map<int64_t, const DependenceColumn*> by_element;
  for (const DependenceColumn& c : d_.columns) by_element[c.from] = &c;
  const std::vector<int64_t> strides = d_.input.strides();
  for (size_t a = 0; a < d_.input.axes.size(); ++a)
    for (const int64_t by : {1, -1, 2, -2}) {
      size_t same = 0, differ = 0;
      for (const Pair& p : wrong_) {
        const int64_t index = p.column->from / strides[a] % d_.input.axes[a].size + by;
        if (index < 0 || index >= d_.input.axes[a].size) continue;
        const auto other = by_element.find(p.column->from + by * strides[a]);
        if (other == by_element.end()) continue;
        const double x = other->second->reference[static_cast<size_t>(p.to)];
        if (zero(p, p.is) && zero(p, x)) continue;  // says nothing of either
        const double most = std::max(std::fabs(p.is), std::fabs(x));
        (std::fabs(p.is - x) <= kSame * most + kOfTheLargest * largest_.at(p.column) ? same : differ) += 1;
      }
      if (same < 2 || differ > 0) continue;
      return Shift{d_.input.axes[a].name, by};
    }
  return std::nullopt;
}

std::optional<std::string> Sentence::misread_axis() const {
  const std::vector<int64_t> strides = d_.input.strides();
  for (size_t a = 0; a < d_.input.axes.size(); ++a) {
    // By element of the output and place beside the axis: is one too many there, is one lacking?
    std::map<std::pair<int64_t, int64_t>, std::pair<bool, bool>> found;
    for (const Pair& p : wrong_) {
      const bool lacks = zero(p, p.is), extra = zero(p, p.should);
      if (lacks == extra) return std::nullopt;
      const int64_t from = p.column->from, index = from / strides[a] % d_.input.axes[a].size;
      auto& [more, less] = found[{p.to, from - index * strides[a]}];
      more |= extra, less |= lacks;
    }
    const auto is_exchanged = [](const auto& entry) { return entry.second.first && entry.second.second; };
    if (!found.empty() && std::all_of(found.begin(), found.end(), is_exchanged)) return d_.input.axes[a].name;
  }
  return std::nullopt;
}

std::string Sentence::another_weight() const {
  const auto worst = std::max_element(wrong_.begin(), wrong_.end(), [](const Pair& a, const Pair& b) {
    return std::fabs(a.is - a.should) < std::fabs(b.is - b.should);
  });
  return fmt::format("{} by {} has the derivative {:.4g}, and should have {:.4g}",
                     d_.output.element_name(worst->to), d_.input.element_name(worst->column->from), worst->is,
                     worst->should);
}

const std::vector<std::pair<std::string, std::string>> kPlurals = {
    {"does not", "do not"}, {"depends", "depend"}, {"its", "their"}, {"is ", "are "}, {"has ", "have "}};

/// One difference of one output. Of several that say the same the outputs, or the inputs, are listed.
struct Said {
  std::vector<std::string> outputs, inputs;
  std::string how;  ///< "does not depend on {}", "its dependence on {} is twice what it should be"
  int rank = 0;     ///< 0 the plainest
  bool is_of_one() const { return rank == 2; }

  std::string text() const {
    std::string what = how;
    if (outputs.size() > 1)
      for (const auto& [one, several] : kPlurals)
        if (what.starts_with(one)) what = several + what.substr(one.size());
    if (const size_t hole = what.find("{}"); hole != std::string::npos)
      what.replace(hole, 2, fmt::format("{}", fmt::join(inputs, " and ")));
    const bool of_them = what.starts_with("its") || what.starts_with("their");
    return fmt::format("{}{} {}", fmt::join(outputs, " and "), of_them ? ":" : "", what);
  }
};

std::string so_many_times(double ratio) {
  if (std::fabs(ratio + 1) < 1e-3) return "has the wrong sign";
  return fmt::format("is {:.6g} times what it should be", ratio);
}

Said said_of(Sentence& s, const TensorMap& inputs) {
  const std::optional<double> ratio = s.ratio();
  const bool extra = !ratio && s.only_extra();
  s.find_conditions(extra);
  const auto said = [&](const std::string& how, int rank) {
    return Said{{s.output()}, {s.input()}, how + s.share(), rank};
  };
  if (ratio && *ratio == 0) return said("does not depend on {}", 0);
  if (extra) return said("depends on {}, and should not", 0);
  if (ratio) return said("its dependence on {} " + so_many_times(*ratio), 1);
  if (const auto shift = s.shifted())
    return said(fmt::format("its dependence on {0}[{1}] has the weight of {0}[{1}{2:+}]", s.input_name(),
                            index_letter(shift->axis), shift->by),
                1);
  if (const auto axis = s.misread_axis())
    return said(fmt::format("depends on {{}} of another {} than it should", index_letter(*axis)), 0);
  for (const bool by_output : {true, false})
    if (const auto factor = s.factor(inputs, by_output))
      return said(fmt::format("its dependence on {{}} is {} times what it should be", *factor), 1);
  return said("its dependence on {} is another one: " + s.another_weight(), 2);
}

/// Of an output that is wrong alike by all inputs that it depends on.
std::optional<Said> scaled_output(std::vector<Sentence*>& of_output) {
  std::optional<double> common;
  std::optional<std::string> place;
  size_t inputs = 0;
  for (Sentence* s : of_output) {
    if (!s->depends()) continue;
    const std::optional<double> ratio = s->differs() ? s->ratio() : std::nullopt;
    if (!ratio || (common && std::fabs(*ratio - *common) > kOneRatio * std::fabs(*common)))
      return std::nullopt;
    s->find_conditions(false);
    if (s->share() != "" || s->input().find('[') != std::string::npos) return std::nullopt;
    if (place && *place != s->output()) return std::nullopt;
    common = ratio, place = s->output(), ++inputs;
  }
  if (inputs < 2) return std::nullopt;
  return Said{{*place}, {}, *common == 0 ? "depends on no input, and should" : so_many_times(*common), 0};
}

/// Those that differ in their outputs or in their inputs alone become one.
std::vector<Said> joined(std::vector<Said> all, std::vector<std::string> Said::*same,
                         std::vector<std::string> Said::*other) {
  std::vector<Said> kept;
  for (Said& s : all) {
    const auto like = std::find_if(kept.begin(), kept.end(), [&](const Said& k) {
      return !s.is_of_one() && k.how == s.how && k.*same == s.*same;
    });
    if (like == kept.end())
      kept.push_back(std::move(s));
    else
      ((*like).*other).insert(((*like).*other).end(), (s.*other).begin(), (s.*other).end());
  }
  return kept;
}

bool is_of_heads(const std::string& axis) {
  return axis == "H" || axis == "HV";
}
bool has_axis_like(const Tensor& input, const std::string& axis) {
  return std::any_of(input.axes.begin(), input.axes.end(), [&](const Axis& a) {
    return a.size > 1 && (a.name == axis || (is_of_heads(axis) && is_of_heads(a.name)));
  });
}

/// Of one output. Along time a neighbour's weight may be a decay's, along channels it may be the state that
/// is shifted: there, others must be depended on, and no longer those that should be. Where no other input
/// is read rightly along the axis it is the output that is misplaced.
void add_misread(const std::vector<Sentence*>& of_output, std::vector<Misread>& misread) {
  const auto axis_of = [](const Sentence& s) -> std::optional<std::string> {
    if (!s.differs() || s.ratio() || s.only_extra()) return std::nullopt;  // none, a weight, or too many
    if (auto axis = s.misread_axis()) return axis;
    const auto shift = s.shifted();
    return shift ? std::optional(shift->axis) : std::nullopt;
  };
  for (const Sentence* s : of_output) {
    std::optional<std::string> axis = axis_of(*s);
    if (axis && !is_of_heads(*axis) && *axis != "B" && *axis != "N")  // of a neighbour more is said
      axis = s->shifted() ? std::nullopt : s->misread_axis();
    if (!axis) continue;
    const auto known = [&](const Misread& m) { return m.input == s->input_name(); };
    if (std::any_of(misread.begin(), misread.end(), known)) continue;
    // Of the others that have the axis some are read rightly, and none is misplaced in another way.
    bool another_is_right = false, another_is_misplaced = false;
    for (const Sentence* other : of_output) {
      if (other == s || !other->depends() || !has_axis_like(other->of_input(), *axis) || axis_of(*other))
        continue;
      (other->is_misplaced() ? another_is_misplaced : another_is_right) = true;
    }
    if (another_is_right && !another_is_misplaced) misread.push_back({s->input_name(), *axis});
  }
}

/// Of one output: what lies later takes part, and all that should does.
void add_later(const std::vector<Sentence*>& of_output, std::vector<std::string>& later) {
  const auto is_later = [](const Sentence* s) { return s->differs() && s->is_of_later_tokens(); };
  if (std::any_of(of_output.begin(), of_output.end(),
                  [&](const Sentence* s) { return s->is_misplaced() && !is_later(s); }))
    return;
  for (const Sentence* s : of_output)
    if (is_later(s)) later.push_back(s->input_name());
}

}  // namespace

FingerprintText sentences_of(const std::vector<Dependence>& all, const TensorMap& inputs) {
  std::vector<Sentence> each;
  each.reserve(all.size());
  std::map<std::string, std::vector<Sentence*>> by_output;
  std::vector<std::string> outputs;
  for (const Dependence& d : all) {
    each.emplace_back(d);
    if (!by_output.contains(d.output.name)) outputs.push_back(d.output.name);
    by_output[d.output.name].push_back(&each.back());
  }
  std::vector<Said> said;
  for (const std::string& output : outputs) {
    if (auto whole = scaled_output(by_output[output])) {
      said.push_back(*std::move(whole));
      continue;
    }
    for (Sentence* s : by_output[output])
      if (s->differs()) said.push_back(said_of(*s, inputs));
  }
  said = joined(joined(std::move(said), &Said::inputs, &Said::outputs), &Said::outputs, &Said::inputs);
  std::stable_sort(said.begin(), said.end(), [](const Said& a, const Said& b) { return a.rank < b.rank; });
  FingerprintText text;
  for (const std::string& output : outputs) {
    add_misread(by_output[output], text.misread);
    add_later(by_output[output], text.later);
    for (Sentence* s : by_output[output])
      if (s->differs() && s->ratio() == 0.0 && s->is_of_one_token()) text.dropped.push_back(s->input_name());
  }
  text.plain = !said.empty() && said.front().rank < 2;
  size_t unsaid = 0;  // how they differ
  for (const Said& s : said)
    if (text.sentences.size() < kMostSentences && !(s.is_of_one() && ++unsaid > kMostUnsaid))
      text.sentences.push_back(s.text());
  return text;
}

}  // namespace assay
