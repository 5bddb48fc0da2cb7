#include "src/base/vm/shadow_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "src/base/vm/opcode.h"
#include "src/base/vm/shadow_pass.h"

namespace assay::vm {
namespace {

constexpr int kParts = kMostParts;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Source lines of the ops of every launch, numbered in the order of launches and ops.
struct Lines {
  std::vector<SourceLocation> where;
  std::vector<std::vector<int>> of_op;  ///< [launch][op]; -1: made by the decoder
};

Lines number_lines(const Pass& pass, const ShadowOptions& options) {
  Lines lines;
  std::map<std::pair<std::string, int>, int> known;
  for (size_t i = 0; i < pass.launches.size(); ++i) {
    const Code& code = pass.prepared.code(i);
    const ptx::Module& module = *code.module;
    std::vector<int>& of_op = lines.of_op.emplace_back();
    std::vector<int> numbered(module.lines.size(), -1);  // -1: none yet, or no file
    for (const Op& op : code.ops) {
      of_op.push_back(-1);
      const ptx::Instruction* const text = instruction_of(code, op);
      if (!text) continue;
      const bool is_shared = text->line >= 0 && !options.locate;
      if (is_shared) of_op.back() = numbered[static_cast<size_t>(text->line)];
      if (of_op.back() >= 0) continue;
      const SourceLocation at =
          options.locate ? options.locate(module, op.function, op.instruction) : written_at(module, *text);
      const bool sourced = !at.file.empty();
      const auto [found, is_new] = known.try_emplace(
          {sourced ? at.file : "", sourced ? at.line : at.ptx_line}, static_cast<int>(lines.where.size()));
      if (is_new) lines.where.push_back(options.locate ? at : where(code, op));
      of_op.back() = found->second;
      if (is_shared && sourced) numbered[static_cast<size_t>(text->line)] = found->second;
    }
  }
  return lines;
}

/// An op of a launch that stands at a line.
struct Site {
  const OpErrors::OfOp& did;
  const Code& code;
  const Op& op;
  size_t launch;
  int line;
  const std::string& opcode() const { return opcode_of(code, op); }
};

/// visit(Site) in the order of launches and ops.
template <class Visit>
void each_site(const Pass& pass, const Lines& lines, Visit visit) {
  for (size_t i = 0; i < pass.launches.size(); ++i)
    for (size_t op = 0; op < pass.launches[i].ops.size(); ++op)
      if (const int line = lines.of_op[i][op]; line >= 0)
        visit(Site{pass.launches[i].ops[op], pass.prepared.code(i), pass.prepared.code(i).ops[op], i, line});
}

ShadowOutput output_of(const Pass& pass, const Tensor& tensor) {
  ShadowOutput o;
  o.name = tensor.name;
  o.elements = tensor.size();
  for (int64_t flat = 0; flat < o.elements; ++flat) o.nonfinite += !std::isfinite(tensor.value(flat));
  double errors = 0, exacts = 0;
  pass.each_followed(tensor, [&](int64_t flat, double value, size_t at, const ErrorCells& cells) {
    ++o.followed;
    const double error = cells.error[at], exact = value + error;
    errors += error * error, exacts += exact * exact;
    if (o.worst.empty() || std::fabs(error) > o.max_error) {
      o.max_error = std::fabs(error), o.worst = tensor.element_name(flat);
      o.value = value, o.exact = exact, o.bound = cells.bound[at];
    }
  });
  const auto count = static_cast<double>(std::max<int64_t>(o.followed, 1));
  o.rms_error = std::sqrt(errors / count), o.rms_exact = std::sqrt(exacts / count);
  return o;
}

/// An element further off than `threshold`, relative to itself or to the output's size, whichever is larger.
bool has_parted(const Pass& pass, const Tensor& tensor, double rms, double threshold) {
  bool found = false;
  pass.each_followed(tensor, [&](int64_t, double value, size_t at, const ErrorCells& cells) {
    found |= std::fabs(cells.error[at]) > threshold * std::max(std::fabs(value + cells.error[at]), rms);
  });
  return found;
}

/// Counts per line, and which of its instructions rounds most: by that one's calls the line is reached.
std::vector<ShadowLine> rounding_lines(const Pass& pass, const Lines& lines, const ShadowOptions& options) {
  std::vector<ShadowLine> result(lines.where.size());
  for (size_t i = 0; i < lines.where.size(); ++i) result[i].where = lines.where[i];
  each_site(pass, lines, [&](const Site& at) {
    if (at.did.roundings == 0) return;
    ShadowLine& line = result[static_cast<size_t>(at.line)];
    line.roundings += at.did.roundings;
    if (!line.instruction.empty() && at.did.largest <= line.largest) return;
    line.largest = at.did.largest;
    line.instruction = at.opcode();
    if (options.locate) line.where = options.locate(*at.code.module, at.op.function, at.op.instruction);
  });
  return result;
}

/// The nearest edge per source line and opcode.
std::vector<ShadowEdge> edges_of(const Pass& pass, const Lines& lines) {
  std::map<std::pair<int, std::string>, ShadowEdge> nearest;
  each_site(pass, lines, [&](const Site& at) {
    if (!at.did.edge.is_seen()) return;
    ShadowEdge edge = describe_edge(edge_of(at.code.signature(at.op).form, at.op.row->result), at.did.edge);
    edge.where = lines.where[static_cast<size_t>(at.line)], edge.instruction = at.opcode();
    const auto [known, is_new] = nearest.try_emplace({at.line, edge.instruction}, edge);
    if (!is_new && edge.distance < known->second.distance) known->second = edge;
  });
  std::vector<ShadowEdge> edges;
  for (auto& [key, edge] : nearest) edges.push_back(std::move(edge));
  std::ranges::stable_sort(edges, {}, &ShadowEdge::distance);
  return edges;
}

/// Errors of an output, relative to its size, that are so many times the largest rounding were amplified;
/// less than kAmplifies times is what a sum of a few terms does by itself, and less than a share of the
/// output's error (or of all of a value) is not what made it. Of a line's results those count that are
/// furthest off: an output's error is that of its worst elements, and what grows around a loop is largest at
/// its end.
constexpr double kManyRoundings = 16, kAmplifies = 16, kShare = 0x1p-4, kFurthest = 0.875;
constexpr size_t kAmplifiers = 3;

std::vector<ShadowAmplifier> amplifiers_of(const Pass& pass, const Program& program, const Lines& lines,
                                           const std::vector<ShadowOutput>& outputs) {
  double rounding = 0, worst = 0;
  for (const OpErrors& launch : pass.launches)
    for (const OpErrors::OfOp& op : launch.ops) rounding = std::max(rounding, op.largest);
  for (const ShadowOutput& o : outputs)
    if (o.rms_error > 0 && o.rms_exact > 0) worst = std::max(worst, o.rms_error / o.rms_exact);
  std::vector<ShadowAmplifier> found;
  if (!(worst > kManyRoundings * rounding)) return found;
  each_site(pass, lines, [&](const Site& at) {
    const Amplified& a = at.did.amplified;
    const double error = a.errors.quantile(kFurthest), at_once = a.growths.median();
    const double growth = at_once >= kAmplifies ? at_once : a.returns.median();
    if (!(error >= kShare * std::min(worst, 1.0)) || growth < kAmplifies) return;
    const Launch& launch = program.launches[at.launch];
    found.push_back({lines.where[static_cast<size_t>(at.line)], at.opcode(), error, growth, a.value, a.exact,
                     unfold(a.block, launch.grid), unfold(a.thread, launch.block)});
  });
  std::ranges::stable_sort(found, std::greater(), &ShadowAmplifier::growth);
  // Of an unrolled loop's copies of a line the strongest.
  std::set<std::tuple<std::string, int, std::string>> told;
  std::erase_if(found, [&](const ShadowAmplifier& a) {
    return !told.emplace(a.where.file, a.where.file.empty() ? a.where.ptx_line : a.where.line, a.instruction)
                .second;
  });
  if (found.size() > kAmplifiers) found.resize(kAmplifiers);
  return found;
}

std::optional<ShadowElement> element_of(const Pass& pass, const ShadowOptions& options) {
  if (!options.element) return std::nullopt;
  const auto found = pass.outputs.find(options.element->first);
  if (found == pass.outputs.end() || !is_real(found->second.dtype)) return std::nullopt;
  std::optional<ShadowElement> element;
  const Tensor& tensor = found->second;
  pass.each_followed(tensor, [&](int64_t flat, double value, size_t at, const ErrorCells& cells) {
    if (flat == options.element->second)
      element = {tensor.element_name(flat), value, value + cells.error[at], cells.bound[at]};
  });
  return element;
}

std::optional<ShadowParting> parting_of(const Pass& pass, const Program& program, const Lines& lines,
                                        double threshold) {
  for (size_t i = 0; i < pass.launches.size(); ++i) {
    const Parting& first = pass.launches[i].first;
    if (first.op < 0) continue;
    const auto op = static_cast<size_t>(first.op);
    ShadowParting p;
    if (lines.of_op[i][op] >= 0) p.where = lines.where[static_cast<size_t>(lines.of_op[i][op])];
    p.instruction = opcode_of(pass.prepared.code(i), pass.prepared.code(i).ops[op]);
    p.block = unfold(first.block, program.launches[i].grid);
    p.thread = unfold(first.thread, program.launches[i].block);
    p.value = first.value, p.exact = first.value + first.error, p.threshold = threshold;
    return p;
  }
  return std::nullopt;
}

/// Those that hold reals: outputs as the program lists them, then inputs that were changed in place.
std::vector<const Tensor*> written_tensors(const Program& program, const TensorMap& written) {
  std::vector<const Tensor*> tensors;
  for (const ProgramOutput& output : program.outputs)
    if (const auto found = written.find(output.name); found != written.end())
      tensors.push_back(&found->second);
  for (const auto& [name, tensor] : written)
    if (std::ranges::find(tensors, &tensor) == tensors.end()) tensors.push_back(&tensor);
  std::erase_if(tensors, [](const Tensor* tensor) { return !is_real(tensor->dtype); });
  return tensors;
}

uint64_t bytes_to_follow(const Program& program) {
  uint64_t bytes = 0;
  for (const Workspace& w : program.workspaces) bytes += static_cast<uint64_t>(w.bytes);
  for (const ProgramOutput& o : program.outputs) {
    uint64_t elements = 1;
    for (const Axis& axis : o.axes) elements *= static_cast<uint64_t>(axis.size);
    bytes += elements * static_cast<uint64_t>(format(o.dtype).bytes);
  }
  return bytes / 2 * (sizeof(double) * kParts + 16);
}

/// Fills ShadowLine::share: the deterministic run again, kParts rounding lines at a time. `only`: of that
/// output; empty: of all.
void follow_lines(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                  const Lines& lines, const std::string& only, std::vector<ShadowLine>& result) {
  std::vector<size_t> followed;
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i].roundings) followed.push_back(i);
  std::map<std::string, std::vector<double>> sizes;  // output -> by line
  for (size_t first = 0; first < followed.size(); first += kParts) {
    const size_t count = std::min<size_t>(kParts, followed.size() - first);
    std::vector<int> part_of_line(result.size(), -1);
    for (size_t p = 0; p < count; ++p) part_of_line[followed[first + p]] = static_cast<int>(p);
    const auto part_of_op = [&](size_t launch) {
      std::vector<int> parts;
      for (const int line : lines.of_op[launch])
        parts.push_back(line < 0 ? -1 : part_of_line[static_cast<size_t>(line)]);
      return parts;
    };
    const Pass pass(program, inputs, options, {.part_of_op = part_of_op, .parts = static_cast<int>(count)});
    for (const auto& [name, tensor] : pass.outputs) {
      if (!is_real(tensor.dtype) || (!only.empty() && name != only)) continue;
      std::vector<double>& of_line = sizes[name];
      of_line.resize(result.size());
      pass.each_followed(tensor, [&](int64_t, double, size_t at, const ErrorCells& cells) {
        for (size_t p = 0; p < count; ++p)
          of_line[followed[first + p]] += std::fabs(cells.part(static_cast<int>(p))[at]);
      });
    }
  }
  int with_errors = 0;
  for (const auto& [name, of_line] : sizes) {
    double total = 0;
    for (const double size : of_line) total += size;
    if (!(total > 0)) continue;
    ++with_errors;
    for (size_t i = 0; i < of_line.size(); ++i) result[i].share += 100 * of_line[i] / total;
  }
  for (ShadowLine& line : result) line.share /= std::max(1, with_errors);
  std::erase_if(result, [](const ShadowLine& line) { return line.roundings == 0; });
  std::ranges::stable_sort(result, std::greater(), &ShadowLine::share);
}

}  // namespace

ShadowReport run_shadow(const Program& program, const TensorMap& inputs, const MachineOptions& machine,
                        const ShadowOptions& options) {
  const auto start = Clock::now();
  const Pass pass(program, inputs, machine, {.parting = options.parting});
  const Lines lines = number_lines(pass, options);
  ShadowReport report;
  report.lane_instructions = pass.lane_instructions;
  for (const OpErrors& launch : pass.launches) report.ended += launch.ended;
  bool parted = false;
  for (const Tensor* written : written_tensors(program, pass.outputs)) {
    report.outputs.push_back(output_of(pass, *written));
    parted = parted || has_parted(pass, *written, report.outputs.back().rms_exact, options.parting);
  }
  report.element = element_of(pass, options);
  report.edges = edges_of(pass, lines);
  report.amplifiers = amplifiers_of(pass, program, lines, report.outputs);
  if (parted) report.parting = parting_of(pass, program, lines, options.parting);
  report.seconds = seconds_since(start);
  if (options.by_line && !report.outputs.empty() && bytes_to_follow(program) <= options.by_line_bytes) {
    const auto followed = Clock::now();
    report.lines = rounding_lines(pass, lines, options);
    follow_lines(program, inputs, machine, lines, options.element ? options.element->first : "",
                 report.lines);
    report.seconds_by_line = seconds_since(followed);
  }
  return report;
}

}  // namespace assay::vm
