#include "src/base/vm/event_log.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::vm {
namespace event_log_test {

LoggedEvent carrier(int32_t site, uint16_t thread) {
  LoggedEvent e;
  e.site = site;
  e.thread = thread;
  e.result_bits = 0x7fffffff;
  e.result_type = ptx::Type::f32;
  return e;
}

LoggedOperand nan_from(Tag tag) {
  return {0x7fffffff, ptx::Type::f32, 0, 0, tag, kNothing};
}

TEST(EventLog, ANanThatALoopKeepsIsLoggedOncePerInstruction) {
  EventLog log;
  LoggedEvent birth = carrier(0, 5);
  birth.born = true;
  Tag tag = log.add(birth, nullptr, 0);
  for (int turn = 0; turn < 1000; turn++)
    for (int32_t site : {1, 2, 3}) {
      const LoggedOperand o = nan_from(tag);
      tag = log.add(carrier(site, 5), &o, 1);
    }
  EXPECT_EQ(log.events().size(), 4u);
}

TEST(EventLog, AnotherThreadsCarrierIsAnEventOfItsOwn) {
  EventLog log;
  LoggedEvent birth = carrier(0, 5);
  birth.born = true;
  const LoggedOperand o = nan_from(log.add(birth, nullptr, 0));
  const Tag first = log.add(carrier(1, 5), &o, 1);
  const LoggedOperand from_first = nan_from(first);
  EXPECT_NE(log.add(carrier(1, 6), &from_first, 1), first);
}

TEST(EventLog, ABirthIsNeverMergedWithAnEarlierOne) {
  EventLog log;
  LoggedEvent birth = carrier(0, 5);
  birth.born = true;
  EXPECT_EQ(log.add(birth, nullptr, 0), 1u);
  EXPECT_EQ(log.add(birth, nullptr, 0), 2u);
}

TEST(EventLog, ValuesAreDecodedInTheirOwnFormat) {
  struct Row {
    ptx::Type type;
    uint64_t bits;
    double value;
  };
  for (const Row& r : {Row{ptx::Type::f32, 0x3fc00000, 1.5}, Row{ptx::Type::f16, 0x3e00, 1.5},
                       Row{ptx::Type::bf16, 0x3fc0, 1.5}, Row{ptx::Type::f64, 0x3ff8000000000000, 1.5},
                       Row{ptx::Type::f16, 0x7c00, INFINITY}, Row{ptx::Type::bf16, 0xff80, -INFINITY}}) {
    EXPECT_EQ(value_of(r.type, r.bits), r.value);
    EXPECT_EQ(is_nonfinite(r.type, r.bits), !std::isfinite(r.value));
  }
  EXPECT_TRUE(std::isinf(value_of(ptx::Type::tf32, 0x7f800001)));  // a payload in the dropped bits only
}

}  // namespace event_log_test
}  // namespace assay::vm
