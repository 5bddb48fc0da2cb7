#include "tests/reports/well_formed.h"

#include <algorithm>
#include <set>

namespace assay::test {
namespace {

const std::set<std::string> kVoid = {"meta", "br", "hr", "img", "link", "input"};

class Reader {
 public:
  Reader(std::string_view text, bool html) : text_(text), html_(html) {}

  std::vector<Element> read(std::string* error) {
    while (error_.empty() && at_ < text_.size()) text_[at_] == '<' ? tag() : character();
    if (error_.empty() && !open_.empty()) fail("<" + open_.back() + "> is not closed");
    *error = error_;
    return elements_;
  }

 private:
  void fail(const std::string& what) {
    if (error_.empty())
      error_ = what + " near '" + std::string(text_.substr(at_ < 30 ? 0 : at_ - 30, 70)) + "'";
  }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  void character() {
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c < 0x20 && c != '\n' && c != '\t') return fail("control character");
    if (c == '>') return fail("bare '>'");
    const size_t start = at_;
    if (c == '&') {
      const std::string_view reference = text_.substr(at_, text_.find(';', at_) - at_ + 1);
      static const std::set<std::string_view> known = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      if (known.count(reference) == 0) return fail("unknown reference");
      at_ += reference.size();
    } else {
      ++at_;
    }
    if (!elements_.empty()) elements_.back().text += text_.substr(start, at_ - start);
  }

  std::string name() {
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-'))
      ++at_;
    if (at_ == start) fail("name expected");
    return std::string(text_.substr(start, at_ - start));
  }

  void tag() {
    if (html_ && take("<!doctype html>")) return;
    if (!html_ && at_ == 0 && take("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")) return;
    if (take("</")) {
      const std::string closed = name();
      if (open_.empty() || open_.back() != closed)
        return fail("</" + closed + "> closes <" + (open_.empty() ? "" : open_.back()) + ">");
      open_.pop_back();
      if (!take(">")) fail("'>' expected");
      return;
    }
    take("<");
    elements_.push_back({name(), {}, ""});
    attributes();
    const std::string opened = elements_.back().name;
    if (!error_.empty() || (!html_ && take("/>"))) return;
    if (!take(">")) return fail("'>' expected");
    if (html_ && kVoid.count(opened) > 0) return;
    open_.push_back(opened);
    if (html_ && (opened == "script" || opened == "style")) {
      const size_t end = text_.find("</", at_);
      elements_.back().text = text_.substr(at_, end - at_);
      at_ = end;
    }
  }

  void attributes() {
    for (skip_blanks(); error_.empty() && at_ < text_.size() && text_[at_] != '>' && text_[at_] != '/';
         skip_blanks()) {
      const std::string key = name();
      if (!elements_.back().attribute(key).empty()) return fail("attribute twice");
      std::string value;
      if (take("=\"")) {
        const size_t end = text_.find('"', at_);
        value = text_.substr(at_, end - at_);
        if (value.find('<') != std::string::npos) return fail("'<' in an attribute");
        at_ = end + 1;
      } else if (!html_) {
        return fail("attribute without a quoted value");
      }
      elements_.back().attributes.emplace_back(key, value);
    }
  }

  std::string_view text_;
  bool html_;
  size_t at_ = 0;
  std::string error_;
  std::vector<std::string> open_;
  std::vector<Element> elements_;
};

}  // namespace

std::string Element::attribute(std::string_view name) const {
  const auto it = std::find_if(attributes.begin(), attributes.end(),
                               [&](const auto& pair) { return pair.first == name; });
  return it == attributes.end() ? "" : it->second;
}

std::vector<Element> read_markup(std::string_view document, bool html, std::string* error) {
  return Reader(document, html).read(error);
}

}  // namespace assay::test
