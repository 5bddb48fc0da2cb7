#include "src/base/vm/line_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>

#include "src/base/numerics/bad_input.h"
#include "src/base/numerics/format.h"
#include "src/base/ptx/instruction_text.h"
#include "src/base/vm/error_trace.h"
#include "src/base/vm/opcode.h"
#include "src/base/vm/traced_launch.h"

namespace assay::vm {
namespace {

bool ends_with_path(const std::string& path, const std::string& end) {
  return path.ends_with(end) && (path.size() == end.size() || path[path.size() - end.size() - 1] == '/');
}

/// visit(path, line) for all lines that an instruction stands at: its own, the calls around it, the PTX.
template <class Visit>
void each_line(const Code& code, const ptx::Instruction& in, Visit visit) {
  const ptx::Module& module = *code.module;
  for (int32_t at = in.line; at >= 0; at = module.lines[static_cast<size_t>(at)].inlined_at) {
    const ptx::Line& line = module.lines[static_cast<size_t>(at)];
    if (line.file >= 0 && line.line > 0) visit(module.files[static_cast<size_t>(line.file)], line.line);
  }
  visit(module.path, in.ptx_line);
}

/// The path as the PTX has it. Throws BadInput where nothing stands there.
std::string find_line(const PreparedProgram& prepared, const Program& program, const LineQuestion& asked) {
  std::set<std::string> files;
  std::set<int> lines;
  std::string path;
  for (size_t i = 0; i < program.launches.size(); ++i)
    for (const Op& op : prepared.code(i).ops)
      if (const ptx::Instruction* in = instruction_of(prepared.code(i), op))
        each_line(prepared.code(i), *in, [&](const std::string& file, int line) {
          files.insert(file);
          if (!ends_with_path(file, asked.file)) return;
          lines.insert(line);
          if (line == asked.line) path = file;
        });
  if (!path.empty()) return path;
  if (lines.empty())
    throw BadInput(fmt::format("{}: no instruction of this run comes from it; they come from {}", asked.file,
                               fmt::join(files, ", ")));
  const auto behind = lines.upper_bound(asked.line);
  std::vector<int> nearest;
  if (behind != lines.begin()) nearest.push_back(*std::prev(behind));
  if (behind != lines.end()) nearest.push_back(*behind);
  throw BadInput(
      fmt::format("{}:{}: no instruction of this run stands there; the nearest lines with instructions: {}",
                  asked.file, asked.line, fmt::join(nearest, ", ")));
}

std::string integer_text(uint64_t bits, ptx::Type type) {
  const int width = 8 * ptx::bytes_of(type);
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  if (ptx::is_unsigned(type)) return std::to_string(bits);
  if (ptx::is_signed(type)) return std::to_string(static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
  return fmt::format("0x{:0{}x}", bits, width / 4);
}

/// A register as an instruction takes it: its type, and which part of a matrix product it is.
struct Fragment {
  std::string role;
  ptx::Type type = ptx::Type::none;
};

/// Halves lie in registers by twos.
ptx::Type type_of_register(Element element) {
  const ptx::Type type = format_of(element).type;
  return type == ptx::Type::f16 ? ptx::Type::f16x2 : type == ptx::Type::bf16 ? ptx::Type::bf16x2 : type;
}

/// D, A, B, C and the metadata of a matrix product, by index into Op::slots; of a wgmma D is also C, and B is
/// in no register.
Fragment fragment_of(const MatrixForm& form, size_t index) {
  const auto d = static_cast<size_t>(form.sum_registers()), a = static_cast<size_t>(form.a_registers()),
             b = static_cast<size_t>(form.b_registers());
  if (index < d) return {"D", type_of_register(form.sum)};
  if (index < d + a) return {"A", type_of_register(form.a)};
  if (index < d + a + b) return {"B", type_of_register(form.b)};
  if (form.sparse && index == a + b + (form.warpgroup ? d : 2 * d)) return {"metadata", ptx::Type::b32};
  return {"C", type_of_register(form.sum)};
}

/// Float shadows run beside; of the warp that is watched the registers are copied while it is at the line.
class LineTrace : public PlainTrace {
 public:
  static constexpr unsigned hooks =
      hook::begin_block | hook::guarded | hook::before | hook::after | hook::landed;

  LineTrace(const ErrorPlan& plan, const LineQuestion& asked) : shadows_(plan), asked_(asked) {}

  void begin_block(Block& block) {
    if (code_ != block.context->code) learn(*block.context->code);
    here_ = !asked_.block || *asked_.block == block.index;
    at_.assign(block.warps.size(), {});
    shadows_.begin_block(block);
  }
  void guarded(Warp& warp, const Op& op, uint32_t active) {
    active_ = active;
    const uint32_t guard = op.guard_negated ? ~warp.mask(op.guard) : warp.mask(op.guard);
    if (!(guard & active)) step(warp, op, active, 0);
  }
  void before(Warp& warp, const Op& op, uint32_t mask) {
    step(warp, op, op.guarded ? active_ : mask, mask);
    shadows_.before(warp, op, mask);
  }
  void after(Warp& warp, const Op& op, uint32_t mask) {
    shadows_.after(warp, op, mask);
    if (is_shown(warp) && of_line_[index(op)]) show_results(warp, op, mask);
  }
  void landed(Warp& warp, const Landing& landing) { shadows_.landed(warp, landing); }

  bool found() const { return view.visits > 0; }
  LineView view;

 private:
  struct OfWarp {
    bool inside = false;
    std::set<size_t> seen;
  };

  size_t index(const Op& op) const { return static_cast<size_t>(&op - code_->ops.data()); }

  void learn(const Code& code) {
    code_ = &code;
    of_line_.assign(code.ops.size(), false);
    for (const Op& op : code.ops)
      if (const ptx::Instruction* in = instruction_of(code, op))
        each_line(code, *in, [&](const std::string& file, int line) {
          if (line == asked_.line && ends_with_path(file, asked_.file)) of_line_[index(op)] = true;
        });
    registers_.clear();
    for (const RegisterPlace& place : code.registers)
      registers_[place.slot] = &code.module->functions[static_cast<size_t>(place.function)]
                                    .registers[static_cast<size_t>(place.reg)];
    specials_.clear();
    for (const SpecialCell& special : code.specials) specials_[special.slot] = special.name;
  }

  /// The warp whose visits are counted: the one that came there first.
  bool is_watched(const Warp& warp) const {
    if (!here_ || (asked_.warp && *asked_.warp != warp.index)) return false;
    return !found() || view.warp == warp.index;
  }
  bool is_shown(const Warp& warp) const {
    return is_watched(warp) && found() && at_[warp.index].inside && view.visit == view.visits;
  }

  /// The warp has come to an op, with these lanes.
  void step(Warp& warp, const Op& op, uint32_t active, uint32_t executed) {
    if (op.instruction < 0 || !is_watched(warp)) return;
    OfWarp& at = at_[warp.index];
    if (!of_line_[index(op)]) {
      at.inside = false;
      return;
    }
    if (!at.inside || at.seen.contains(index(op))) enter(warp);
    at.seen.insert(index(op));
    if (!is_shown(warp)) return;
    const ptx::Instruction& in = *instruction_of(*code_, op);
    const ptx::Function& f = *function_of(*code_, op);
    SteppedInstruction shown;
    shown.ptx_line = in.ptx_line, shown.text = ptx::instruction_text(f, in);
    if (op.guarded)
      shown.guard = (op.guard_negated ? "@!" : "@") + f.registers[static_cast<size_t>(in.predicate)].name;
    shown.active = active, shown.executed = executed;
    view.instructions.push_back(std::move(shown));
    const Signature& signature = code_->signature(op);
    show_registers(warp, op, signature.reads, active, false);
  }

  void enter(const Warp& warp) {
    OfWarp& at = at_[warp.index];
    at.inside = true, at.seen.clear();
    const Block& block = *warp.block;
    if (!found()) {
      view.warp = warp.index, view.block = block.index;
      view.launch = static_cast<uint64_t>(block.context->launch_index);
      view.entry = code_->module->functions[static_cast<size_t>(code_->entry)].name;
    }
    ++view.visits;
    if (asked_.visit != kLastVisit && asked_.visit != view.visits) return;
    view.visit = view.visits;
    view.instructions.clear();
  }

  void show_results(Warp& warp, const Op& op, uint32_t mask) {
    show_registers(warp, op, code_->signature(op).writes, mask, true);
    each_access(warp, op, mask, [&](const MemoryAccess& access) {
      using ptx::Space;
      const Memory& memory = *warp.block->context->memory;
      std::string place = access.space == Space::shared  ? area_text(code_->shared_areas, access.address)
                          : access.space == Space::local ? area_text(code_->local_areas, access.address)
                                                         : memory.describe(access.address);
      const char* direction = !access.writes ? "read" : access.reads ? "update" : "write";
      if (access.operand) place = fmt::format("{} of {}", access.operand, place);
      view.instructions.back().memory.push_back(
          {access.lane, direction, std::move(place), access.address, access.bytes});
    });
  }

  Fragment meaning_of(const Op& op, const Use& use, bool written) const {
    const Signature& signature = code_->signature(op);
    if (use.purpose == Purpose::guard) return {"guard", use.type};
    if (signature.flow() == Flow::matrix && use.cell != Cell::mask && use.purpose != Purpose::descriptor) {
      for (size_t i = written ? 0 : op.written_slots; i < op.slot_count; ++i)
        if (op.slots[i] == use.slot) return fragment_of(signature.matrix, i);
      return {"C", type_of_register(signature.matrix.sum)};  // D in place
    }
    return {written ? "write" : "read", use.type};
  }

  void show_registers(const Warp& warp, const Op& op, std::span<const Use> uses, uint32_t mask,
                      bool written) {
    std::set<std::pair<Slot, std::string>> seen;
    for (const Use& use : uses) {
      const auto known = registers_.find(use.slot);
      const auto special = specials_.find(use.slot);
      if ((known == registers_.end() && special == specials_.end()) || use.cell == Cell::none) continue;
      const Fragment meaning = meaning_of(op, use, written);
      if (!seen.insert({use.slot, meaning.role}).second) continue;
      RegisterView shown;
      shown.name = known != registers_.end() ? known->second->name : special->second;
      shown.role = meaning.role;
      ptx::Type type = meaning.type;
      if (known != registers_.end() &&
          (!ptx::is_float(type) && !ptx::is_signed(type) && !ptx::is_unsigned(type)))
        type = plain_type(warp, use, known->second->type, mask);
      if (type == ptx::Type::none) type = use.cell == Cell::wide ? ptx::Type::b64 : ptx::Type::b32;
      shown.type = ptx::name_of(type);
      for (uint32_t rest = mask; rest; rest &= rest - 1)
        shown.lanes.push_back(lane_value(warp, use, type, std::countr_zero(rest)));
      view.instructions.back().registers.push_back(std::move(shown));
    }
  }

  /// Of bits: what a shadow says that they are, else the type that the register was declared with.
  ptx::Type plain_type(const Warp& warp, const Use& use, ptx::Type declared, uint32_t mask) {
    if (use.cell == Cell::mask) return ptx::Type::pred;
    for (int half = 0; half < (use.cell == Cell::word ? 2 : 0); ++half)
      for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const ErrorKind kind = shadows_.kind_of(warp, use.slot, half, std::countr_zero(rest));
        const bool packed = ptx::bytes_of(declared) == 4;
        if (kind == ErrorKind::f32) return ptx::Type::f32;
        if (kind == ErrorKind::f16) return packed ? ptx::Type::f16x2 : ptx::Type::f16;
        if (kind == ErrorKind::bf16) return packed ? ptx::Type::bf16x2 : ptx::Type::bf16;
      }
    return declared;
  }

  LaneValue lane_value(const Warp& warp, const Use& use, ptx::Type type, int lane) {
    LaneValue made;
    made.lane = lane;
    if (use.cell == Cell::mask) {
      made.bits = warp.mask(use.slot) >> lane & 1;
      made.text = made.bits ? "true" : "false";
      return made;
    }
    made.bits = use.cell == Cell::wide ? warp.wide(use.slot)[lane] : warp.word(use.slot)[lane];
    if (const int bytes = ptx::bytes_of(type); bytes < 8) made.bits &= (uint64_t{1} << (8 * bytes)) - 1;
    const ErrorKind kind = error_kind_of(type);
    if (kind == ErrorKind::none) {
      made.text = integer_text(made.bits, type);
      return made;
    }
    const Dtype dtype = dtype_of(kind);
    for (int half = 0; half < (ptx::is_packed(type) ? 2 : 1); ++half) {
      const uint64_t bits = halves_of(kind) == 1 ? made.bits >> (16 * half) & 0xffff : made.bits;
      const double value = decode(dtype, bits);
      made.text += fmt::format("{}{:.{}g}", half ? " " : "", value, kind == ErrorKind::f64 ? 17 : 9);
      const std::optional<double> error = shadows_.error_of(warp, use.slot, half, kind, lane);
      if (error && std::isfinite(value))
        made.exact.push_back({value, value + *error, *error, *error / ulp(dtype, value)});
    }
    return made;
  }

  ErrorTrace shadows_;
  const LineQuestion& asked_;
  const Code* code_ = nullptr;
  std::vector<bool> of_line_;  ///< by op
  std::unordered_map<Slot, const ptx::Register*> registers_;
  std::unordered_map<Slot, std::string> specials_;
  std::vector<OfWarp> at_;  ///< by warp of the block that runs
  uint32_t active_ = 0;     ///< of the guarded op that comes
  bool here_ = false;       ///< the block may be asked for
};

/// Throws BadInput where no launch has such a block, or such a warp.
void require_place(const Program& program, const LineQuestion& asked) {
  bool block = !asked.block, warp = !asked.warp;
  for (const Launch& launch : program.launches) {
    if (asked.block)
      block |= (*asked.block)[0] < launch.grid[0] && (*asked.block)[1] < launch.grid[1] &&
               (*asked.block)[2] < launch.grid[2];
    if (asked.warp)
      warp |= *asked.warp < (uint64_t{launch.block[0]} * launch.block[1] * launch.block[2] + 31) / 32;
  }
  if (!block)
    throw BadInput(fmt::format("block {}: no launch of this run has it", fmt::join(*asked.block, ",")));
  if (!warp)
    throw BadInput(fmt::format("warp {}: no launch of this run has blocks of so many warps", *asked.warp));
}

}  // namespace

LineView view_line(const Program& program, const TensorMap& inputs, const MachineOptions& options,
                   const LineQuestion& asked) {
  PreparedProgram prepared(program, inputs, options);
  const std::string path = find_line(prepared, program, asked);
  require_place(program, asked);
  ErrorMemory memory;
  for (const Allocation& a : prepared.memory().allocations()) memory.add(a.name, a.base, a.bytes, 2, {});
  const ErrorPlan plan{&memory, HUGE_VAL, {}};
  LineTrace trace(plan, asked);
  for (size_t i = 0; i < program.launches.size() && !trace.found() && trace.view.trap.empty(); ++i) {
    const LaunchContext& context = prepared.enter(i);
    const TracedLaunch done = run_traced(context, prepared.blocks(i), trace,
                                         [&](bool trapped) { return trapped || trace.found(); });
    if (done.trap) trace.view.trap = done.trap->message;
  }
  trace.view.place = fmt::format("{}:{}", path, asked.line);
  return std::move(trace.view);
}

}  // namespace assay::vm
