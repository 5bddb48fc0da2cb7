// assay merge FILE.. --out FILE: the results or the databases of a campaign's shards as one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/database.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/tensor/tensor_file.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/cli/commands.h"
#include "src/cli/stored_result.h"
#include "src/result/merged.h"

namespace assay::cli {
namespace {

struct MergeCommand {
  std::vector<std::string> files;
  std::string out;

  int run() const {
    require_different();
    const auto databases = std::count_if(files.begin(), files.end(), is_database);
    if (databases == std::ssize(files)) return merge_databases();
    if (databases > 0)
      throw BadInput("results and databases together: merge the results, and the databases apart from them");
    return merge_results();
  }

 private:
  void require_different() const {
    std::set<std::filesystem::path> seen;
    for (const std::string& file : files)
      if (!seen.insert(std::filesystem::weakly_canonical(file)).second)
        throw BadInput(fmt::format("{}: named twice", file));
  }

  int merge_databases() const {
    Database all(out);
    for (const std::string& file : files) {
      const int64_t runs = all.merge(file);
      fmt::print("{}: {} run{} taken over\n", file, runs, runs == 1 ? "" : "s");
    }
    return 0;
  }

  int merge_results() const {
    std::vector<nlohmann::json> documents;
    std::vector<ResultPart> parts;
    for (const std::string& file : files) documents.push_back(read_result(file));
    for (size_t i = 0; i < files.size(); ++i) parts.push_back({files[i], &documents[i]});
    try {
      write_file(out, merged(parts).dump(1) + "\n");
    } catch (const nlohmann::json::exception& error) {
      throw BadInput(fmt::format("not what assay writes with --json: {}", json_fault(error)));
    }
    fmt::print("{} results in {}\n", files.size(), out);
    return 0;
  }
};

}  // namespace

void add_merge(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "merge", "Puts the results, or the databases, of the shards of a campaign together (--shard)");
  const auto o = std::make_shared<MergeCommand>();
  command
      ->add_option("FILE", o->files,
                   "Results that fuzz, sweep, mutate or defects wrote with --json, or databases of fuzz")
      ->required()
      ->type_name("RESULT.json|assay.db");
  command
      ->add_option("--out", o->out,
                   "The result of the whole; a database is added to where it is there already")
      ->required()
      ->type_name("FILE");
  command->callback([o, &status] { status = o->run(); });
}

}  // namespace assay::cli
