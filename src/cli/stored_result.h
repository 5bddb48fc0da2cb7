// Results that earlier runs left behind: JSON, or a fuzzing database.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "src/result/baseline.h"

namespace assay::cli {

/// Whether it is a postgresql:// URL, or a file of SQLite.
bool is_database(const std::string& where);
/// The document of a JSON file; of a database its latest run. Throws BadInput naming the file.
nlohmann::json read_result(const std::string& path);
/// Before a long run: throws BadInput where `path` is a file that holds anything but a result of this kind
/// ("sweep"), which the run would replace. What is empty or no file is not looked at.
void require_replaceable(const std::string& path, std::string_view kind);
/// How the runs of a database follow each other. Throws BadInput where the file is none.
nlohmann::json read_trend(const std::string& path);
/// The findings of a JSON file, or those of all runs of a database.
Baseline read_baseline(const std::string& path);

}  // namespace assay::cli
