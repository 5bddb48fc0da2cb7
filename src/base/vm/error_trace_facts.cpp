// What the error trace knows of an op before it runs.
#include "src/base/vm/error_trace.h"

namespace assay::vm {
namespace {

/// A conversion to a float of 8 bits or fewer, whose type is bits here: a rounding that no shadow follows.
bool is_narrowing(Flow flow, const Meaning& meaning) {
  using ptx::Type;
  const bool bits = meaning.result == Type::b8 || meaning.result == Type::b16 || meaning.result == Type::b32;
  return flow == Flow::conversion && ptx::is_float(meaning.sources[0]) &&
         (bits || (ptx::is_float(meaning.result) && meaning.result != meaning.sources[0]));
}

/// By their exact difference; else by bits.
bool compares_floats(const Meaning& meaning) {
  return error_kind_of(meaning.sources[0]) != ErrorKind::none && meaning.sources[1] == meaning.sources[0];
}

/// real_exponential.h: the logarithm's difference is good to 2^-45 of itself.
constexpr double kLogarithmRoundoff = 0x1p-44;

}  // namespace

/// Where an op reads or goes, or from which lane it takes.
bool says_where(const Signature& signature, size_t read) {
  const bool exchanges = signature.flow() == Flow::exchange, branches = signature.control != Control::none;
  return signature.reads[read].purpose == Purpose::address || (exchanges && read > 0) || branches;
}

ErrorTrace::Facts ErrorTrace::facts_of(const Code& code, const Op& op) const {
  const Signature& signature = code.signature(op);
  const Meaning& meaning = *signature.meaning;
  const Flow flow = signature.flow();
  Facts f;
  const bool floats =
      flow == Flow::arithmetic ||
      (flow == Flow::conversion && ptx::is_float(meaning.result) && ptx::is_float(meaning.sources[0]));
  const bool writes_value = op.d != no_slot && op.d_cell != Cell::mask;
  struct Way {
    Step prepare, follow;
  };
  using T = ErrorTrace;
  const Way nothing{nullptr, nullptr}, ends{nullptr, &T::end},
      loses = plan_.strict ? Way{&T::prepare_exact_result, &T::lose} : ends,
      compares = !plan_.strict                        ? nothing
                 : op.row && compares_floats(*op.row) ? Way{nullptr, &T::compare}
                                                      : Way{&T::prepare_exact_result, &T::compare};
  const auto [prepare, follow] =
      carries(signature)     ? Way{flow == Flow::select ? &T::prepare_select : nullptr, &T::carry}
      : flow == Flow::matrix ? Way{&T::prepare_matrix, &T::matrix}
      : flow == Flow::atomic ? Way{nullptr, &T::atomic}
      : flow == Flow::comparison && op.row->mask                ? compares
      : !writes_value                                           ? nothing
      : floats && op.row->real                                  ? Way{&T::prepare_arithmetic, &T::arithmetic}
      : is_narrowing(flow, meaning)                             ? ends
      : floats || flow == Flow::none || op.d_cell != Cell::word ? loses
                                                                : Way{&T::prepare_bits, &T::bits};
  f.prepare = prepare, f.follow = follow;
  if (follow == Step(&T::arithmetic) || follow == Step(&T::matrix))
    f.edge = edge_of(signature.form, meaning.result).kind;
  using ptx::Operation;
  const bool clamps = signature.form.saturates || signature.form.relu;
  const Operation operation = signature.form.operation;
  const bool sums = operation == Operation::add || operation == Operation::sub,
             fuses = operation == Operation::fma || operation == Operation::mad;
  f.adds = sums || fuses, f.multiplies = operation == Operation::mul || fuses;
  const bool constant = sums || operation == Operation::neg || operation == Operation::cvt;
  if (!clamps && constant) f.slopes = Facts::Slopes::constant;
  if (!clamps && f.multiplies) f.slopes = Facts::Slopes::product;
  f.own_roundoff = operation == Operation::lg2 ? kLogarithmRoundoff : kStepRoundoff;
  f.decides = signature.control != Control::none;
  f.decides |= flow == Flow::copy_bulk;
  for (const Access& access : signature.accesses)
    f.decides |= access.direction != Access::Direction::read || flow == Flow::copy_async;
  while (f.arity < 3 && op.row->sources[static_cast<size_t>(f.arity)] != ptx::Type::none) ++f.arity;
  note_reads(signature, f);
  return f;
}

void ErrorTrace::note_reads(const Signature& signature, Facts& f) const {
  const auto rows_of = [](const Use& use) {
    return Facts::ReadRows{static_cast<uint32_t>(cell(use.slot, 0, 0) / Cells::kRow), bytes_of(use.cell) / 2};
  };
  for (const bool places : {true, false}) {
    for (size_t i = 0; i < signature.reads.size(); ++i) {
      const Use& read = signature.reads[i];
      if (read.cell == Cell::none || read.cell == Cell::mask || says_where(signature, i) != places) continue;
      if (f.read_count == f.reads.size())
        f.all_known = false;
      else
        f.reads[f.read_count++] = rows_of(read);
    }
    if (places) f.place_count = f.read_count;
  }
  if (signature.writes.size() == 1 && signature.writes[0].cell != Cell::mask)
    f.written = rows_of(signature.writes[0]);
}

}  // namespace assay::vm
