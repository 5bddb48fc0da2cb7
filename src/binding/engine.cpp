// The C surface: what anything below throws becomes a status and a line.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "include/assay_engine.h"
#include "kernels/compile_ptx.h"
#include "src/base/numerics/abandon.h"
#include "src/base/numerics/bad_input.h"
#include "src/base/ptx/printable.h"
#include "src/base/tensor/unambiguous_json.h"
#include "src/base/vm/availability.h"
#include "src/base/vm/checks/checks.h"
#include "src/base/vm/machine.h"
#include "src/binding/answer.h"
#include "src/binding/arrays.h"
#include "src/binding/function.h"
#include "src/binding/gpus.h"
#include "src/binding/launch.h"
#include "src/binding/operations.h"
#include "src/result/document.h"
#include "src/result/tool.h"

namespace assay::binding {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

namespace {

constexpr size_t kLongestMessage = 2000;

std::string one_line(std::string message) {
  for (char& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  message = ptx::printable(message);
  if (message.size() > kLongestMessage) message = message.substr(0, kLongestMessage) + " ...";
  return message;
}

/// The caller's flag, which it may set from any thread.
const std::atomic<int>* flag_of(const assay_control* control) {
  static_assert(sizeof(std::atomic<int>) == sizeof(int32_t) && std::atomic<int>::is_always_lock_free);
  return control ? reinterpret_cast<const std::atomic<int>*>(control->stop) : nullptr;
}

/// Of the call that this thread makes.
thread_local const assay_control* current = nullptr;

/// Kernels that a call has compiled are told to it.
void tell_compilations() {
  static const bool told = [] {
    on_compilation([](const std::string& module, bool compiled) {
      if (!compiled && current && current->progress)
        current->progress(current->user, fmt::format("compiling {} ...", module).c_str());
    });
    return true;
  }();
  static_cast<void>(told);
}

/// The one place where exceptions end.
int guarded(const assay_control* control, assay_answer** answer,
            const std::function<void(assay_answer&)>& work) noexcept {
  std::unique_ptr<assay_answer> made;
  const auto fail = [&](int status, const char* what) {
    try {
      made->arrays.clear();
      made->text = one_line(what);
    } catch (...) {
      made->text.clear();
    }
    return status;
  };
  const auto attempt = [&] {
    const LentFlag lent(flag_of(control));
    tell_compilations();
    current = control;
    work(*made);
    return int{ASSAY_OK};
  };
  const auto run = [&]() -> int {
    try {
      return attempt();
    } catch (const BadInput& error) {
      return fail(ASSAY_BAD_INPUT, error.what());
    } catch (const CannotCompile& error) {
      return fail(ASSAY_BAD_INPUT, error.what());
    } catch (const Abandoned& error) {
      return fail(ASSAY_ABANDONED, error.what());
    } catch (const vm::OverBudget& error) {
      return fail(ASSAY_OVER_BUDGET, error.what());
    } catch (const json::exception& error) {
      return fail(ASSAY_BAD_INPUT, json_fault(error).c_str());
    } catch (const std::system_error& error) {
      return fail(ASSAY_BAD_INPUT, error.what());
    } catch (const std::bad_alloc&) {
      return fail(ASSAY_BAD_INPUT, "not enough memory; make it smaller");
    } catch (const std::exception& error) {
      return fail(ASSAY_INTERNAL, error.what());
    } catch (...) {
      return fail(ASSAY_INTERNAL, "an exception of no known kind");
    }
  };
  made.reset(new (std::nothrow) assay_answer);
  if (answer) *answer = nullptr;
  if (!made) return ASSAY_BAD_INPUT;
  const int status = run();
  current = nullptr;
  if (answer) *answer = made.release();
  return status;
}

json about() {
  json about_formats = json::array(), architectures = json::array(), checks = json::array();
  for (const Format& row : formats()) about_formats.push_back({{"name", row.name}, {"bytes", row.bytes}});
  for (const int number : vm::architectures) architectures.push_back(fmt::format("sm_{}", number));
  for (const vm::CheckRow& row : vm::check_rows()) checks.push_back(row.name);
  return {{"version", tool_version()}, {"commit", tool_commit()},        {"schema", kResultSchema},
          {"formats", about_formats},  {"architectures", architectures}, {"checks", checks},
          {"gpus", describe_gpus()}};
}

/// As much of the caller's struct as it has, and zeros.
template <class T>
T as_here(const T* given) {
  T here{};
  std::memcpy(&here, given, std::min<uint64_t>(sizeof here, given->struct_bytes));
  return here;
}

/// What fails in a call of the function's is told once it has returned.
template <class Work>
void kept(assay_run& run, const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {
    if (run.fault.empty()) run.fault = one_line(error.what());
  }
}

}  // namespace
}  // namespace assay::binding

using namespace assay::binding;

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

ASSAY_EXPORT const char* assay_answer_text(const assay_answer* answer, uint64_t* bytes) {
  if (bytes) *bytes = answer ? answer->text.size() : 0;
  return answer ? answer->text.c_str() : "";
}

ASSAY_EXPORT int assay_answer_array(const assay_answer* answer, uint64_t index, assay_array* array) {
  if (!answer || index >= answer->arrays.size()) return 1;
  const assay::Tensor& tensor = answer->arrays[index];
  const uint64_t room = array->struct_bytes;
  assay_array made{};
  made.struct_bytes = room;
  made.name = tensor.name.c_str();
  made.address = reinterpret_cast<uint64_t>(tensor.data.data()), made.bytes = tensor.data.size();
  made.format = static_cast<int32_t>(tensor.dtype), made.rank = static_cast<int32_t>(tensor.axes.size());
  if (made.rank > ASSAY_MOST_AXES) return 1;
  for (size_t i = 0; i < tensor.axes.size(); ++i) {
    made.shape[i] = tensor.axes[i].size;
    made.strides[i] = tensor.strides()[i];
  }
  made.axes = index < answer->axes.size() ? answer->axes[index].c_str() : nullptr;
  std::memcpy(array, &made, std::min<uint64_t>(room, sizeof made));
  return 0;
}

ASSAY_EXPORT void assay_answer_free(assay_answer* answer) {
  delete answer;
}

ASSAY_EXPORT int assay_about(assay_answer** answer) {
  return guarded(nullptr, answer, [](assay_answer& made) { made.text = text_of(about()); });
}

ASSAY_EXPORT int assay_module_load(const char* ptx, uint64_t bytes, const char* path, assay_module** module,
                                   assay_answer** answer) {
  return guarded(nullptr, answer, [&](assay_answer& made) {
    std::unique_ptr<assay_module> loaded = load_module({ptx, bytes}, path ? path : "kernel.ptx");
    made.text = text_of(describe(*loaded));
    *module = loaded.release();
  });
}

ASSAY_EXPORT void assay_module_free(assay_module* module) {
  delete module;
}

ASSAY_EXPORT int assay_machine_launch(const assay_module* module, const assay_launch* given,
                                      const assay_control* control, assay_answer** answer) {
  return guarded(control, answer,
                 [&](assay_answer& made) { made.text = text_of(launch(*module, as_here(given))); });
}

ASSAY_EXPORT int assay_call(const char* operation, const char* request, const assay_array* arrays,
                            uint64_t array_count, const assay_control* control, assay_answer** answer) {
  return guarded(control, answer, [&](assay_answer& made) {
    const json given = json::parse(request);
    const std::vector<assay_array> read = read_arrays(arrays, array_count);
    made.text = text_of(operation_named(operation).run({given, read, made, control}));
  });
}

ASSAY_EXPORT int assay_call_function(const char* operation, const char* request,
                                     const assay_function* function, const assay_control* control,
                                     assay_answer** answer) {
  return guarded(control, answer, [&](assay_answer& made) {
    const json given = json::parse(request);
    const assay_function here = as_here(function);
    made.text = text_of(operation_named(operation).run({given, {}, made, control, &here}));
  });
}

ASSAY_EXPORT void assay_run_output(assay_run* run, const assay_array* array) {
  kept(*run, [&] { give_output(*run, *array); });
}
ASSAY_EXPORT void assay_run_ended(assay_run* run, const char* json) {
  run->said = json ? json : "{}";
}
ASSAY_EXPORT void assay_run_named(assay_run* run, const assay_array* array) {
  if (run->launches) kept(*run, [&] { name_memory(*run, *array); });
}
ASSAY_EXPORT void assay_run_launching(assay_run* run, const assay_module* module, const assay_launch* given) {
  if (run->launches) kept(*run, [&] { run->launches->before(*module, as_here(given)); });
}
ASSAY_EXPORT void assay_run_launched(assay_run* run) {
  if (run->launches) kept(*run, [&] { run->launches->after(); });
}
