// Compares the virtual machine with a GPU, form by form of the instruction table, and prints a table: form,
// results, mismatches, the first mismatch with its operands; a digest of each form's recorded subset.
//   fidelity [--log2 N] [--seconds S] [--forms TEXT] [--skip TEXT] [--but FILE] [--expected vm] [--threads N]
//            > table.txt
// --log2 N     indices per form (default 20); --seconds S: then forms of one fp32 operand on all 2^32 inputs,
//              until S seconds have passed since the start (default 0); --forms: only those whose name holds
//              TEXT; --expected vm: a second machine in place of the GPU, to try the tool without one;
// --skip TEXT  leaves out those whose name holds TEXT;
// --but FILE   leaves out the forms that an earlier table has a digest of: those added since, and those that
//              the assembler refused then;
// --threads N: pairs of engines at work (default: one per core).
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/numerics/bad_input.h"
#include "tools/fidelity/comparison.h"
#include "tools/fidelity/program.h"
#include "tools/fidelity/recorded.h"

namespace assay::fidelity {
namespace {

struct Options {
  int log2_indices = 20;
  double seconds = 0;
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  std::string forms, skip, expected = "cuda";
  std::map<std::string, std::string> but;  ///< forms that are left out
};

/// One line of the table.
struct Line {
  Form form;
  Comparison total;
  int64_t done = 0;  ///< indices
  uint64_t digest = 0;
};

/// A piece of a form's indices.
struct Job {
  size_t line;
  uint64_t base;
  int64_t count;
  uint32_t stride;
  bool last_resort;  ///< only while there is time
};

constexpr int64_t slice = int64_t{1} << 27;
constexpr uint32_t slice_stride = 512;

class Survey {
 public:
  explicit Survey(const Options& options) : options_(options), start_(std::chrono::steady_clock::now()) {
    for (Form& form : forms(options.log2_indices, &others_)) add(std::move(form), false);
    if (options.seconds > 0)
      for (Form& form : exhaustive_forms()) add(std::move(form), true);
  }

  void run() {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < options_.threads; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) throw BadInput(*failure_);
  }

  /// The table to standard output, totals and mismatches to standard error. True: no mismatch.
  bool print() const;

 private:
  void add(Form form, bool exhaustive) {
    const std::string& name = form.name;
    if (name.find(options_.forms) == std::string::npos || options_.but.contains(name)) return;
    if (!options_.skip.empty() && name.find(options_.skip) != std::string::npos) return;
    const size_t line = lines_.size();
    for (int64_t at = 0; at < form.indices; at += slice) {
      const int64_t count = std::min(slice, form.indices - at);
      jobs_.push_back({line, static_cast<uint64_t>(at), count, exhaustive ? slice_stride : fold, exhaustive});
    }
    lines_.push_back({std::move(form)});
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void work();
  void finish(const Job&, Comparison, uint64_t digest);

  Options options_;
  std::chrono::steady_clock::time_point start_;
  std::vector<Line> lines_;
  std::vector<Job> jobs_;
  std::vector<std::string> others_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::optional<std::string> failure_;
  std::string expected_name_;
};

void Survey::work() {
  try {
    const auto machine = make_vm_backend({.threads = 1});
    const auto expected = options_.expected == "vm" ? make_vm_backend({.threads = 1}) : make_cuda_backend({});
    {
      const std::lock_guard lock(mutex_);
      expected_name_ = expected->name();
    }
    for (size_t i; (i = next_++) < jobs_.size();) {
      const Job& job = jobs_[i];
      if (job.last_resort && elapsed() > options_.seconds) break;
      const Form& form = lines_[job.line].form;
      Comparison made = compare(form, job.base, job.count, job.stride, *machine, *expected);
      const bool recorded = !job.last_resort && job.base == 0 && !made.refused;
      finish(job, std::move(made), recorded ? subset_digest(form, *expected) : 0);
    }
  } catch (const BadInput& error) {
    const std::lock_guard lock(mutex_);
    failure_ = error.what();
  }
}

void Survey::finish(const Job& job, Comparison made, uint64_t digest) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_[job.line];
  if (digest) line.digest = digest;
  line.done += job.count;
  line.total.results += made.results;
  line.total.mismatches += made.mismatches;
  line.total.at_least |= made.at_least;
  if (made.refused) line.total.refused = std::move(made.refused);
  if (made.first && (!line.total.first || made.first->index < line.total.first->index))
    line.total.first = std::move(made.first);
}

std::string text_of(const Mismatch& mismatch) {
  std::string text = fmt::format("index {}:", mismatch.index);
  for (const uint64_t operand : mismatch.operands) text += fmt::format(" {:#x}", operand);
  return text + fmt::format(" -> machine {:#x}, expected {:#x}", mismatch.tested, mismatch.expected);
}

bool Survey::print() const {
  int64_t results = 0, mismatches = 0, compared = 0, refused = 0, exhausted = 0;
  fmt::print("# {}\n# form, results, differing, digest of the recorded subset\n", expected_name_);
  for (const Line& line : lines_) {
    const Comparison& total = line.total;
    if (line.done == 0) continue;
    if (total.refused) {
      ++refused;
      fmt::print("{} refused\n", line.form.name);
      fmt::print(stderr, "refused: {}\n", *total.refused);
      continue;
    }
    const bool every_input = line.form.indices == int64_t{1} << 32;
    exhausted += every_input && line.done == line.form.indices;
    compared += !every_input;
    results += total.results;
    mismatches += total.mismatches;
    fmt::print("{} {} {}{} {}\n", line.form.name, total.results, total.at_least ? ">=" : "", total.mismatches,
               every_input ? (line.done == line.form.indices ? "all-inputs" : "part-of-all-inputs")
                           : fmt::format("{:016x}", line.digest));
    if (total.first) fmt::print(stderr, "{}: {}\n", line.form.name, text_of(*total.first));
  }
  const std::string summary = fmt::format(
      "{} forms compared, {} refused by an engine, {} forms of the table are no function of registers; {} "
      "forms on "
      "all 2^32 inputs; {} results, {} differing; {:.1f} s\n",
      compared, refused, others_.size(), exhausted, results, mismatches, elapsed());
  fmt::print("# {}", summary);
  fmt::print(stderr, "{}", summary);
  return mismatches == 0;
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw BadInput(name + " needs a value");
    const char* value = argv[i + 1];
    if (name == "--log2")
      options.log2_indices = std::atoi(value);
    else if (name == "--seconds")
      options.seconds = std::atof(value);
    else if (name == "--threads")
      options.threads = static_cast<unsigned>(std::max(1, std::atoi(value)));
    else if (name == "--forms")
      options.forms = value;
    else if (name == "--skip")
      options.skip = value;
    else if (name == "--but")
      options.but = recorded_digests(value);
    else if (name == "--expected")
      options.expected = value;
    else
      throw BadInput("unknown option " + name +
                     "; known are --log2, --seconds, --forms, --skip, --but, --expected, --threads");
  }
  if (options.log2_indices < 14 || options.log2_indices > 26) throw BadInput("--log2 must be from 14 to 26");
  return options;
}

}  // namespace
}  // namespace assay::fidelity

int main(int argc, char** argv) {
  try {
    assay::fidelity::Survey survey(assay::fidelity::options_of(argc, argv));
    survey.run();
    return survey.print() ? 0 : 1;
  } catch (const assay::BadInput& error) {
    fmt::print(stderr, "fidelity: {}\n", error.what());
    return 2;
  }
}
