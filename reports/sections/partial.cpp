// Where only some blocks ran: which, and what is judged.
#include <fmt/format.h>

#include "reports/section.h"

namespace assay::sections {

extern const Section partial = {
    .field = "partial",
    .later = true,
    .print =
        [](const Console& console, const Verification& v, size_t) {
          if (v.partial) console.line(fmt::format("  {}", *v.partial));
        },
};

}  // namespace assay::sections
