#include "kernels/inline_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

using Lines = std::vector<std::string_view>;

bool is_word(char c) {
  return c == '_' || c == '$' || c == '%' || std::isalnum(static_cast<unsigned char>(c));
}
std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == line.npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}
/// The first word of `text` at or after `from` that holds more than its first character.
std::string_view word_at(std::string_view text, size_t from) {
  while (from < text.size() && !is_word(text[from])) ++from;
  size_t end = from;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(from, end - from);
}
int64_t number_in(std::string_view text, char before) {
  const size_t at = text.find(before);
  return at == text.npos ? 0 : std::strtoll(std::string(text.substr(at + 1)).c_str(), nullptr, 10);
}

/// A function or an entry: its lines between the braces.
struct Body {
  std::string_view name;
  bool entry = false;
  Lines head, lines;
};

struct Module {
  Lines around;  ///< lines before and between functions
  std::vector<Body> entries;
  std::map<std::string_view, Body> functions;
  std::map<std::string_view, Lines> declared;
};

/// "NAME" of "[.weak|.visible] .func (.param .b32 func_retval0) NAME(".
std::string_view name_of(std::string_view line) {
  const bool entry = line.find(".entry") != line.npos;
  size_t at = line.find(entry ? ".entry" : ".func") + (entry ? 6 : 5);
  const size_t open = line.find('(', at);
  if (!entry && open != line.npos && trimmed(line.substr(at, open - at)).empty()) at = line.find(')', open);
  return word_at(line, at);
}

Module taken_apart(std::string_view ptx) {
  Module module;
  Lines all;
  while (!ptx.empty()) {
    const size_t end = std::min(ptx.find('\n'), ptx.size());
    const std::string_view line = trimmed(ptx.substr(0, end));
    if (!line.empty() && !line.starts_with("//")) all.push_back(line);
    ptx.remove_prefix(std::min(end + 1, ptx.size()));
  }
  for (size_t at = 0; at < all.size(); ++at) {
    if (all[at].starts_with(".section")) {
      while (at < all.size() && all[at] != "}") ++at;
      continue;
    }
    if (all[at].find(".func") == all[at].npos && all[at].find(".entry") == all[at].npos) {
      module.around.push_back(all[at]);
      continue;
    }
    Body body{name_of(all[at]), all[at].find(".entry") != all[at].npos, {}, {}};
    while (at < all.size() && all[at] != "{" && all[at] != ";") body.head.push_back(all[at++]);
    if (at == all.size() || all[at] == ";") {
      module.declared.emplace(body.name, std::move(body.head));
      continue;
    }
    for (int depth = 1; ++at < all.size();) {
      depth += static_cast<int>(std::count(all[at].begin(), all[at].end(), '{')) -
               static_cast<int>(std::count(all[at].begin(), all[at].end(), '}'));
      if (depth == 0) break;
      body.lines.push_back(all[at]);
    }
    if (body.entry)
      module.entries.push_back(std::move(body));
    else
      module.functions.emplace(body.name, std::move(body));
  }
  return module;
}

/// One entry with all that it calls.
class Inliner {
 public:
  explicit Inliner(const Module& module) : module_(module) {}

  std::string inlined(const Body& entry) {
    for (const std::string_view line : entry.head) result_ += fmt::format("{}\n", line);
    result_ += "{\n";
    body_ = "";
    add(entry, 0, 0, -1, "");
    for (const auto& [name, declared] : registers_)
      result_ += declared.count < 0 ? fmt::format(".reg {} {};\n", declared.type, name)
                                    : fmt::format(".reg {} {}<{}>;\n", declared.type, name, declared.count);
    for (const std::string_view line : shared_) result_ += fmt::format("{}\n", line);
    if (stack_ > 0) result_ += fmt::format(".local .align 16 .b8 __stack[{}];\n", stack_);
    return result_ + body_ + "}\n";
  }

 private:
  struct Declared {
    std::string type;
    int64_t count = -1;  ///< of a numbered family
  };
  /// Where a body stands.
  struct Frame {
    const Body& body;
    int depth;
    int64_t base;                                 ///< of its variables in the stack
    int instance;                                 ///< of the call; -1: the entry
    std::string called;                           ///< ", inlined_at ..."
    std::set<std::string, std::less<>> families;  ///< of registers
    std::vector<int> calls;                       ///< that are open around the line
  };

  void add(const Body& body, int depth, int64_t base, int instance, const std::string& called) {
    Frame frame{body, depth, base, instance, called, {}, {}};
    int64_t size = 0;
    std::string own;  // the line that calls come from
    for (size_t at = 0; at < body.lines.size(); ++at) {
      const std::string_view line = body.lines[at];
      if (line.starts_with(".reg") && line.find('%') != line.npos && line.find("%tmp") == line.npos) {
        declare(line, frame);
      } else if (line.starts_with(".shared")) {
        shared_.insert(line);  // one variable, however often its function is called
      } else if (line.starts_with(".local") && line.find("__local_depot") != line.npos) {
        size = number_in(line, '[');
        stack_ = std::max(stack_, base + size);
      } else if (line.starts_with(".loc")) {
        own = fmt::format("{}{}", line, called);
        body_ += own + '\n';
      } else if (line.starts_with("{") && line.find("callseq") != line.npos) {
        frame.calls.push_back(instances_++);
        body_ += "{\n";
      } else if (line.starts_with("}") && line.find("callseq") != line.npos) {
        frame.calls.pop_back();
        body_ += "}\n";
      } else if (line.starts_with("call")) {
        std::string text;
        while (at < body.lines.size()) {
          text += fmt::format("{} ", body.lines[at]);
          if (body.lines[at].ends_with(";")) break;
          ++at;
        }
        call(text, frame, base + (size + 15) / 16 * 16, own);
      } else {
        statement(line, frame);
      }
    }
    if (instance >= 0) body_ += fmt::format("$L__return_{}:\n", instance);
  }

  void call(const std::string& text, Frame& frame, int64_t base, const std::string& own) {
    const size_t open = text.find('('), close = text.find(')');
    const bool gives = open != text.npos && text.find("retval0") < close;
    const std::string_view name = word_at(text, gives ? close : text.find_first_of(" \t"));
    const auto known = module_.functions.find(name);
    if (known == module_.functions.end()) {
      statement(text, frame);
      return;
    }
    const int instance = frame.calls.back();
    std::string place;
    if (!own.empty()) place = fmt::format(", inlined_at {}", own.substr(5, own.find(',') - 5));
    add(known->second, frame.depth + 1, base, instance, place);
    if (!own.empty()) body_ += own + '\n';
  }

  void declare(std::string_view line, Frame& frame) {
    const size_t percent = line.find('%'), angle = line.find('<');
    const std::string family(word_at(line, percent));
    const std::string type(trimmed(line.substr(4, percent - 4)));
    frame.families.insert(family);
    Declared& known = registers_[renamed(family, frame.depth)];
    known.type = type;
    if (angle != line.npos) known.count = std::max(known.count, number_in(line, '<'));
  }
  static std::string renamed(std::string_view family, int depth) {
    return depth == 0 ? std::string(family) : fmt::format("%d{}{}", depth, family.substr(1));
  }

  /// A statement with the names of its frame.
  void statement(std::string_view line, const Frame& frame) {
    const bool returns = frame.instance >= 0 && line.ends_with("ret;");
    if (returns) {
      const size_t ret = line.rfind("ret;");
      words(line.substr(0, ret), frame);
      body_ += fmt::format("bra $L__return_{};\n", frame.instance);
      return;
    }
    words(line, frame);
    if (line.find("__local_depot") != line.npos && frame.base > 0) {
      const std::string pointer = renamed("%SPL", frame.depth);
      body_ += fmt::format("\nadd.u64 {}, {}, {};", pointer, pointer, frame.base);
    }
    body_ += '\n';
  }
  void words(std::string_view line, const Frame& frame) {
    for (size_t at = 0; at < line.size();) {
      if (!is_word(line[at])) {
        body_ += line[at++];
        continue;
      }
      const std::string_view word = word_at(line, at);
      body_ += in_frame(word, frame);
      at += word.size();
    }
  }
  std::string in_frame(std::string_view word, const Frame& frame) const {
    const auto after = [&](std::string_view start) { return word.substr(start.size()); };
    if (word.starts_with("%")) {
      const std::string_view family = word.substr(0, word.find_last_not_of("0123456789") + 1);
      if (frame.families.contains(family)) return renamed(family, frame.depth) + std::string(after(family));
      return frame.families.contains(word) ? renamed(word, frame.depth) : std::string(word);
    }
    if (word.starts_with("__local_depot")) return "__stack";
    if (word.starts_with("$L") && frame.instance >= 0) return fmt::format("{}_{}", word, frame.instance);
    const bool numbered =
        word.size() > 5 && word.starts_with("param") && word.find_last_not_of("0123456789") == 4;
    if (numbered && !frame.calls.empty()) return fmt::format("p{}_{}", frame.calls.back(), after("param"));
    if (word == "retval0" && !frame.calls.empty()) return fmt::format("r{}", frame.calls.back());
    if (frame.instance < 0) return std::string(word);
    if (word == "func_retval0") return fmt::format("r{}", frame.instance);
    if (word.starts_with(frame.body.name) && after(frame.body.name).starts_with("_param_"))
      return fmt::format("p{}_{}", frame.instance, after(frame.body.name).substr(7));
    return std::string(word);
  }

  const Module& module_;
  std::string result_, body_;
  std::map<std::string, Declared> registers_;
  std::set<std::string_view> shared_;  ///< declarations in bodies
  int64_t stack_ = 0;
  int instances_ = 0;
};

}  // namespace

std::string inline_calls(std::string_view ptx) {
  const Module module = taken_apart(ptx);
  std::string result;
  for (const std::string_view line : module.around) result += fmt::format("{}\n", line);
  for (const auto& [name, head] : module.declared)
    if (!module.functions.contains(name)) result += fmt::format("{};\n", fmt::join(head, "\n"));
  for (const Body& entry : module.entries) result += Inliner(module).inlined(entry);
  return result;
}

}  // namespace assay
