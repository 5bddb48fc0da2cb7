#include "src/base/vm/compiled/compiled_code.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "src/base/vm/compiled/emissions.h"
#include "src/base/vm/engine.h"

namespace assay::vm {
namespace {

/// What a piece may hold: whatever goes on with the next op unless it traps. Other warp rows may make their
/// warp wait, or the trace be told.
bool belongs(const Op& op) {
  switch (op.kind) {
    case Kind::lanes:
    case Kind::exponential:
    case Kind::compare:
    case Kind::nothing:
      return true;
    case Kind::warp:
      break;
    default:
      return false;
  }
  if (op.row->asynchronous.step != Step::none) return false;
  switch (op.row->flow) {
    case Flow::none:
    case Flow::copy_async:
    case Flow::copy_bulk:
    case Flow::parameters:
      return false;
    case Flow::matrix:
      return !MatrixForm::of(op.immediate).warpgroup;
    default:
      return true;
  }
}

/// Whether the interpreter's row may compute with floats.
bool computes_floats(const Op& op) {
  switch (op.row->flow) {
    case Flow::arithmetic:
    case Flow::conversion:
    case Flow::comparison:
    case Flow::matrix:
    case Flow::atomic:
    case Flow::vote:
      return true;
    default:
      return op.kind == Kind::exponential;
  }
}

/// All that emit_shared_load knows: words of one block's shared memory to registers of 32 bits.
bool is_shared_load(const Op& op) {
  static const Row* const load = find_row("ld.shared.b32");
  return op.row == load && op.space == ptx::Space::shared && !op.guarded && !op.address_wide &&
         !op.in_cluster && op.element_bytes == 4 && op.immediate == 0 && op.vector_length <= 4;
}

// What pieces call.
bool call_lanes(CompiledRun* run, const Op* op, uint32_t mask) {
  if (op->kind == Kind::exponential) note_argument(*run->worker, *run->warp, *op, mask);
  alignas(64) uint64_t scratch[32];
  run_lanes(*run->warp, *op, mask, scratch);
  return true;
}
bool call_compare(CompiledRun* run, const Op* op, uint32_t mask) {
  run_compare(*run->warp, *op, mask);
  return true;
}
bool call_warp(CompiledRun* run, const Op* op, uint32_t mask) {
  Warp& warp = *run->warp;
  for (uint32_t rest = mask; rest; rest &= ~mask, mask = rest)
    while (!op->row->warp(warp, *op, mask)) {
      if (!warp.of_one_space) return false;
      mask = std::exchange(warp.of_one_space, 0);
    }
  return true;
}

/// Makes the code of one Code.
class Compiler : public CompiledCode {
 public:
  explicit Compiler(const Code& code) : code_(code) {
    find_pieces();
    if (std::none_of(begins_.begin(), begins_.end(), [](char b) { return b != 0; })) return;
    choose_mode();
    emit_entry();
    for (size_t i = 0; i < code_.ops.size(); ++i)
      if (begins_[i]) emit_piece(i);
    for (const ColdLoad& load : loads_) emit_cold_load(load);
    for (const ColdTrap& trap : traps_) emit_trap(trap);
    e_.emit_constants();
    e_.readyRE();
    function_ = e_.getCode<void (*)(CompiledRun*)>();
    entries_.resize(code_.ops.size());
    for (size_t i = 0; i < code_.ops.size(); ++i)
      entries_[i] = begins_[i] ? labels_[i].getAddress() : nullptr;
  }
  bool is_empty() const { return function_ == nullptr; }

 private:
  struct ColdTrap {
    std::unique_ptr<Xbyak::Label> label;
    size_t op;
    uint64_t executed, lanes;  ///< since the piece began, guarded ops' lanes apart
  };

  /// A load that its row does after all.
  struct ColdLoad {
    std::unique_ptr<Xbyak::Label> label, back;
    size_t op;
    uint64_t executed, lanes;
    Emitter::Holding holding;
    std::vector<std::array<Xbyak::Zmm, 2>> results;
  };

  void find_pieces() {
    const size_t count = code_.ops.size();
    std::vector<char> leads(count + 1, 0);
    leads[0] = 1;
    const auto lead = [&](int32_t op) {
      if (op >= 0) leads[static_cast<size_t>(op)] = 1;
    };
    for (size_t i = 0; i < count; ++i) {
      const Op& op = code_.ops[i];
      lead(op.target);
      lead(op.reconverge);
      if (op.reconverge >= 0) meetings_.insert(op.reconverge);
      if (op.kind == Kind::branch_table)
        for (const int32_t target : code_.branch_tables[op.immediate]) lead(target);
      if (!belongs(op)) leads[i + 1] = 1;
    }
    begins_.assign(count + 1, 0);
    ends_.assign(count, 0);
    for (size_t first = 0; first < count;) {
      size_t last = first;
      while (last < count && belongs(code_.ops[last]) && (last == first || !leads[last])) ++last;
      if (last > first) begins_[first] = 1, ends_[first] = last;
      first = std::max(last, first + 1);
    }
    labels_.resize(count + 1);
  }

  /// Between pieces MXCSR says what most of the program's instructions want.
  void choose_mode() {
    int plain = 0, flushing = 0;
    for (const Op& op : code_.ops) {
      const Emission* const emission = op.row ? emission_of(*op.row) : nullptr;
      if (!emission) continue;
      plain += emission->mode == Mode::plain, flushing += emission->mode == Mode::flushing;
    }
    home_ = flushing > plain ? Mode::flushing : Mode::plain;
  }

  void set_mode(Mode mode) {
    if (mode == Mode::any || mode == mode_) return;
    e_.ldmxcsr(at(mode == Mode::plain ? offsetof(CompiledRun, plain) : offsetof(CompiledRun, flushing)));
    mode_ = mode;
  }

  // r13: the run; rbx: its file; r14, r12: executed and lanes; ebp: lanes of a guard.
  Xbyak::Address at(size_t offset) { return e_.dword[e_.r13 + offset]; }
  Xbyak::Address wide_at(size_t offset) { return e_.qword[e_.r13 + offset]; }

  void emit_entry() {
    const Xbyak::Reg64 saved[] = {e_.rbx, e_.rbp, e_.r12, e_.r13, e_.r14};
    for (const auto& reg : saved) e_.push(reg);
    e_.mov(e_.r13, e_.rdi);
    e_.mov(e_.rbx, wide_at(offsetof(CompiledRun, file)));
    e_.mov(e_.r14, wide_at(offsetof(CompiledRun, executed)));
    e_.mov(e_.r12, wide_at(offsetof(CompiledRun, lanes)));
    e_.stmxcsr(at(offsetof(CompiledRun, plain)));
    e_.mov(at(offsetof(CompiledRun, flushing)), 0x9fc0);  // of .ftz (rows/host_mode.h)
    mode_ = Mode::plain;
    set_mode(home_);
    e_.jmp(wide_at(offsetof(CompiledRun, entry)));
    // Leaving: the op to go on with is in eax.
    e_.L(leave_);
    e_.mov(at(offsetof(CompiledRun, pc)), e_.eax);
    e_.mov(wide_at(offsetof(CompiledRun, executed)), e_.r14);
    e_.mov(wide_at(offsetof(CompiledRun, lanes)), e_.r12);
    e_.ldmxcsr(at(offsetof(CompiledRun, plain)));
    e_.vzeroupper();
    for (auto reg = std::rbegin(saved); reg != std::rend(saved); ++reg) e_.pop(*reg);
    e_.ret();
  }

  void emit_piece(size_t first) {
    e_.L(labels_[first]);
    mode_ = home_;
    executed_ = lanes_ = 0;
    const size_t end = ends_[first];
    for (size_t i = first; i < end; ++i) emit_op(i);
    e_.store_all();
    e_.forget_all();
    set_mode(home_);
    e_.add(e_.r14, static_cast<uint32_t>(executed_));
    if (lanes_) e_.add(e_.r12, static_cast<uint32_t>(lanes_));
    if (end < code_.ops.size() && code_.ops[end].kind == Kind::branch)
      emit_branch(end);
    else
      go_on(static_cast<int32_t>(end));
  }

  void emit_op(size_t i) {
    const Op& op = code_.ops[i];
    ++executed_;
    if (op.guarded) {
      load_guard(op);
      e_.popcnt(e_.ecx, e_.ebp);
      e_.add(e_.r12, e_.rcx);
    } else {
      lanes_ += 32;
    }
    if (op.kind == Kind::nothing) return;
    if (is_shared_load(op)) return emit_shared_load(i);
    if (const Emission* const emission = emission_of(*op.row)) {
      set_mode(emission->mode);
      e_.set_guard(op.guarded);
      emission->emit(e_, op);
      e_.finish_instruction();
    } else {
      emit_call(i);
    }
  }

  void load_guard(const Op& op) {
    e_.mov(e_.ebp, e_.mask_at(op.guard));
    if (op.guard_negated) e_.not_(e_.ebp);
  }

  /// The interpreter's row, with all that it may read in memory.
  void emit_call(size_t i) {
    const Op& op = code_.ops[i];
    e_.store_all();
    e_.forget_all();
    if (computes_floats(op)) set_mode(Mode::plain);
    Xbyak::Label without;
    if (op.guarded) {
      e_.test(e_.ebp, e_.ebp);
      e_.jz(without, Xbyak::CodeGenerator::T_NEAR);
    }
    e_.vzeroupper();
    if (op.kind == Kind::lanes && !op.guarded) {
      const Xbyak::Reg64 arguments[] = {e_.rsi, e_.rdx, e_.rcx, e_.r8};
      e_.lea(e_.rdi, e_.ptr[e_.rbx + op.d]);
      for (size_t s = 0; s < 4; ++s)
        if (op.s[s] == no_slot)
          e_.xor_(arguments[s].cvt32(), arguments[s].cvt32());
        else
          e_.lea(arguments[s], e_.ptr[e_.rbx + op.s[s]]);
      e_.mov(e_.rax, reinterpret_cast<uint64_t>(op.lanes));
      e_.call(e_.rax);
    } else {
      const auto function = op.kind == Kind::warp      ? call_warp
                            : op.kind == Kind::compare ? call_compare
                                                       : call_lanes;
      e_.mov(e_.rdi, e_.r13);
      e_.mov(e_.rsi, reinterpret_cast<uint64_t>(&op));
      if (op.guarded)
        e_.mov(e_.edx, e_.ebp);
      else
        e_.mov(e_.edx, ~0u);
      e_.mov(e_.rax, reinterpret_cast<uint64_t>(function));
      e_.call(e_.rax);
      if (op.kind == Kind::warp) {
        traps_.push_back({std::make_unique<Xbyak::Label>(), i, executed_, lanes_});
        e_.test(e_.al, e_.al);
        e_.jz(*traps_.back().label, Xbyak::CodeGenerator::T_NEAR);
      }
    }
    e_.L(without);
  }

  /// Words of shared memory at addresses of 32 bits, all lanes: from one place, in a row, or anywhere. What
  /// is outside, misaligned, or another block's is the row's.
  void emit_shared_load(size_t i) {
    const Op& op = code_.ops[i];
    const uint32_t bytes = 4u * op.vector_length;
    e_.set_guard(false);
    Xbyak::Zmm x[2] = {e_.use(op.s[0], 0), e_.use(op.s[0], 1)};
    for (int part = 0; part < 2 && op.offset != 0; ++part) {
      e_.vpaddd(Xbyak::Zmm(part), x[part], e_.broadcast(static_cast<uint32_t>(op.offset)));
      x[part] = Xbyak::Zmm(part);
    }
    ColdLoad cold{
        std::make_unique<Xbyak::Label>(), std::make_unique<Xbyak::Label>(), i, executed_, lanes_, {}, {}};
    for (uint32_t k = 0; k < op.vector_length; ++k) cold.results.push_back({e_.fresh(), e_.fresh()});
    cold.holding = e_.holding();
    const auto near = Xbyak::CodeGenerator::T_NEAR;
    const Xbyak::Address limit =
        at(offsetof(CompiledRun, shared_limit) + 4 * static_cast<size_t>(std::countr_zero(bytes)));
    Xbyak::Label differ, done;
    e_.vpbroadcastd(e_.zmm2, Xbyak::Xmm(x[0].getIdx()));
    e_.vpcmpd(e_.k1, e_.zmm2, x[0], 4);
    e_.vpcmpd(e_.k2, e_.zmm2, x[1], 4);
    e_.vmovd(e_.eax, Xbyak::Xmm(x[0].getIdx()));
    e_.mov(e_.rcx, wide_at(offsetof(CompiledRun, shared)));
    e_.cmp(e_.eax, limit);
    e_.jae(*cold.label, near);
    e_.test(e_.eax, bytes - 1);
    e_.jnz(*cold.label, near);
    e_.kortestw(e_.k1, e_.k2);
    e_.jnz(differ, near);
    for (uint32_t k = 0; k < op.vector_length; ++k) {
      e_.vpbroadcastd(cold.results[k][0], e_.dword[e_.rcx + e_.rax + 4 * k]);
      e_.vmovdqa64(cold.results[k][1], cold.results[k][0]);
    }
    e_.jmp(done, near);
    e_.L(differ);
    if (op.vector_length == 1) load_row(cold, x, limit, done);
    gather(cold, x, limit, bytes - 1);
    e_.L(done);
    e_.L(*cold.back);
    for (uint32_t k = 0; k < op.vector_length; ++k)
      for (uint32_t part = 0; part < 2; ++part)
        e_.define(op.slots[k], Cell::word, part, cold.results[k][part]);
    e_.finish_instruction();
    loads_.push_back(std::move(cold));
  }

  /// Single words side by side; eax: the first address, which is good.
  void load_row(const ColdLoad& cold, const Xbyak::Zmm (&x)[2], const Xbyak::Address& limit,
                const Xbyak::Label& done) {
    const auto near = Xbyak::CodeGenerator::T_NEAR;
    Xbyak::Label apart;
    e_.vpaddd(e_.zmm3, e_.zmm2, e_.steps_of_four(0));
    e_.vpcmpd(e_.k1, e_.zmm3, x[0], 4);
    e_.vpaddd(e_.zmm3, e_.zmm2, e_.steps_of_four(1));
    e_.vpcmpd(e_.k2, e_.zmm3, x[1], 4);
    e_.kortestw(e_.k1, e_.k2);
    e_.jnz(apart, near);
    e_.lea(e_.edx, e_.ptr[e_.rax + 124]);
    e_.cmp(e_.edx, limit);
    e_.jae(*cold.label, near);
    for (int part = 0; part < 2; ++part)
      e_.vmovdqu64(cold.results[0][static_cast<size_t>(part)], e_.ptr[e_.rcx + e_.rax + 64 * part]);
    e_.jmp(done, near);
    e_.L(apart);
  }

  void gather(const ColdLoad& cold, const Xbyak::Zmm (&x)[2], const Xbyak::Address& limit,
              uint32_t low_bits) {
    e_.vpbroadcastd(e_.zmm2, limit);
    e_.vpcmpud(e_.k1, x[0], e_.zmm2, 5);
    e_.vpcmpud(e_.k2, x[1], e_.zmm2, 5);
    e_.korw(e_.k1, e_.k1, e_.k2);
    e_.vpord(e_.zmm3, x[0], x[1]);
    e_.vptestmd(e_.k2, e_.zmm3, e_.broadcast(low_bits));
    e_.kortestw(e_.k1, e_.k2);
    e_.jnz(*cold.label, Xbyak::CodeGenerator::T_NEAR);
    for (size_t k = 0; k < cold.results.size(); ++k)
      for (size_t part = 0; part < 2; ++part) {
        e_.kxnorw(e_.k1, e_.k1, e_.k1);
        e_.vpgatherdd(cold.results[k][part] | e_.k1, e_.ptr[e_.rcx + x[part] + static_cast<int>(4 * k)]);
      }
  }

  void emit_cold_load(const ColdLoad& load) {
    const Op& op = code_.ops[load.op];
    e_.L(*load.label);
    e_.store_dirty(load.holding);
    e_.vzeroupper();
    e_.mov(e_.rdi, e_.r13);
    e_.mov(e_.rsi, reinterpret_cast<uint64_t>(&op));
    e_.mov(e_.edx, ~0u);
    e_.mov(e_.rax, reinterpret_cast<uint64_t>(&call_warp));
    e_.call(e_.rax);
    traps_.push_back({std::make_unique<Xbyak::Label>(), load.op, load.executed, load.lanes});
    e_.test(e_.al, e_.al);
    e_.jz(*traps_.back().label, Xbyak::CodeGenerator::T_NEAR);
    e_.load_again(load.holding);
    for (uint32_t k = 0; k < op.vector_length; ++k)
      for (uint32_t part = 0; part < 2; ++part) e_.load(load.results[k][part], op.slots[k], part);
    e_.jmp(*load.back, Xbyak::CodeGenerator::T_NEAR);
  }

  void emit_trap(const ColdTrap& trap) {
    e_.L(*trap.label);
    e_.add(e_.r14, static_cast<uint32_t>(trap.executed));
    e_.add(e_.r12, static_cast<uint32_t>(trap.lanes));
    e_.mov(at(offsetof(CompiledRun, trapped)), 1);
    leave_at(static_cast<int32_t>(trap.op));
  }

  void leave_at(int32_t pc) {
    e_.mov(e_.eax, static_cast<uint32_t>(pc));
    e_.jmp(leave_, Xbyak::CodeGenerator::T_NEAR);
  }
  /// To the piece that begins at `pc`, unless the warp's lanes meet others there.
  void go_on(int32_t pc) {
    if (!begins_[static_cast<size_t>(pc)]) return leave_at(pc);
    if (meetings_.contains(pc)) {
      e_.cmp(at(offsetof(CompiledRun, reconverge)), static_cast<uint32_t>(pc));
      e_.jne(labels_[static_cast<size_t>(pc)], Xbyak::CodeGenerator::T_NEAR);
      return leave_at(pc);
    }
    e_.jmp(labels_[static_cast<size_t>(pc)], Xbyak::CodeGenerator::T_NEAR);
  }

  /// A branch that all lanes take, or none; others, and those at the end of a turn, are the engine's.
  void emit_branch(size_t i) {
    const Op& op = code_.ops[i];
    Xbyak::Label taken, engine;
    if (op.guarded) {
      load_guard(op);
      e_.cmp(e_.ebp, ~0u);
      e_.je(taken, Xbyak::CodeGenerator::T_NEAR);
      e_.test(e_.ebp, e_.ebp);
      e_.jnz(engine, Xbyak::CodeGenerator::T_NEAR);
      e_.add(e_.r14, 1);
      go_on(static_cast<int32_t>(i) + 1);
    }
    e_.L(taken);
    e_.lea(e_.rax, e_.ptr[e_.r14 + 1]);
    e_.cmp(e_.rax, wide_at(offsetof(CompiledRun, stop)));
    e_.jae(engine, Xbyak::CodeGenerator::T_NEAR);
    e_.mov(e_.r14, e_.rax);
    e_.add(e_.r12, 32);
    go_on(op.target);
    e_.L(engine);
    leave_at(static_cast<int32_t>(i));
  }

  const Code& code_;
  Emitter e_;
  std::vector<char> begins_;          ///< by op: a piece does
  std::vector<size_t> ends_;          ///< of the piece that begins there: the op behind its last
  std::set<int32_t> meetings_;        ///< where lanes may meet others
  std::vector<Xbyak::Label> labels_;  ///< of pieces
  Xbyak::Label leave_;
  std::vector<ColdTrap> traps_;
  std::vector<ColdLoad> loads_;
  Mode home_ = Mode::plain, mode_ = Mode::plain;
  uint64_t executed_ = 0, lanes_ = 0;  ///< of the piece so far
};

bool host_can() {
#if defined(__x86_64__)
  static const std::vector<std::string> sets = lane_sets();
  return std::find(sets.begin(), sets.end(), "avx512") != sets.end() && __builtin_cpu_supports("popcnt");
#else
  return false;
#endif
}

}  // namespace

std::shared_ptr<const CompiledCode> compile(const Code& code) {
  if (!host_can()) return nullptr;
  try {
    auto made = std::make_shared<Compiler>(code);
    return made->is_empty() ? nullptr : made;
  } catch (const Xbyak::Error&) {  // the host gives no memory that can be executed
    return nullptr;
  }
}

const CompiledCode* compiled_code(const Code& code) {
  std::call_once(code.compiled.once, [&] { code.compiled.made = compile(code); });
  return code.compiled.made.get();
}

}  // namespace assay::vm
