#include "reports/markup.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/numerics/bad_input.h"
#include "src/result/document.h"

namespace assay {
namespace {

using nlohmann::json;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length in bytes of the well-formed UTF-8 character at `text[i]` (Unicode 15, table 3-7); 0 if there is
/// none.
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : 0u; };
  const auto tail = [&](size_t k) { return (byte(k) & 0xc0u) == 0x80u; };
  const uint32_t b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
  if (b >= 0xe0 && b <= 0xef) {
    const bool overlong = b == 0xe0 && byte(1) < 0xa0, surrogate = b == 0xed && byte(1) > 0x9f;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (b >= 0xf0 && b <= 0xf4) {
    const bool overlong = b == 0xf0 && byte(1) < 0x90, beyond = b == 0xf4 && byte(1) > 0x8f;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

/// What is no finite number is shown as it stands ("nan", "inf"); null as a dash.
bool shown_as_it_stands(const json& value, std::string* text) {
  if (value.is_null())
    *text = "-";
  else if (value.is_string())
    *text = value.get<std::string>();
  else if (value.is_boolean())
    *text = value.get<bool>() ? "yes" : "no";
  else if (value.is_number_integer())
    *text = value.dump();
  else
    return false;
  return true;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    const char c = text[i];
    // U+FFFE and U+FFFF are no XML characters.
    const bool noncharacter =
        length == 3 && text.substr(i, 2) == "\xEF\xBF" && static_cast<uint8_t>(text[i + 2]) >= 0xbe;
    const bool control = (static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
    if (length == 0 || noncharacter || control)
      out += kReplacement;
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    const char c = text[i];
    if (length == 0)
      out += kReplacement;
    else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f)
      out += ' ';
    else if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (std::string_view("\\`*_[]|~#").find(c) != std::string_view::npos)
      (out += '\\') += c;
    else
      out += text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string exact_decimal(const json& value) {
  std::string text;
  return shown_as_it_stands(value, &text) ? text : fmt::format("{}", value.get<double>());
}

std::string short_decimal(const json& value) {
  std::string text;
  return shown_as_it_stands(value, &text) ? text : fmt::format("{:.4g}", value.get<double>());
}

std::string hex_float(const json& value) {
  const double x = number_of(value);
  return std::isfinite(x) ? fmt::format("{:a}", x) : exact_decimal(value);
}

std::string grouped(const json& value) {
  const std::string digits = exact_decimal(value);
  if (digits.size() < 5 || !value.is_number_integer()) return digits;
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') out += "\xE2\x80\x89";
    out += digits[i];
  }
  return out;
}

std::string number_markup(const json& value) {
  if (value.is_null()) return "<span class=\"muted\">-</span>";
  const std::string shown = value.is_number_integer() ? grouped(value) : short_decimal(value);
  return fmt::format("<data value=\"{}\">{}</data>", escape_markup(exact_decimal(value)),
                     escape_markup(shown));
}

std::string counted(int64_t n, const char* one, const char* more) {
  return fmt::format("{} {}", n, n == 1 ? one : more);
}

std::string percent(const json& share) {
  return fmt::format("{:.0f} %", share.is_number() ? 100 * share.get<double>() : 0);
}

std::string result_kind(const json& result) {
  const std::string kind = text_of(result, "kind");
  if (kind != "verification" && kind != "fuzz" && kind != "sweep" && kind != "trend") {
    throw BadInput(
        fmt::format("result: kind '{}' has no page, only 'verification' (verify, trace, check), "
                    "'fuzz', 'sweep' and 'trend' have: what mutate and defects found is what they print",
                    kind));
  }
  if (field_of(result, "schema") != kResultSchema) {
    throw BadInput(
        fmt::format("result: of schema {}, this program reads schema {}: write it again with this program",
                    text_of(result, "schema"), kResultSchema));
  }
  return kind;
}

const json& field_of(const json& object, std::string_view name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || it == object.end()) {
    throw BadInput(fmt::format(
        "result: no field '{}': not a result of this version of assay; write it again with --json", name));
  }
  return *it;
}

const json& field_or_null(const json& object, std::string_view name) {
  static const json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

const json& check_findings(const json& verification) {
  static const json none = json::array();
  const auto checks = verification.find("checks");
  return checks == verification.end() || checks->is_null() ? none : field_of(*checks, "findings");
}

std::string text_of(const json& object, std::string_view name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || it == object.end() || it->is_null()) return "";
  return exact_decimal(*it);
}

int64_t count_of(const json& object, std::string_view name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || it == object.end() || !it->is_number_integer()) return 0;
  return it->get<int64_t>();
}

std::string location_text(const json& where) {
  const std::string file = text_of(where, "file"), function = text_of(where, "function");
  const int64_t line = count_of(where, "line"), ptx_line = count_of(where, "ptx_line");
  std::string out;
  if (!file.empty()) out = line > 0 ? fmt::format("{}:{}", file, line) : file;
  if (!function.empty()) out += fmt::format("{}{}", out.empty() ? "" : ", ", function);
  if (ptx_line > 0) out += fmt::format("{}PTX line {}", out.empty() ? "" : ", ", ptx_line);
  return out;
}

}  // namespace assay
