// Meanings of the plain operands: whose they are, when, how much of them, and in which format.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/verification/diagnosis/meanings/propose.h"

namespace assay {
namespace {

using Add = std::function<void(const std::string&, const Tensor&, std::vector<Variant>&)>;

/// Operands and the cotangents of the outputs that are read with them.
std::vector<Variant> of_each(const FailingRun& run, const Add& add) {
  std::vector<Variant> variants;
  for (const auto& names : {run.operands(), run.cotangents()})
    for (const std::string& name : names) add(name, run.inputs().at(name), variants);
  return variants;
}

std::vector<Variant> operand_ignored(const FailingRun& run) {
  std::vector<Variant> variants;
  for (const std::string& name : run.operands())
    if (const std::string& n = name; n != "u")
      variants.push_back(on_input(run, n + " taken as zero", n, zeros));
  return variants;
}

std::vector<Variant> of_another_head(const FailingRun& run) {
  return of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
    const int axis = head_axis(x);
    if (axis < 0 || name == "u") return;
    for (const IndexMap& map : index_maps(x.axes[static_cast<size_t>(axis)].size))
      v.push_back(on_input(run, fmt::format("{} of another head, {}", name, map.text), name,
                           [axis, map](const Tensor& t) { return moved(t, axis, map.from); }));
  });
}

std::vector<Variant> of_another_channel(const FailingRun& run) {
  return of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
    for (const char* letter : {"K", "V", "M", "D"}) {
      const int axis = axis_of(x, letter);
      if (axis < 0 || name == "u") continue;
      for (const IndexMap& map : index_maps(x.axes[static_cast<size_t>(axis)].size))
        if (map.text != "in reverse order")  // a layout
          v.push_back(on_input(run, fmt::format("{} of another channel, {}", name, map.text), name,
                               [axis, map](const Tensor& t) { return moved(t, axis, map.from); }));
    }
  });
}

/// The same element where there is one, 0 elsewhere, with `size` indices along an axis.
Tensor resized(const Tensor& x, size_t axis, int64_t size) {
  std::vector<Axis> axes = x.axes;
  axes[axis].size = size;
  Tensor out(x.name, Dtype::fp64, axes);
  for (int64_t flat = 0; flat < out.size(); ++flat) {
    const std::vector<int64_t> index = out.index(flat);
    if (index[axis] < x.axes[axis].size) out.set(flat, x.value(x.offset(index)));
  }
  return out;
}

/// Rows of K stored one behind another, `tile` tokens at a time, and read `pitch` apart: a row of `pitch`
/// elements begins with those of a later token.
Tensor with_pitch(const FailingRun& run, const Tensor& x, int64_t pitch, int64_t tile) {
  const int64_t K = x.axes.back().size, rows = token_width(x) / K;
  Tensor out = resized(x, x.axes.size() - 1, pitch);
  for (const auto& [first, length] : run.spans())
    for (int64_t t = 0; t < length; ++t)
      for (int64_t place = 0; place < pitch; ++place) {
        const int64_t at = t % tile * pitch + place, from = t / tile * tile + at / K;
        for (int64_t row = 0; row < rows; ++row)
          out.set(((first + t) * rows + row) * pitch + place,
                  from < length ? x.value(((first + from) * rows + row) * K + at % K) : 0.0);
      }
  return out;
}

/// All operands with rows over K so; what has K rows in a state is filled up with zeros.
std::optional<Prediction> evaluate_with_pitch(const FailingRun& run, int64_t pitch, int64_t tile) {
  TensorMap inputs = run.inputs();
  for (auto& [name, x] : inputs) {
    const int axis = axis_of(x, "K");
    if (axis < 0) continue;
    const bool rows = token_width(x) > 0 && axis + 1 == static_cast<int>(x.axes.size());
    x = rows ? with_pitch(run, x, pitch, tile) : resized(x, static_cast<size_t>(axis), pitch);
  }
  std::optional<Prediction> p =
      evaluate_with(run, inputs, [pitch](Problem& problem) { problem.sizes.K = pitch; });
  if (!p) return p;
  for (auto& [name, output] : *p) {
    const auto found = run.outputs->find(name);
    const int axis = found == run.outputs->end() ? -1 : axis_of(found->second, "K");
    if (axis < 0) continue;
    const Tensor& got = found->second;
    const int64_t inner = got.strides()[static_cast<size_t>(axis)],
                  K = got.axes[static_cast<size_t>(axis)].size;
    const PredictedOutput wide = std::move(output);
    output = {};
    for (int64_t flat = 0; flat < got.size(); ++flat) {
      const auto from = static_cast<size_t>(flat / (inner * K) * inner * pitch + flat % (inner * K));
      output.mid.push_back(wide.mid[from]), output.bound.push_back(wide.bound[from]);
    }
  }
  return p;
}

void append_pitches(const FailingRun& run, std::vector<Variant>& v) {
  constexpr int64_t kLargest = 1 << 18;  // elements of one operand then
  const int64_t K = run.problem.sizes.K,
                tokens = run.problem.sizes.B * run.problem.sizes.T * run.problem.sizes.H;
  if (run.backward || !is_schedulable(run)) return;
  for (int64_t pitch = 2; pitch <= 128; pitch *= 2)
    for (const int64_t tile :
         {int64_t{1} << 40, int64_t{64}, int64_t{32}, int64_t{16}, int64_t{8}, int64_t{4}}) {
      if (pitch <= K || pitch * tokens > kLargest || (tile < (1 << 30) && tile >= run.problem.sizes.T))
        continue;
      v.push_back({fmt::format("rows of {} elements read {} apart, and as long{}", K, pitch,
                               tile > (1 << 30) ? "" : fmt::format(", in tiles of {} tokens", tile)),
                   [&run, pitch, tile] { return evaluate_with_pitch(run, pitch, tile); }});
      v.back().sweep = true;
    }
}

void append_backwards(const FailingRun& run, const std::string& name, const Tensor& x,
                      std::vector<Variant>& v) {
  for (size_t a = 0; a < x.axes.size(); ++a) {
    const std::string& letter = x.axes[a].name;
    if (x.axes[a].size < 2 || letter == "B" || letter == "N" || letter == "T" || letter == "H") continue;
    v.push_back(on_input(run, fmt::format("{} read backwards along {}", name, letter), name,
                         [a, last = x.axes[a].size - 1](const Tensor& t) {
                           return moved(t, static_cast<int>(a), [last](int64_t i) { return last - i; });
                         }));
  }
}

std::vector<Variant> laid_out_otherwise(const FailingRun& run) {
  std::vector<Variant> variants =
      of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
        for (size_t a = 0; a < x.axes.size(); ++a)
          for (size_t b = a + 1; b < x.axes.size(); ++b)
            if (x.axes[a].size > 1 && x.axes[b].size > 1 && x.axes[a].name != "N")
              v.push_back(on_input(run,
                                   fmt::format("{} read as if {} and {} were exchanged in memory", name,
                                               x.axes[a].name, x.axes[b].name),
                                   name, [a, b](const Tensor& t) { return with_axes_exchanged(t, a, b); }));
        append_backwards(run, name, x, v);
        if (token_width(x) == 0) return;
        for (const char* axis : {"K", "V", "M"}) {  // rows of another length
          const int64_t width = x.axes.back().size, other = run.problem.sizes.of(axis);
          if (x.axes.back().name == axis || other == width) continue;
          v.push_back(on_input(run, fmt::format("rows of {} taken to be {} long", name, axis), name,
                               [=](const Tensor& t) {
                                 return mapped(t, [&](double, int64_t flat) {
                                   const int64_t from = flat / width * other + flat % width;
                                   return from < t.size() ? t.value(from) : 0.0;
                                 });
                               }));
        }
      });
  for (const std::string& name : run.states()) append_backwards(run, name, run.inputs().at(name), variants);
  append_pitches(run, variants);
  return variants;
}

std::vector<Variant> of_another_sequence(const FailingRun& run) {
  return of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
    if (token_width(x) == 0 && axis_of(x, "N") < 0) return;
    for (const IndexMap& map : index_maps(run.sequences()))
      v.push_back(on_input(run, fmt::format("{} of another sequence, {}", name, map.text), name,
                           [&run, map](const Tensor& t) { return of_sequences(run, t, map.from); }));
  });
}

std::vector<Variant> of_one_token_of_a_block(const FailingRun& run) {
  return of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
    if (token_width(x) > 0) append(v, of_one_token_of_each_block(run, name));
  });
}

/// Every output of a token is that of the token before: all that it is made of is read a token early.
std::optional<Prediction> a_token_late(const FailingRun& run) {
  Prediction p;
  for (const ArgumentSpec& output : run.op->outputs) {
    const std::string name(output.name);
    const ReferenceOutput* right = run.expected(name);
    const auto got = run.outputs->find(name);
    const int64_t width = right && got != run.outputs->end() ? token_width(got->second) : 0;
    if (width == 0) continue;
    PredictedOutput& out = p[name];
    out = {right->mid, right->bound};
    for (const auto& [first, length] : run.spans())
      for (int64_t i = first * width; i < (first + length) * width; ++i) {
        const auto at = static_cast<size_t>(i), from = static_cast<size_t>(std::max<int64_t>(i - width, 0));
        const bool is_first = i < (first + 1) * width;
        out.mid[at] = is_first ? std::numeric_limits<double>::quiet_NaN() : right->mid[from];
        out.bound[at] = right->bound[is_first ? at : from];
      }
  }
  return p.empty() ? std::nullopt : std::optional(p);
}

std::vector<Variant> shifted(const FailingRun& run) {
  std::vector<Variant> variants =
      of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
        if (token_width(x) == 0) return;
        for (const int64_t by : {1, -1})
          for (const bool keep : {false, true})
            v.push_back(on_input(
                run,
                fmt::format("{} of the token {}{}", name, by > 0 ? "before" : "after",
                            keep ? ", the outermost kept" : ""),
                name, [&run, by, keep](const Tensor& t) { return moved_in_time(run, t, by, keep); }));
      });
  if (run.forward)
    variants.push_back(
        {"all that an output is made of is read a token early", [&run] { return a_token_late(run); }});
  return variants;
}

Tensor only(const Tensor& x, int axis, const std::function<bool(int64_t)>& kept) {
  return moved(x, axis, [&](int64_t i) { return kept(i) ? i : int64_t{-1}; });
}

/// Indices of an axis that are still read where tiles of it are left out, with what is not.
std::vector<Slab> uncut_slabs(int64_t size) {
  std::vector<Slab> parts;
  for (const int64_t tile : {2, 4, 8, 16, 32, 64, 128})
    if (tile < size) {
      parts.push_back({fmt::format("beyond {}", tile), [tile](int64_t i) { return i < tile; }});
      const int64_t whole = size / tile * tile, last = (size - 1) / tile * tile;
      if (whole < size && whole > tile)
        parts.push_back({fmt::format("beyond {}", whole), [whole](int64_t i) { return i < whole; }});
      parts.push_back({fmt::format("below {}", last), [last](int64_t i) { return i >= last; }});
    }
  if (size > 1) parts.push_back({fmt::format("at {}", size - 1), [size](int64_t i) { return i < size - 1; }});
  return parts;
}

std::vector<Variant> cut(const FailingRun& run) {
  return of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
    for (const char* letter : {"K", "V", "M", "D"}) {
      const int axis = axis_of(x, letter);
      for (const Slab& part : uncut_slabs(axis < 0 ? 0 : x.axes[static_cast<size_t>(axis)].size))
        v.push_back(on_input(run, fmt::format("{} is not read {} of {}", name, part.text, letter), name,
                             [axis, part](const Tensor& t) { return only(t, axis, part.kept); }));
    }
    const int64_t width = token_width(x);
    if (width == 0 || x.axes.back().size == width) return;
    for (const Slab& part : uncut_slabs(width))  // heads merged
      v.push_back(on_input(
          run, fmt::format("{} is not read {} of a token's {} channels", name, part.text, width), name,
          [width, part](const Tensor& t) {
            return mapped(t,
                          [&](double value, int64_t flat) { return part.kept(flat % width) ? value : 0.0; });
          }));
  });
}

/// Two operands rounded, the others not.
void append_pairs(const FailingRun& run, std::vector<Variant>& v) {
  const std::vector<std::string> names = run.operands();
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::tf32})
    for (size_t a = 0; a < names.size(); ++a)
      for (size_t b = a + 1; b < names.size(); ++b) {
        v.push_back(
            {fmt::format("{} and {} rounded to {}", names[a], names[b], format(dtype).name), [=, &run] {
               TensorMap inputs = run.inputs();
               for (const std::string& name : {names[a], names[b]})
                 inputs[name] = rounded_to(inputs.at(name), dtype);
               return evaluate_with(run, inputs);
             }});
        v.back().sweep = true;
      }
}

std::vector<Variant> rounded(const FailingRun& run) {
  std::vector<Variant> v =
      of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& list) {
        for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::tf32})
          if (format(dtype).precision < format(x.dtype).precision)
            for (const Narrowing how : {Narrowing::nearest, Narrowing::towards_zero})
              list.push_back(on_input(run, fmt::format("{} {}", name, text_of(how, dtype)), name,
                                      [dtype, how](const Tensor& t) { return rounded_to(t, dtype, how); }));
      });
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::tf32})
    for (const Narrowing how : {Narrowing::nearest, Narrowing::towards_zero})
      v.push_back({"all operands " + text_of(how, dtype), [&run, dtype, how] {
                     TensorMap inputs = run.inputs();
                     for (const auto& names : {run.operands(), run.cotangents()})
                       for (const std::string& name : names)
                         inputs[name] = rounded_to(inputs.at(name), dtype, how);
                     return evaluate_with(run, inputs);
                   }});
  append_pairs(run, v);
  return v;
}

std::vector<Variant> inverted(const FailingRun& run) {
  std::vector<Variant> v;
  for (const std::string& name : run.operands())
    v.push_back(on_input(run, "the sign of " + name, name,
                         [](const Tensor& t) { return mapped(t, [](double x, int64_t) { return -x; }); }));
  return v;
}

bool has_axes_of(const Tensor& x, const Tensor& y) {
  return std::equal(x.axes.begin(), x.axes.end(), y.axes.begin(), y.axes.end(),
                    [](const Axis& a, const Axis& b) { return a.name == b.name && a.size == b.size; });
}

/// Read where another of the same shape should be, or with it where that should be.
std::vector<Variant> exchanged(const FailingRun& run) {
  std::vector<std::string> names;
  for (const auto& group : {run.operands(), run.states(), run.cotangents()})
    names.insert(names.end(), group.begin(), group.end());
  std::vector<Variant> v;
  for (const std::string& a : names)
    for (const std::string& b : names) {
      const Tensor &x = run.inputs().at(a), &y = run.inputs().at(b);
      if (a == b || !has_axes_of(x, y)) continue;
      if (a < b)
        v.push_back({fmt::format("{} and {} exchanged", a, b), [&run, a, b] {
                       TensorMap inputs = run.inputs();
                       std::swap(inputs.at(a), inputs.at(b));
                       return evaluate_with(run, inputs);
                     }});
      for (const double sign : {1.0, -1.0}) {
        v.push_back(on_input(run, fmt::format("{}{} read in place of {}", sign < 0 ? "-" : "", b, a), a,
                             [&run, b, sign](const Tensor&) {
                               return mapped(run.inputs().at(b),
                                             [sign](double value, int64_t) { return sign * value; });
                             }));
        v.back().taken = b;
      }
    }
  return v;
}

/// Weights of a sum over tiles whose accumulator is never cleared: what a tile adds enters again with every
/// later one.
std::vector<Variant> not_cleared(const FailingRun& run) {
  return of_each(run, [&](const std::string& name, const Tensor& x, std::vector<Variant>& v) {
    struct Along {
      std::string text;
      int64_t stride, size;
      bool sums_only;
    };
    std::vector<Along> axes;
    const std::vector<int64_t> strides = x.strides();
    for (size_t a = 0; a < x.axes.size(); ++a)
      if (const std::string& letter = x.axes[a].name;
          letter != "B" && letter != "T" && letter != "H" && letter != "N")
        axes.push_back({letter, strides[a], x.axes[a].size, false});
    if (const int64_t width = token_width(x); width > 0) {
      if (x.axes.back().size < width) axes.push_back({"heads and channels", 1, width, false});
      axes.push_back({"tokens", width, x.size() / width, true});
    }
    for (const Along& axis : axes)
      for (const int64_t tile : {8, 16, 32, 64, 128}) {
        if (tile >= axis.size || (axis.sums_only && !only_sums_are_wrong(run))) continue;
        v.push_back(on_input(
            run,
            fmt::format("tiles of {} {} of {} enter once more with every later one", tile, axis.text, name),
            name, [axis, tile](const Tensor& t) {
              return mapped(t, [&](double value, int64_t flat) {
                const int64_t i = flat / axis.stride % axis.size;
                return value * static_cast<double>((axis.size - 1) / tile - i / tile + 1);
              });
            }));
      }
  });
}

/// Constants that kernels multiply with.
struct Constant {
  const char* text;
  double value;
};

/// An operand, a state or a cotangent times a constant.
std::vector<Variant> scaled(const FailingRun& run) {
  constexpr Constant kConstants[] = {{"itself times ln 2", 0x1.62e42fefa39efp-1},
                                     {"itself times log2 e", 0x1.71547652b82fep+0},
                                     {"twice itself", 2},
                                     {"half of itself", 0.5}};
  std::vector<Variant> v;
  for (const auto& group : {run.operands(), run.states(), run.cotangents()})
    for (const std::string& name : group)
      for (const Constant& c : kConstants) {
        v.push_back(on_input(run, fmt::format("{} enters as {}", name, c.text), name, [c](const Tensor& t) {
          return mapped(t, [&c](double x, int64_t) { return c.value * x; });
        }));
      }
  return v;
}

}  // namespace

std::vector<Meaning> operand_meanings() {
  return {{"operand-ignored", "an operand takes no part", "check where it enters", operand_ignored},
          {"operand-of-another-head", "an operand of another head is read", "check its head's offset",
           of_another_head},
          {"operand-of-another-channel", "an operand of another channel is read",
           "check its channel's offset", of_another_channel},
          {"operand-of-another-sequence", "an operand of another sequence is read",
           "check its sequence's offset", of_another_sequence},
          {"operand-layout", "an operand is read with other strides than it has, or backwards",
           "check the strides it is read with", laid_out_otherwise},
          {"operand-shifted-one-token", "an operand of the token before or after is read", "check its row",
           shifted},
          {"operand-of-another-token", "the tokens of a block all read an operand of its first, or last",
           "check its row", of_one_token_of_a_block},
          {"operand-cut", "channels of an operand beyond a limit are not read",
           "check the tiles over that axis", cut},
          {"operand-sign", "an operand enters with the other sign", "check its sign", inverted},
          {"operands-exchanged", "an operand is read in place of another, or two of them are exchanged",
           "check which tensor is read where", exchanged, 0.97},
          {"accumulator-not-cleared", "what a tile added to a sum enters again with every later tile",
           "clear the accumulator where a tile's sum has been taken from it", not_cleared},
          {"operand-scaled", "an operand enters times a constant", "check what multiplies it", scaled, 0.93},
          {"operand-rounded", "an operand is rounded, or cut off, to a narrower format before use",
           "keep it in its own format, or declare the arithmetic as it is", rounded, 1, false, true}};
}

}  // namespace assay
