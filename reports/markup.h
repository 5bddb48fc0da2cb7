// Text and numbers as they stand in a report. Values come from a result's JSON: a number, or "nan", "inf",
// "-inf".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace assay {

/// Safe in HTML and XML text and in quoted attributes: markup characters become references; what is no valid
/// UTF-8 or no XML 1.0 character becomes U+FFFD.
std::string escape_markup(std::string_view text);
/// Safe in a Markdown table cell or paragraph: one line, markup characters escaped.
std::string escape_markdown(std::string_view text);

/// Shortest decimal that reads back to the same double; integers without a point; "nan", "inf", "-inf".
std::string exact_decimal(const nlohmann::json& value);
/// Four significant digits, for reading; integers in full.
std::string short_decimal(const nlohmann::json& value);
/// Hexadecimal floating point, exact: "0x1.9p+6".
std::string hex_float(const nlohmann::json& value);
/// 1234567 -> "1 234 567" with thin spaces (U+2009).
std::string grouped(const nlohmann::json& value);
/// <data value="EXACT">SHORT</data>
std::string number_markup(const nlohmann::json& value);
/// "1 case", "3 cases".
std::string counted(int64_t n, const char* one, const char* more);
/// A share as the console says it: "98 %" of 0.98; of what is no number "0 %".
std::string percent(const nlohmann::json& share);

/// "verification", "fuzz", "sweep" or "trend". Throws BadInput where the document is none, or of another
/// schema than this program's.
std::string result_kind(const nlohmann::json& result);
/// Field of an object; throws BadInput naming the field where it is missing: the document is not a result.
const nlohmann::json& field_of(const nlohmann::json& object, std::string_view name);
/// Field of an object; null where it is absent (older documents).
const nlohmann::json& field_or_null(const nlohmann::json& object, std::string_view name);
/// The findings of a verification's checks; an empty list where none ran (older results have no such field).
const nlohmann::json& check_findings(const nlohmann::json& verification);
/// Text field, empty where it is absent or null.
std::string text_of(const nlohmann::json& object, std::string_view name);
/// Whole-number field, 0 where it is absent or null.
int64_t count_of(const nlohmann::json& object, std::string_view name);
/// "kernels/gla/chunk.cu:142 (PTX line 903)" of a SourceLocation; "" where nothing is known.
std::string location_text(const nlohmann::json& where);

}  // namespace assay
