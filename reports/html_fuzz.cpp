// The sections of a fuzz run, and the data of a page's charts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/finding_parts.h"
#include "reports/html_sections.h"
#include "reports/html_table.h"
#include "reports/markup.h"

namespace assay::html {
namespace {

using nlohmann::json;

std::string tiles(const json& run) {
  std::string out = "<dl class=\"tiles\">\n";
  const auto tile = [&](std::string_view name, const std::string& markup, bool bad) {
    out += fmt::format("<div><dt>{}</dt><dd{}>{}</dd></div>\n", name, bad ? " class=\"bad\"" : "", markup);
  };
  const json& findings = field_of(run, "findings");
  const auto known = static_cast<size_t>(std::count_if(findings.begin(), findings.end(), is_known));
  const json& baseline = field_or_null(run, "baseline");
  tile("cases", number_markup(field_of(run, "cases")), false);
  tile("passed", number_markup(field_of(run, "passed")), false);
  const int64_t failed =
      count_of(run, "cases") - count_of(run, "passed") - count_of(run, "undecided") - count_of(run, "domain");
  tile("failed", number_markup(json(failed)), failed > 0);
  if (baseline.is_null()) {
    tile("findings", number_markup(json(findings.size())), !findings.empty());
  } else {
    tile("new findings", number_markup(json(findings.size() - known)), findings.size() > known);
    tile("known", number_markup(json(known)), false);
    tile("gone", number_markup(json(field_of(baseline, "gone").size())), false);
  }
  tile("undecided", number_markup(field_of(run, "undecided")), count_of(run, "undecided") > 0);
  tile("out of domain", number_markup(field_of(run, "domain")), false);
  return out + "</dl>\n";
}

/// The largest error over bound of each of a kernel's rows, as bars: full height is the bound.
std::string sparkline(const std::vector<double>& ratios) {
  constexpr double kHeight = 20, kStep = 4, kBar = 3;
  constexpr size_t kMost = 30;  // the largest
  std::string within, beyond;
  const size_t shown = std::min(ratios.size(), kMost);
  for (size_t i = 0; i < shown; ++i) {
    const double height = std::isfinite(ratios[i]) ? std::clamp(ratios[i], 0.02, 1.0) * kHeight : kHeight;
    (ratios[i] <= 1 ? within : beyond) += fmt::format(
        "M{:g} {:g}v-{:.1f}h{:g}V{:g}z", kStep * static_cast<double>(i), kHeight, height, kBar, kHeight);
  }
  const double width = kStep * static_cast<double>(std::max<size_t>(shown, 1));
  std::string out = fmt::format(
      "<svg class=\"spark\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" role=\"img\" "
      "aria-label=\"error over bound of each output, format, decay and length\">",
      width, kHeight);
  if (!within.empty()) out += fmt::format("<path fill=\"currentColor\" d=\"{}\"></path>", within);
  if (!beyond.empty())
    out += fmt::format("<path class=\"bad\" fill=\"currentColor\" d=\"{}\"></path>", beyond);
  return out + "</svg>";
}

/// What a reader of the first screen wants: of each kernel its cases, its worst error over bound, its
/// findings.
std::string kernels_section(const json& run) {
  std::map<std::string, std::string> formats;  // of the run, as they are shown
  for (const json& row : field_of(run, "tightness"))
    formats.try_emplace(text_of(row, "dtype"), escape_markup(text_of(row, "dtype")));
  std::string rows;
  for (const json& name : field_of(run, "kernels")) {
    const std::string kernel = exact_decimal(name);
    json cases, worst;
    for (const json& row : field_of(run, "coverage"))
      if (text_of(row, "feature") == "kernel" && text_of(row, "value") == kernel)
        cases = field_of(row, "cases");
    std::vector<double> ratios;
    std::map<std::string, json> of_format;  // its largest
    int64_t undecided = 0;
    std::string at;
    for (const json& row : field_of(run, "tightness")) {
      if (text_of(row, "kernel") != kernel) continue;
      undecided += count_of(row, "undecided");
      if (count_of(row, "cases") == 0) continue;
      const json& ratio = field_of(row, "max_ratio");
      const auto size_of = [](const json& x) { return x.is_number() ? x.get<double>() : HUGE_VAL; };
      const double value = size_of(ratio);
      const auto [known, is_new] = of_format.try_emplace(text_of(row, "dtype"), ratio);
      if (!is_new && value > size_of(known->second)) known->second = ratio;
      if (ratios.empty() || value > *std::max_element(ratios.begin(), ratios.end())) {
        worst = ratio;
        at = fmt::format("{} {}", text_of(row, "output"), text_of(row, "dtype"));
        if (text_of(row, "decay") != "none") at += ", decay " + text_of(row, "decay");
        at += ", " + text_of(row, "length_class");
      }
      ratios.push_back(value);
    }
    std::sort(ratios.rbegin(), ratios.rend());
    const json& findings = field_of(run, "findings");
    const auto found = std::count_if(findings.begin(), findings.end(), [&](const json& finding) {
      return text_of(finding, "kernel") == kernel;
    });
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(kernel))) + number_cell(cases) +
            number_cell(worst, worst.is_number() && worst.get<double>() > 1);
    for (const auto& [dtype, shown] : formats)
      rows += of_format.contains(dtype) ? number_cell(of_format.at(dtype)) : text_cell("-");
    rows += "<td>" + sparkline(ratios) + "</td>" + text_cell(at) + number_cell(json(undecided)) +
            number_cell(json(found), found > 0) + "</tr>\n";
  }
  std::vector<Column> columns{{"kernel"}, {"cases", true}, {"worst error/bound", true}};
  for (const auto& [dtype, shown] : formats) columns.push_back({shown, true});
  columns.insert(columns.end(),
                 {{"all, the largest first"}, {"worst at"}, {"outputs undecided", true}, {"findings", true}});
  return table("", columns, rows);
}

/// What was checked of each kernel, and failed.
std::string kernel_properties_section(const json& run) {
  const json& list = field_or_null(run, "kernel_properties");
  if (!list.is_array() || list.empty()) return "";
  std::string rows;
  for (const json& row : list)
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(row, "kernel")))) +
            text_cell(text_of(row, "name")) + number_cell(field_of(row, "checked")) +
            number_cell(field_of(row, "failed"), count_of(row, "failed") > 0) + "</tr>\n";
  return "<details><summary>By kernel</summary>" +
         table("", {{"kernel"}, {"property"}, {"checked", true}, {"failed", true}}, rows) + "</details>\n";
}

std::string finding_row(const json& finding, const std::string& number) {
  return "<tr><td>" + number + "</td>" +
         row_head(fmt::format("<code>{}</code>", escape_markup(text_of(finding, "kernel")))) +
         fmt::format("<td>{}</td>", verdict_badge(text_of(finding, "verdict"))) +
         fmt::format("<td><b>{}</b>{}<br>{}</td>", escape_markup(rule_of(finding).name),
                     is_known(finding) ? " (known)" : "", escape_markup(headline_of(finding))) +
         fmt::format("<td><code>{}</code></td></tr>\n", escape_markup(text_of(finding, "replay")));
}

/// What the baseline has and this run has not.
std::string gone_section(const json& run) {
  const json& baseline = field_or_null(run, "baseline");
  if (baseline.is_null() || field_of(baseline, "gone").empty()) return "";
  std::string rows;
  for (const json& gone : field_of(baseline, "gone"))
    rows += "<tr>" + row_head(fmt::format("<code>{}</code>", escape_markup(text_of(gone, "kernel")))) +
            text_cell(text_of(gone, "cause")) + text_cell(text_of(gone, "outcome")) +
            fmt::format("<td><code>{}</code></td></tr>\n", escape_markup(text_of(gone, "replay")));
  return fmt::format("<details><summary>Gone since {}</summary>\n",
                     escape_markup(text_of(baseline, "source"))) +
         table("", {{"kernel"}, {"cause"}, {"its case now"}, {"replay"}}, rows) + "</details>\n";
}

/// A single finding stands open; among several the reader chooses.
std::string findings_section(const json& findings) {
  if (findings.empty()) return "<p>No finding.</p>\n";
  std::string rows, bodies;
  for (size_t i = 0; i < findings.size(); ++i) {
    const bool full = i < kFindingsInFull;
    const std::string link = fmt::format("<a href=\"#finding-{0}\">{0}</a>", i + 1);
    rows += finding_row(findings[i], full ? link : fmt::format("{}", i + 1));
    if (!full) continue;
    bodies += fmt::format(
        "<details id=\"finding-{0}\"{1}><summary><b>{0}</b> <code>{2}</code> {3}</summary>\n{4}</details>\n",
        i + 1, findings.size() == 1 ? " open" : "", escape_markup(text_of(findings[i], "kernel")),
        escape_markup(rule_of(findings[i]).name),
        verification_sections(findings[i], fmt::format("/findings/{}", i), 3));
  }
  if (findings.size() == 1) return bodies;  // it says all that a row would
  std::string out = table("", {{"no.", true}, {"kernel"}, {"verdict"}, {"what"}, {"replay"}}, rows) + bodies;
  if (findings.size() > kFindingsInFull) {
    out += fmt::format(
        "<p>The first {} of {} findings are shown in full; all are in <code>result.json</code>, and each "
        "replays.</p>\n",
        kFindingsInFull, findings.size());
  }
  return out;
}

std::string properties_section(const json& properties) {
  std::string rows;
  for (const json& row : properties) {
    rows += "<tr>" + row_head(escape_markup(text_of(row, "name"))) + number_cell(field_of(row, "checked"));
    rows += number_cell(field_of(row, "failed"), count_of(row, "failed") > 0) + "</tr>\n";
  }
  return table("", {{"property"}, {"checked", true}, {"failed", true}}, rows);
}

std::string tightness_table(const json& tightness) {
  std::string rows;
  for (const json& row : tightness) {
    rows += "<tr>";
    for (const char* name : {"kernel", "output", "dtype", "decay", "length_class"})
      rows += text_cell(text_of(row, name));
    for (const char* name : {"cases", "undecided"}) rows += number_cell(json(count_of(row, name)));
    for (const char* name : {"max_ratio", "max_tightness", "max_relative_bound"})
      rows += count_of(row, "cases") > 0 ? number_cell(field_of(row, name)) : text_cell("-");
    rows += "</tr>\n";
  }
  return fmt::format("<details><summary>All {} rows as a table</summary>", tightness.size()) +
         table("",
               {{"kernel"},
                {"output"},
                {"format"},
                {"decay"},
                {"length"},
                {"cases", true},
                {"undecided", true},
                {"ratio", true},
                {"tightness", true},
                {"bound", true}},
               rows) +
         "</details>\n";
}

std::string tightness_section(const json& tightness) {
  std::string out =
      "<p>Tightness: the largest error over bound among all cases before the output itself is rounded. Near "
      "1 the bound "
      "is tight, far below it is loose, or the kernel better than it declares. Above 1 the error over bound "
      "of the "
      "first table is a fault. Outputs of cases with an element that the bound is too wide to judge are "
      "counted "
      "as undecided, and are in no maximum.</p>\n";
  std::vector<std::string> kernels;
  for (const json& row : tightness) {
    const std::string kernel = text_of(row, "kernel");
    if (count_of(row, "cases") == 0) continue;  // nothing of it to draw
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
  }
  for (const std::string& kernel : kernels) {
    const std::string name = escape_markup(kernel);
    out += fmt::format(
        "<figure data-chart=\"tightness\" data-at=\"/tightness\" "
        "data-kernel=\"{0}\"><figcaption><b><code>{0}</code></b>: output, format and length against decay "
        "profile"
        "</figcaption><div class=\"canvas\" role=\"img\" aria-label=\"heat map of tightness of {0}: see the "
        "table below\"></div></figure>\n",
        name);
  }
  return out + tightness_table(tightness);
}

/// One small table per feature; a bar shows the share of all cases.
std::string coverage_section(const json& coverage, int64_t cases) {
  std::vector<std::string> features;
  std::map<std::string, std::string> rows;
  for (const json& row : coverage) {
    const std::string feature = text_of(row, "feature");
    if (rows.count(feature) == 0) features.push_back(feature);
    const double share =
        cases > 0 ? std::min(1.0, static_cast<double>(count_of(row, "cases")) / static_cast<double>(cases))
                  : 0;
    rows[feature] += "<tr>" + row_head(escape_markup(text_of(row, "value"))) +
                     number_cell(field_of(row, "cases")) +
                     fmt::format(
                         "<td class=\"number\">{0:.1f} %</td><td class=\"bar\"><span class=\"share\" "
                         "style=\"width:{0:.1f}%\"></span></td></tr>\n",
                         100 * share);
  }
  std::string out = "<div class=\"coverage\">\n";
  for (const std::string& feature : features) {
    out += fmt::format("<div><h3>{}</h3>\n", escape_markup(feature)) +
           table("", {{"value"}, {"cases", true}, {"share", true}, {""}}, rows[feature]) + "</div>\n";
  }
  return out + "</div>\n";
}

std::string reached_section(const json& reached) {
  std::string rows;
  for (const json& row : reached)
    rows += "<tr>" + row_head(escape_markup(text_of(row, "kernel"))) + "<td>" +
            escape_markup(text_of(row, "what")) + "</td>" + number_cell(field_of(row, "reached")) +
            number_cell(field_of(row, "of")) + "</tr>\n";
  return table("", {{"kernel"}, {"what"}, {"reached", true}, {"of", true}}, rows);
}

/// A field short enough to draw: each point the largest of its neighbours, a non-finite one first.
json folded(const json& field) {
  const json& values = field_of(field, "max_ratio");
  const size_t per = (values.size() + kPointsPerField - 1) / kPointsPerField;
  json out = {{"axis", field_of(field, "axis")},
              {"elements_per_point", std::max<size_t>(per, 1)},
              {"max_ratio", json::array()}};
  for (size_t i = 0; i < values.size(); i += per) {
    json largest = values[i];
    for (size_t j = i + 1; j < std::min(i + per, values.size()); ++j) {
      if (largest.is_string()) break;
      if (values[j].is_string() || values[j] > largest) largest = values[j];
    }
    out["max_ratio"].push_back(std::move(largest));
  }
  return out;
}

json outputs_data(const json& outputs) {
  json out = json::array();
  for (const json& output : outputs) {
    json fields = json::array();
    for (const json& field : field_of(output, "fields")) fields.push_back(folded(field));
    out.push_back({{"histogram", field_of(output, "histogram")}, {"fields", std::move(fields)}});
  }
  return out;
}

}  // namespace

json chart_data(const json& result) {
  const std::string kind = text_of(result, "kind");
  if (kind == "sweep") {
    json data = sweep_chart_data(result);
    data["worst"] = json::array();
    for (const json& run : field_of(result, "worst"))
      data["worst"].push_back({{"outputs", outputs_data(field_of(run, "outputs"))}});
    return data;
  }
  if (kind == "trend") return {{"runs", field_of(result, "runs")}};
  if (kind != "fuzz") return {{"outputs", outputs_data(field_of(result, "outputs"))}};
  json findings = json::array();
  for (const json& finding : field_of(result, "findings")) {
    if (findings.size() == kFindingsInFull) break;
    findings.push_back({{"outputs", outputs_data(field_of(finding, "outputs"))}});
  }
  return {{"tightness", field_of(result, "tightness")}, {"findings", std::move(findings)}};
}

std::string fuzz_sections(const json& run) {
  std::string out;
  if (const std::string why = shortfall_of(run); !why.empty())
    out += fmt::format("<div class=\"callout\"><p class=\"lead\">Not a pass: {}</p></div>\n",
                       escape_markup(why));
  out += tiles(run) + kernels_section(run);
  out += fmt::format("<dl class=\"facts\"><dt>backend</dt><dd>{}</dd><dt>seed</dt><dd class=\"mono\">{}</dd>",
                     escape_markup(text_of(run, "backend")), escape_markup(text_of(run, "seed")));
  if (const json& checkout = field_or_null(run, "checkout"); checkout.is_object())
    out += fmt::format(
        "<dt>sources</dt><dd class=\"mono\">{}{}{}</dd>",
        escape_markup(text_of(checkout, "commit").substr(0, 12)),
        text_of(checkout, "branch").empty() ? "" : " " + escape_markup(text_of(checkout, "branch")),
        field_of(checkout, "dirty") == true ? ", changed" : "");
  out += fact("seconds", number_markup(field_of(run, "seconds")));
  if (count_of(run, "min_cases") > 0)
    out += fact("cases of each kernel, at least", number_markup(field_of(run, "min_cases")));
  if (count_of(run, "not_shrunk") > 0)
    out += fact("findings kept as found", number_markup(field_of(run, "not_shrunk")));
  out += "</dl>\n";
  out +=
      "<nav aria-label=\"Sections\"><a href=\"#findings\">Findings</a><a "
      "href=\"#properties\">Properties</a><a href=\"#tightness\">Error against bound</a><a "
      "href=\"#coverage\">Coverage</a></nav>\n";
  out +=
      "<h2 id=\"findings\">Findings</h2>\n" + findings_section(field_of(run, "findings")) + gone_section(run);
  out += "<h2 id=\"properties\">Properties</h2>\n" + properties_section(field_of(run, "properties")) +
         kernel_properties_section(run);
  out += "<h2 id=\"tightness\">Error against bound</h2>\n" + tightness_section(field_of(run, "tightness"));
  out += "<h2 id=\"coverage\">Coverage</h2>\n" +
         coverage_section(field_of(run, "coverage"), count_of(run, "cases")) +
         reached_section(field_of(run, "reached"));
  return out;
}

}  // namespace assay::html
