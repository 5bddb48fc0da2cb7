#include "src/base/tensor/unambiguous_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kLongestComplaint = 200;  // the parser quotes what it read last, however long

}  // namespace

std::string json_fault(const std::exception& error) {
  const std::string message = error.what();
  const size_t bracket = message.starts_with("[json.exception.") ? message.find("] ") : message.npos;
  return message.substr(bracket == message.npos ? 0 : bracket + 2, kLongestComplaint);
}

nlohmann::json parse_unambiguous(std::string_view text, const std::string& path, std::string_view otherwise) {
  using json = nlohmann::json;
  std::vector<std::set<std::string>> open;  // keys of the objects around the place that is read
  const auto look = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (depth > kDeepest) throw BadInput(fmt::format("{}: nests deeper than {}", path, kDeepest));
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      throw BadInput(
          fmt::format("{}: key {} stands twice in one object; leave one out", path, parsed.dump()));
    return true;
  };
  try {
    return json::parse(text, look);
  } catch (const json::exception& error) {  // numbers beyond double are out_of_range
    throw BadInput(fmt::format("{}: {}: {}", path, otherwise, json_fault(error)));
  }
}

}  // namespace assay
