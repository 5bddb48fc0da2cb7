#include "reports/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/finding_parts.h"
#include "reports/html_sections.h"
#include "reports/markup.h"
#include "reports/page_text.h"

namespace assay {
namespace {

using nlohmann::json;

/// Fits inside <script>: no "<" remains, so neither "</script" nor "<!--" can occur.
std::string script_json(const json& data) {
  std::string text = data.dump(-1, ' ', true, json::error_handler_t::replace);
  for (size_t i = 0; (i = text.find('<', i)) != std::string::npos; i += 6) text.replace(i, 1, "\\u003c");
  return text;
}

/// What a page of one kind of result shows at its head, and below.
struct Page {
  std::string title, verdict;
  std::string (*sections)(const json&);
};

std::string names_of(const json& kernels) {
  std::string names;
  for (const json& kernel : kernels) names += (names.empty() ? "" : ", ") + exact_decimal(kernel);
  return kernels.size() <= kKernelsInTitle ? names : fmt::format("{} kernels", kernels.size());
}

std::string fuzz_verdict(const json& run) {
  const json& findings = field_of(run, "findings");
  const bool all_known = std::all_of(findings.begin(), findings.end(), is_known);
  if (!all_known) return "finding";
  if (!text_of(run, "ended_early").empty()) return "incomplete";
  if (!field_or_null(run, "too_few").empty()) return "inconclusive";
  if (!findings.empty()) return "known";
  return count_of(run, "undecided") > 0 ? "undecided" : "pass";
}

std::string sweep_verdict(const json& sweep) {
  std::string verdict = "pass";
  for (const json& cell : field_of(sweep, "cells")) {
    const std::string own = text_of(cell, "verdict");
    if (own == "finding") return own;
    if (own == "undecided") verdict = own;
  }
  return verdict;
}

/// Of the latest run.
std::string trend_verdict(const json& trend) {
  const json& runs = field_of(trend, "runs");
  if (!runs.empty() && count_of(runs.back(), "findings") > 0) return "finding";
  return runs.empty() || count_of(runs.back(), "undecided") > 0 ? "undecided" : "pass";
}

Page page_of(const json& result) {
  const std::string kind = result_kind(result);
  if (kind == "trend") return {"trend", trend_verdict(result), html::trend_sections};
  if (kind == "fuzz")
    return {"fuzz " + names_of(field_of(result, "kernels")), fuzz_verdict(result), html::fuzz_sections};
  if (kind == "sweep")
    return {"sweep " + names_of(field_of(result, "kernels")), sweep_verdict(result), html::sweep_sections};
  return {text_of(result, "kernel"), text_of(result, "verdict"),
          [](const json& run) { return html::verification_sections(run, "", 2); }};
}

std::string tool_line(const json& result) {
  const auto tool = result.find("tool");
  if (tool == result.end()) return "assay";
  if (!tool->is_object()) return "assay " + escape_markup(exact_decimal(*tool));
  return escape_markup(fmt::format("assay {} {}", text_of(*tool, "version"), text_of(*tool, "commit")));
}

}  // namespace

std::string render_html(const json& result) {
  const auto [name, verdict, sections] = page_of(result);
  const std::string title = escape_markup(name);

  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<title>assay: {}: {}</title>\n<style>\n", title, escape_markup(verdict));
  page += text::style();
  page += "</style>\n</head>\n<body>\n<header class=\"top\">\n";
  page += fmt::format("<h1>{} {}</h1>\n", title, html::verdict_badge(verdict));
  page += "</header>\n<main>\n";
  page += sections(result);
  page += fmt::format(
      "</main>\n<footer>{}, result schema {}. The numbers of this page stand in full in "
      "<code>result.json</code> beside it. Ratios are error divided by the proved bound: a value of a "
      "correct "
      "kernel is never above 1.</footer>\n",
      tool_line(result), count_of(result, "schema"));
  page += fmt::format("<script type=\"application/json\" id=\"result\">{}</script>\n<script>\n",
                      script_json(html::chart_data(result)));
  page += text::vega();
  page += "</script>\n<script>\n";
  page += text::charts();
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace assay
