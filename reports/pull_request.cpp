#include "reports/pull_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/finding_parts.h"
#include "reports/markup.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr size_t kRows = 50;           ///< of a table; further ones are counted
constexpr size_t kLineBytes = 2'000;   ///< of one text: a token can be long
constexpr size_t kClosingBytes = 400;  ///< kept for what is said after the details

/// At most kLineBytes, cut between characters.
std::string cut(std::string text) {
  if (text.size() <= kLineBytes) return text;
  size_t end = kLineBytes;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + " ...";
}

std::string code(const std::string& text) {
  return fmt::format("<code>{}</code>", escape_markup(text));
}

/// For a table cell: markup as HTML, which holds whatever the text is.
std::string cell(const std::string& text) {
  if (text.empty()) return "";
  std::string out = code(cut(text));
  for (size_t at = out.find('|'); at != std::string::npos; at = out.find('|', at + 5))
    out.replace(at, 1, "&#124;");
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

std::string place_text(const json& v) {
  const json place = place_of(v);
  if (place.is_null()) return "";
  const int64_t line = count_of(place, "line");
  return line > 0 ? fmt::format("{}:{}", text_of(place, "file"), line) : text_of(place, "file");
}

/// "new" and "known" only where there was a baseline to know from.
std::string state_of(const json& v) {
  if (text_of(v, "verdict") != "finding") return text_of(v, "verdict");
  if (!v.contains("known") || v["known"].is_null()) return "finding";
  return is_known(v) ? "known" : "**new**";
}

std::string heading(const json& result, const std::vector<const json*>& findings) {
  const auto known = static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [](auto* v) { return is_known(*v); }));
  std::string out = "### assay: ";
  const std::string shortfall = shortfall_of(result);
  if (!shortfall.empty()) out += text_of(result, "ended_early").empty() ? "inconclusive, " : "incomplete, ";
  out += findings.empty() ? "no finding"
         : known == findings.size()
             ? "no new finding"
             : counted(static_cast<int64_t>(findings.size() - known), known ? "new finding" : "finding",
                       known ? "new findings" : "findings");
  if (known > 0) out += fmt::format(", {} known", known);
  if (text_of(result, "kind") != "fuzz") return out + "\n\n";
  out += fmt::format("\n\n{} of {} on {}, {} s, seed {}: {} passed, {} undecided, {} out of domain.\n\n",
                     counted(count_of(result, "cases"), "case", "cases"),
                     counted(static_cast<int64_t>(field_of(result, "kernels").size()), "kernel", "kernels"),
                     escape_markdown(text_of(result, "backend")), short_decimal(field_of(result, "seconds")),
                     text_of(result, "seed"), short_decimal(field_of(result, "passed")),
                     short_decimal(field_of(result, "undecided")), short_decimal(field_of(result, "domain")));
  if (const json& checkout = field_or_null(result, "checkout"); checkout.is_object())
    out += fmt::format(
        "Of {}{}{}.\n\n", code(text_of(checkout, "commit").substr(0, 12)),
        text_of(checkout, "branch").empty() ? "" : " on " + code(cut(text_of(checkout, "branch"))),
        field_of(checkout, "dirty") == true ? ", with changes" : "");
  if (!shortfall.empty()) out += fmt::format("**Not a pass**: {}.\n\n", escape_markdown(cut(shortfall)));
  return out;
}

/// Rows as far as they fit; then how many more there are.
std::string first_rows(const std::vector<std::string>& all, size_t bytes, const char* more) {
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == kRows || out.size() + all[i].size() > bytes)
      return out + fmt::format(fmt::runtime(more), all.size() - i);
    out += all[i];
  }
  return out;
}

std::string table(const std::vector<const json*>& findings) {
  std::vector<std::string> lines;
  for (const json* v : findings)
    lines.push_back(fmt::format("| {} | {} | {} | {} |\n", state_of(*v), cell(text_of(*v, "kernel")),
                                cell(rule_of(*v).name), cell(place_text(*v))));
  return "| | kernel | what | where |\n|---|---|---|---|\n" +
         first_rows(lines, kCommentBytes / 3, "| | | and {} more | |\n") + "\n";
}

/// `\n\n` inside the element lets the host render Markdown there. A replay line stands in a block with a
/// fence longer than any run of backticks in it.
std::string details(const json& v) {
  std::string replay = cut(text_of(v, "replay"));
  std::replace(replay.begin(), replay.end(), '\n', ' ');
  const std::string fence = replay.find("```") == std::string::npos ? "```" : std::string(replay.size(), '`');
  std::string out =
      fmt::format("<details><summary>{} {}: {}</summary>\n\n", state_of(v) == "known" ? "known" : "",
                  code(text_of(v, "kernel")), escape_markup(cut(text_of(v, "cause"))));
  out += escape_markdown(cut(headline_of(v))) + "\n\n";
  for (const json& cause : field_of(v, "diagnosis")) {
    out += fmt::format("**{}**: {}\n\n", escape_markdown(text_of(cause, "cause")),
                       escape_markdown(cut(text_of(cause, "explanation"))));
    break;  // the first by rank; the report has all
  }
  for (const json& other : field_or_null(v, "also"))
    out += fmt::format("- the same defect: {}\n", escape_markdown(cut(text_of(other, "sentence"))));
  if (out.ends_with("\n") && !out.ends_with("\n\n")) out += "\n";
  return out + fence + "\n" + replay + "\n" + fence + "\n\n</details>\n\n";
}

std::string gone_part(const json& result) {
  const auto baseline = result.find("baseline");
  if (baseline == result.end() || baseline->is_null()) return "";
  const json& gone = field_of(*baseline, "gone");
  if (gone.empty()) return "";
  std::vector<std::string> lines;
  for (const json& finding : gone)
    lines.push_back(fmt::format("- {} {} ({})\n", code(text_of(finding, "kernel")),
                                escape_markdown(cut(text_of(finding, "cause"))),
                                escape_markdown(cut(text_of(finding, "outcome")))));
  return "Gone since the baseline:\n\n" + first_rows(lines, kCommentBytes / 6, "- and {} more\n") + "\n";
}

}  // namespace

std::string render_pull_request(const json& result) {
  const std::vector<const json*> findings = findings_in(result);
  std::string out = heading(result, findings);
  if (!findings.empty()) out += table(findings);
  const auto of_a_file = [](const json* v) {
    return text_of(*v, "replay").find(" --ptx ") != std::string::npos;
  };
  if (std::any_of(findings.begin(), findings.end(), of_a_file))
    out += "Build the PTX that a replay line names before running it.\n\n";
  out += gone_part(result);
  size_t shown = 0;
  for (; shown < findings.size(); ++shown) {
    const std::string next = details(*findings[shown]);
    if (out.size() + next.size() > kCommentBytes - kClosingBytes) break;
    out += next;
  }
  if (shown < findings.size())
    out += fmt::format("{} of {} findings are shown in full; the JSON result has all.\n", shown,
                       findings.size());
  return out;
}

}  // namespace assay
