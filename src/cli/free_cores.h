// How many cores this process may use, and how many of them nobody else is using.
#pragma once

namespace assay::cli {

/// By affinity and by the limit of its control group: on a runner that lends two of sixty-four, two.
int own_cores();
/// Those without the ones that others keep busy right now, at least one: threads of one run wait for each
/// other, and on cores that are taken they wait for strangers too.
int free_cores();

}  // namespace assay::cli
