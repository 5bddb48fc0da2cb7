// A PostgreSQL server of a test's own: its files and its socket lie in one temporary folder, it listens on no
// port, and it ends with the object.
#pragma once
#include <filesystem>
#include <string>

namespace assay {

class PostgresServer {
 public:
  /// Whether this host has the server's programs.
  static bool available();

  PostgresServer();
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  void start() const;
  void stop() const;
  /// Of the socket in another folder: that of a proxy.
  std::string url(const std::filesystem::path& folder) const;
  std::string url() const { return url(folder_); }
  std::filesystem::path socket() const { return folder_ / ".s.PGSQL.5432"; }
  std::filesystem::path folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace assay
