#include "src/base/watch/segment.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/watch/float_type.h"

namespace assay::watch {

using ptx::Type;
using Kind = WatchedInstruction::Kind;

namespace {

Type alike(Type type) {
  return type == Type::tf32 ? Type::f32 : type;
}

}  // namespace

int Segment::kept(int32_t instruction, const std::vector<int32_t>& last_use) const {
  return static_cast<int>(std::count_if(values_.begin(), values_.end(), [&](const Value& v) {
    return v.reg < 0 || last_use[static_cast<size_t>(v.reg)] <= instruction;
  }));
}

void Segment::copy(Value& value, Code& code) {
  const auto of = AddedRegisters::class_of(value.type);
  const std::string to = registers_.make(of);
  code.line(fmt::format("mov{} {}, {}", AddedRegisters::type_of(of), to, value.name));
  value.name = to, value.reg = -1;
}

int Segment::read(int32_t reg, Type type, bool scoped, Code& code) {
  if (const auto known = current_.find(reg); known != current_.end()) return known->second;
  const auto number = static_cast<int>(values_.size());
  values_.push_back({function_.registers[static_cast<size_t>(reg)].name, type, reg});
  if (scoped)
    copy(values_.back(), code);
  else
    current_[reg] = number;
  return number;
}

Segment::Origin Segment::origin_of(const FloatOperand& source) const {
  if (source.operand->kind != ptx::Operand::Kind::reg) return {};
  Origin origin;
  if (const auto passed = origin_.find(source.operand->reg); passed != origin_.end())
    origin = passed->second;
  else if (const auto held = current_.find(source.operand->reg); held != current_.end())
    origin = {held->second, values_[static_cast<size_t>(held->second)].type};
  return origin;
}

Segment::Part Segment::part(const FloatOperand& source, const std::vector<bool>& scoped, Code& code) {
  Part made;
  made.type = source.type, made.reaches_result = source.reaches_result;
  made.reaches_but_negative = source.reaches_but_negative;
  const ptx::Operand& operand = *source.operand;
  if (operand.kind == ptx::Operand::Kind::reg) {
    const Origin origin = origin_of(source);
    if (origin.value >= 0 && alike(origin.type) == alike(source.type)) made.origin = origin.value;
    const bool inside = !scoped.empty() && scoped[static_cast<size_t>(operand.reg)];
    made.value = read(operand.reg, source.type, inside, code);
  } else {
    made.literal = literal_bits(operand, source.type);
  }
  return made;
}

void Segment::before(const ptx::Instruction& instruction, const WatchedInstruction& watched,
                     const std::vector<bool>& scoped, const std::vector<int32_t>& writes, Code& code) {
  begun_ = {};
  Origin passed;
  if (watched.kind >= Kind::scalar) {
    begun_.instruction = &instruction, begun_.watched = watched;
    const size_t count = watched.sources.size() - (watched.in_place ? watched.results.size() : 0);
    for (size_t i = 0; i < count; ++i) begun_.sources.push_back(part(watched.sources[i], scoped, code));
    if (instruction.predicate >= 0)
      begun_.guard =
          read(instruction.predicate, Type::pred, scoped[static_cast<size_t>(instruction.predicate)], code);
  } else if (watched.kind == Kind::passes && instruction.predicate < 0) {
    passed = origin_of(watched.sources[0]);
    const bool moves = instruction.form.operation == ptx::Operation::mov;
    if (!moves && alike(passed.type) != alike(watched.sources[0].type)) passed = {};
    if (!moves) passed.type = watched.results[0].type;
  }
  for (const int32_t reg : writes) {
    if (const auto held = current_.find(reg); held != current_.end()) {
      copy(values_[static_cast<size_t>(held->second)], code);
      current_.erase(held);
    }
    origin_.erase(reg);
  }
  if (passed.value >= 0) origin_[watched.results[0].operand->reg] = passed;
}

void Segment::after(const ptx::Instruction&, const WatchedInstruction& watched,
                    const std::vector<bool>& scoped, int32_t site, Code& code) {
  begun_.site = site;
  for (const FloatOperand& result : watched.results) {
    if (result.operand->kind != ptx::Operand::Kind::reg) continue;  // "_"
    begun_.results.push_back(part(result, scoped, code));
    begun_.results.back().origin = -1;
    if (watched.kind == Kind::scalar && begun_.guard < 0)
      value(begun_.results.back()).maker = static_cast<int>(items_.size());
  }
  whole_warp_ |= watched.kind == Kind::product;
  items_.push_back(std::move(begun_));
}

void Segment::take_state(int32_t reg, Code& code) {
  Part state;
  state.type = accumulators_.type(reg);
  state.value = read(reg, state.type, false, code);
  states_.push_back(state);
}

bool Segment::holds(const WatchedInstruction& product) const {
  return std::any_of(product.results.begin(), product.results.end(), [&](const FloatOperand& result) {
    return result.operand->kind == ptx::Operand::Kind::reg && current_.contains(result.operand->reg);
  });
}

bool Segment::adds_to(const std::vector<int32_t>& registers) const {
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    const auto& sums = item.watched.results;
    return item.watched.in_place && std::any_of(sums.begin(), sums.end(), [&](const FloatOperand& sum) {
             return std::find(registers.begin(), registers.end(), sum.operand->reg) != registers.end();
           });
  });
}

void Segment::take_sums(std::vector<Multiplication> group, int32_t site, Code& code) {
  begun_ = {};
  begun_.instruction = group.back().instruction, begun_.watched = group.back().watched;
  begun_.watched.kind = Kind::sums;
  for (const FloatOperand& result : begun_.watched.results)
    if (result.operand->kind == ptx::Operand::Kind::reg) begun_.results.push_back(part(result, {}, code));
  begun_.site = site, begun_.group = std::move(group);
  whole_warp_ = true;
  items_.push_back(std::move(begun_));
}

/// What is tested: backwards, as an item tells of its sources by what tells of its result. `closely`: any sum
/// or product may be an infinity of a mask, not those alone that exponentials take.
void Segment::cover(bool closely) {
  for (Value& value : values_) value.covered = value.may_be_masked = value.is_told = false, value.first = -1;
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    if (item->guard >= 0) continue;
    if (closely && item->watched.kind == Kind::scalar && item->results.size() == 1) let_be_masked(*item);
    cover_sources(*item);
  }
}

void Segment::let_be_masked(const Item& item) {
  Value& made = value(item.results[0]);
  if (made.covered || made.first >= 0 || made.type != Type::f32 || is_added_to(made)) return;
  made.first = first_of(item.results[0].value), made.may_be_masked = made.first >= 0;
}

void Segment::cover_sources(const Item& item) {
  const bool one = item.watched.kind == Kind::scalar && item.results.size() == 1;
  const int first = one && !value(item.results[0]).covered ? value(item.results[0]).first : -1;
  for (const Part& source : item.sources) {
    if (source.origin < 0) continue;
    Value& of = values_[static_cast<size_t>(source.origin)];
    if (source.reaches_result && first < 0)
      of.covered = true;
    else if (source.reaches_result && of.first < 0 && !is_added_to(of) && is_made_of(source.origin, first))
      of.first = first;
    else if (source.reaches_but_negative && source.origin == source.value && of.type == Type::f32 &&
             !is_added_to(of))
      of.first = first_of(source.origin), of.may_be_masked = of.is_told = of.first >= 0;
  }
}

/// By products in place: what is not finite of it has to be known.
bool Segment::is_added_to(const Value& value) const {
  return value.reg >= 0 && accumulators_.holds(value.reg);
}

/// What sums and products that make a value begin with: x of (x - m) * c; -1 where it is made otherwise. Rows
/// are masked by an x of -infinity, and largest elements begin as one.
int Segment::first_of(int value) const {
  int first = -1;
  for (int of = value; values_[static_cast<size_t>(of)].maker >= 0; of = first) {
    const Item& maker = items_[static_cast<size_t>(values_[static_cast<size_t>(of)].maker)];
    const auto from = std::find_if(maker.sources.begin(), maker.sources.end(),
                                   [](const Part& source) { return source.value >= 0; });
    if (maker.sources.size() < 2 || from == maker.sources.end() || !from->reaches_result ||
        from->type != Type::f32 || maker.watched.results[0].type != Type::f32)
      break;
    first = from->value;
  }
  return first;
}

/// By sums and products: then it is infinite or NaN where `first` is infinite, and no infinity was born.
bool Segment::is_made_of(int value, int first, int depth) const {
  constexpr int kDeepest = 5;
  const int maker = values_[static_cast<size_t>(value)].maker;
  if (maker < 0 || depth == kDeepest) return false;
  const std::vector<Part>& sources = items_[static_cast<size_t>(maker)].sources;
  return std::any_of(sources.begin(), sources.end(), [&](const Part& source) {
    return source.reaches_result && source.value >= 0 &&
           (source.value == first || is_made_of(source.value, first, depth + 1));
  });
}

/// Of the basic block that begins here, beside others.
void Segment::mark_frequency(int times, Code& code) const {
  if (marks_cold_) code.text += fmt::format("\t.pragma \"frequency {}\";\n", times);
}

void Segment::finish(const std::string& name, bool inside, Code& test_code, Code& aside) {
  cover();
  accumulators_.emit(test_code);
  const std::string found = test(false, test_code), back = name + "_back", away = name + "_born";
  const std::string any = vote(found, test_code);
  test_code.line(fmt::format("@{}{} bra.uni {}", inside ? "!" : "", any, inside ? back : away));
  Code& code = inside ? test_code : aside;
  const int64_t before = code.instructions;
  if (!inside) code.label(away);
  mark_frequency(1, code);
  look_closely(any, back, code);
  begin_births(code);
  for (size_t i = 0; i < items_.size(); ++i) {
    const auto number = static_cast<int>(i);
    if (items_[i].watched.kind == Kind::product) births_of_product(items_[i], number, code);
    if (items_[i].watched.kind == Kind::scalar) births_of_scalar(items_[i], number, code);
    if (items_[i].watched.kind == Kind::sums) births_of_sums(items_[i], name, number, code);
  }
  for (const Part& state : states_) note_accumulator(state, code);
  for (const Item& item : items_)
    for (const Part& result : item.results) note_accumulator(result, code);
  if (!items_.empty()) note(name, code);
  code.line(fmt::format("bar.warp.sync {}", lanes_));
  if (!inside) code.line("bra.uni " + back);
  if (inside) {
    aside.instructions += code.instructions - before;
    code.instructions = before;
  }
  test_code.label(back);
  mark_frequency(is_aside_ ? 1 : 1'000'000, test_code);
  clear();
}

/// Where infinities of masks are all that was found, as is usual, there is nothing to note.
void Segment::look_closely(const std::string& any, const std::string& back, Code& code) {
  cover(true);
  if (std::none_of(values_.begin(), values_.end(),
                   [](const Value& v) { return v.may_be_masked && !v.covered; }))
    return;
  code.line(fmt::format("vote.sync.any.pred {}, {}, {}", any, test(true, code), lanes_));
  code.line(fmt::format("@!{} bra.uni {}", any, back));
}

std::string Segment::vote(const std::string& found, Code& code) {
  lanes_ = added(AddedRegisters::Class::word);
  const std::string any = added(AddedRegisters::Class::predicate);
  code.line(whole_warp_ ? fmt::format("mov.b32 {}, -1", lanes_) : fmt::format("activemask.b32 {}", lanes_));
  code.line(fmt::format("vote.sync.any.pred {}, {}, {}", any, found, lanes_));
  return any;
}

void Segment::branch(const std::string& name, Code& code) {
  cover();
  const std::string any = vote(test(false, code), code);
  code.line(fmt::format("@{} bra.uni {}_born", any, name));
  code.label(name + "_back");
  mark_frequency(1'000'000, code);
  clear();
}

void Segment::clear() {
  items_.clear(), states_.clear();
  forget();
  whole_warp_ = false;
  registers_.free_all();
}

int Segment::kept_results(int32_t instruction, const std::vector<int32_t>& last_use) {
  cover();
  int kept = 0;
  for (const Item& item : items_)
    for (const Part& result : item.results) {
      const Value& v = value(result);
      kept += v.is_tested() && (v.reg < 0 || last_use[static_cast<size_t>(v.reg)] <= instruction);
    }
  return kept;
}

}  // namespace assay::watch
