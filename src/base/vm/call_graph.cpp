#include "src/base/vm/call_graph.h"

#include <algorithm>
#include <utility>

namespace assay::vm {

using ptx::Operand;

CallSite call_site(const ptx::Instruction& instruction) {
  CallSite site;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::vector)
      (site.target ? site.arguments : site.returns) = &operand;
    else if (!site.target)
      site.target = &operand;
  }
  return site;
}

bool fits(const CallSite& site, const ptx::Function& function) {
  auto same = [](const Operand* list, const std::vector<ptx::Parameter>& parameters) {
    return (list ? list->elements.size() : 0) == parameters.size();
  };
  return same(site.arguments, function.parameters) && same(site.returns, function.returns);
}

CallGraph::CallGraph(const ptx::Module& module) {
  for (size_t i = 0; i < module.functions.size(); ++i)
    by_name_.emplace(module.functions[i].name, static_cast<int32_t>(i));
  find_addresses(module);
  callees_.resize(module.functions.size());
  for (size_t f = 0; f < module.functions.size(); ++f)
    for (const ptx::Instruction& instruction : module.functions[f].body) {
      if (instruction.form.operation != ptx::Operation::call) continue;
      const CallSite site = call_site(instruction);
      if (!site.target) continue;
      if (site.target->kind == Operand::Kind::reg) {
        for (const int32_t callee : with_an_address_)
          if (fits(site, module.functions[static_cast<size_t>(callee)])) callees_[f].push_back(callee);
      } else if (const int32_t callee = function_named(site.target->name); callee >= 0) {
        callees_[f].push_back(callee);
      }
    }
  find_cycles();
  leads_to_itself_.assign(callees_.size(), 0);
  for (size_t f = 0; f < callees_.size(); ++f)
    for (const int32_t callee : callees_[f])
      if (component_[f] == component_[static_cast<size_t>(callee)]) leads_to_itself_[f] = 1;
}

int32_t CallGraph::function_named(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

bool CallGraph::is_recursive(int32_t caller, int32_t callee) const {
  return component_[static_cast<size_t>(caller)] == component_[static_cast<size_t>(callee)];
}

std::vector<int32_t> CallGraph::reached_from(int32_t function) const {
  std::vector<int32_t> reached{function};
  std::vector<char> seen(callees_.size(), 0);
  seen[static_cast<size_t>(function)] = 1;
  for (size_t i = 0; i < reached.size(); ++i)
    for (const int32_t callee : callees_[static_cast<size_t>(reached[i])])
      if (!std::exchange(seen[static_cast<size_t>(callee)], 1)) reached.push_back(callee);
  return reached;
}

void CallGraph::find_addresses(const ptx::Module& module) {
  const auto is_entry = [](const ptx::Function& function) { return function.entry; };
  if (std::all_of(module.functions.begin(), module.functions.end(), is_entry)) return;  // none can be called
  std::vector<char> taken(module.functions.size(), 0);
  auto mark = [&](int32_t function) {
    if (function >= 0) taken[static_cast<size_t>(function)] = 1;
  };
  for (const ptx::Variable& variable : module.variables)
    for (const ptx::Variable::Address& address : variable.addresses) mark(address.function);
  for (const ptx::Function& function : module.functions)
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.form.operation == ptx::Operation::call) continue;
      for (const Operand& operand : instruction.operands)
        if (operand.kind == Operand::Kind::symbol && operand.symbol == -1 && operand.parameter < 0)
          mark(function_named(operand.name));
    }
  for (size_t i = 0; i < taken.size(); ++i)
    if (taken[i]) with_an_address_.push_back(static_cast<int32_t>(i));
}

/// Strongly connected components (Tarjan, "Depth-first search and linear graph algorithms", 1972), with a
/// stack of our own: a chain of calls may be as long as the text.
void CallGraph::find_cycles() {
  const size_t count = callees_.size();
  std::vector<int32_t> number(count, -1), lowest(count, 0), open;
  component_.assign(count, -1);
  int32_t next = 0;
  struct Visit {
    int32_t function;
    size_t at;
  };
  for (size_t root = 0; root < count; ++root) {
    if (number[root] >= 0) continue;
    std::vector<Visit> path{{static_cast<int32_t>(root), 0}};
    while (!path.empty()) {
      const auto f = static_cast<size_t>(path.back().function);
      if (path.back().at == 0) {
        number[f] = lowest[f] = next++;
        open.push_back(path.back().function);
      }
      if (path.back().at < callees_[f].size()) {
        const auto callee = static_cast<size_t>(callees_[f][path.back().at++]);
        if (number[callee] < 0)
          path.push_back({static_cast<int32_t>(callee), 0});
        else if (component_[callee] < 0)
          lowest[f] = std::min(lowest[f], number[callee]);
        continue;
      }
      if (lowest[f] == number[f]) {
        while (component_[f] < 0) {
          component_[static_cast<size_t>(open.back())] = number[f];
          open.pop_back();
        }
      }
      path.pop_back();
      if (!path.empty()) {
        auto& above = lowest[static_cast<size_t>(path.back().function)];
        above = std::min(above, lowest[f]);
      }
    }
  }
}

}  // namespace assay::vm
