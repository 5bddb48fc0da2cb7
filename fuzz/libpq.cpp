#include "fuzz/libpq.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace {

constexpr const char* kLibrary = "libpq.so.5";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr)
    throw BadInput(fmt::format("{} has no {}: it is no client of PostgreSQL", kLibrary, name));
}

Libpq opened_library() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw BadInput(fmt::format(
        "a database on a server needs PostgreSQL's client library, and {} cannot be opened ({}); install it "
        "(Debian and Ubuntu: libpq5, Fedora and RHEL: libpq), or name a file",
        kLibrary, dlerror()));
  Libpq pq{};
  find(library, "PQconnectdbParams", pq.connect);
  find(library, "PQstatus", pq.status);
  find(library, "PQerrorMessage", pq.error_message);
  find(library, "PQfinish", pq.finish);
  find(library, "PQexec", pq.exec);
  find(library, "PQexecParams", pq.exec_params);
  find(library, "PQresultStatus", pq.result_status);
  find(library, "PQresultErrorField", pq.result_error);
  find(library, "PQntuples", pq.rows);
  find(library, "PQnfields", pq.columns);
  find(library, "PQgetvalue", pq.value);
  find(library, "PQclear", pq.clear);
  find(library, "PQsetNoticeProcessor", pq.set_notice_processor);
  return pq;
}

}  // namespace

const Libpq& libpq() {
  static const Libpq pq = opened_library();
  return pq;
}

}  // namespace assay
