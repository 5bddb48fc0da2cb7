// A result in every form, as files of one folder.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace assay {

/// Writes index.html, report.md, table.csv, result.json, and junit.xml and findings.sarif, or for a sweep or
/// a trend the pictures of its report.md, into `out_dir`, which is made where it is missing. Throws BadInput
/// naming the file that cannot be written, and before writing anything where the document is no result.
void write_report(const nlohmann::json& result, const std::filesystem::path& out_dir);

}  // namespace assay
