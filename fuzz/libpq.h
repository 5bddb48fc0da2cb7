// PostgreSQL's client library, opened by its name when a database on a server is asked for: nothing of it is
// linked, so that a host without it runs everything else. Functions and constants as the PostgreSQL manual
// has them, part IV, "libpq: C Library"; they are the same in every release with libpq.so.5.
#pragma once

namespace assay {

struct PGconn;
struct PGresult;

struct Libpq {
  static constexpr int kConnectionOk = 0, kCommandOk = 1, kTuplesOk = 2;

  PGconn* (*connect)(const char* const* keywords, const char* const* values, int expand_dbname);
  int (*status)(const PGconn*);
  const char* (*error_message)(const PGconn*);
  void (*finish)(PGconn*);
  PGresult* (*exec)(PGconn*, const char* sql);
  PGresult* (*exec_params)(PGconn*, const char* sql, int count, const unsigned* types,
                           const char* const* values, const int* lengths, const int* formats,
                           int result_format);
  int (*result_status)(const PGresult*);
  const char* (*result_error)(const PGresult*, int field);
  int (*rows)(const PGresult*);
  int (*columns)(const PGresult*);
  const char* (*value)(const PGresult*, int row, int column);
  void (*clear)(PGresult*);
  /// What the server remarks is not printed among our own lines.
  void* (*set_notice_processor)(PGconn*, void (*)(void*, const char*), void*);
};

/// Throws BadInput where the library is not there.
const Libpq& libpq();

}  // namespace assay
