// The instruction table as `assay list instructions` prints it.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "src/base/vm/availability.h"
#include "src/base/vm/instruction_row.h"
#include "src/base/vm/machine.h"

namespace assay::vm {
namespace {

/// Names that a program writes in full and the table in short (what changes no bits is dropped before a
/// look-up), and moves that only their operands tell apart.
std::string spelled(const std::string& form) {
  static const std::map<std::string, std::string> full = {
      {"membar", "membar.{cta,gl,sys}"},
      {"fence", "fence{.sc,.acq_rel}.{cta,cluster,gpu,sys}"},
      {"fence.proxy.async.shared", "fence.proxy.async.shared::{cta,cluster}"}};
  if (const auto found = full.find(form); found != full.end()) return found->second;
  std::string result = form;
  for (const char* type : {".f16", ".bf16", ".f16x2", ".bf16x2"})
    if ((form.starts_with("atom") || form.starts_with("red.")) && form.ends_with(type))
      result.replace(form.find(".add") + 4, 0, ".noftz");
  if (const size_t blank = form.find(' '); blank != std::string::npos)
    result = form.substr(0, blank) + (form.ends_with(" pack") ? " from a vector" : " to a vector");
  return result;
}

/// Steps that the decoder makes of an instruction: no program can write them.
bool is_internal(const std::string& form) {
  return form.find(' ') != std::string::npos && !form.ends_with("pack");
}

/// "a.b.c", "a.d.c" -> "a.{b,d}.c".
std::string joined(const std::vector<std::string>& forms) {
  if (forms.size() == 1) return forms[0];
  size_t head = forms[0].size(), tail = forms[0].size();
  for (const std::string& form : forms) {
    const size_t least = std::min(form.size(), forms[0].size());
    size_t same = 0;
    while (same < least && form[same] == forms[0][same]) ++same;
    head = std::min(head, same);
    same = 0;
    while (same < least - head && form[form.size() - 1 - same] == forms[0][forms[0].size() - 1 - same])
      ++same;
    tail = std::min(tail, same);
  }
  for (const std::string& form : forms) tail = std::min(tail, form.size() - head);
  // Whole parts only: up to a dot, and from a dot on.
  while (head > 0 && forms[0][head - 1] != '.') --head;
  while (tail > 0 && forms[0][forms[0].size() - tail] != '.') --tail;
  std::string text = forms[0].substr(0, head) + "{";
  for (const std::string& form : forms)
    text += (&form == &forms[0] ? "" : ",") + form.substr(head, form.size() - head - tail);
  return text + "}" + forms[0].substr(forms[0].size() - tail);
}

/// As `joined`, several texts where one would be long: forms that take the same last parts stand together.
std::vector<std::string> summaries(const std::vector<std::string>& forms) {
  constexpr size_t readable = 120;
  if (std::string text = joined(forms); text.size() <= readable) return {text};
  std::vector<std::string> heads;
  std::map<std::string, std::vector<std::string>> tails;  // by head
  for (const std::string& form : forms) {
    const size_t dot = form.rfind('.');
    if (dot == std::string::npos) return {joined(forms)};
    const std::string head = form.substr(0, dot);
    if (!tails.contains(head)) heads.push_back(head);
    tails[head].push_back(form.substr(dot + 1));
  }
  std::vector<std::string> result;
  for (const std::string& head : heads) {
    const std::vector<std::string>& of_head = tails.at(head);
    std::string text = head + "." + of_head[0];
    if (of_head.size() > 1) {
      text = head + ".{";
      for (const std::string& tail : of_head) text += (&tail == &of_head[0] ? "" : ",") + tail;
      text += "}";
    }
    result.push_back(std::move(text));
  }
  return result;
}

std::string text_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::exact:
      return "exact";
    case Evidence::measured:
      return "measured";
    case Evidence::modelled:
      return "modelled";
    default:
      return "-";
  }
}

}  // namespace

std::vector<InstructionRow> instruction_rows() {
  std::vector<InstructionRow> result;
  for (const Row& row : rows()) {
    std::map<int, std::vector<std::string>> by_least;
    std::map<int, std::string> example;
    for (const std::string& form : forms_of(row))
      if (!is_internal(form))
        for (std::string& name : alternatives(spelled(form))) {
          auto& known = by_least[least_architecture(form)];
          example.emplace(least_architecture(form), form);
          if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(std::move(name));
        }
    for (const auto& [least, forms] : by_least) {
      const bool whole = forms == alternatives(row.pattern);
      for (std::string& text : whole ? std::vector{row.pattern} : summaries(forms)) {
        InstructionRow made{std::move(text), {}};
        for (size_t i = 0; i < made.status.size(); ++i)
          made.status[i] = text_of(evidence_of(row, example.at(least), architectures[i]));
        result.push_back(std::move(made));
      }
    }
  }
  return result;
}

}  // namespace assay::vm
