#include "fuzz/libpq.h"

#include <gtest/gtest.h>

#include <string>

#include "src/base/numerics/bad_input.h"

namespace assay {
namespace libpq_test {

TEST(Libpq, IsWholeOrSaysWhatToInstall) {
  try {
    const Libpq& pq = libpq();
    const char* const keywords[] = {"host", nullptr};
    const char* const values[] = {"/nonexistent", nullptr};
    PGconn* const connection = pq.connect(keywords, values, 0);
    ASSERT_NE(connection, nullptr);
    EXPECT_NE(pq.status(connection), Libpq::kConnectionOk);
    EXPECT_NE(std::string(pq.error_message(connection)).find("/nonexistent"), std::string::npos);
    pq.finish(connection);
  } catch (const BadInput& reason) {
    EXPECT_NE(std::string(reason.what()).find("libpq5"), std::string::npos) << reason.what();
  }
}

}  // namespace libpq_test
}  // namespace assay
