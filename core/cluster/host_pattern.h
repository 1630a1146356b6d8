// Short forms of lists of hosts, as a StatefulSet, an Indexed Job or Slurm names its tasks.
#ifndef KEELSON_CORE_CLUSTER_HOST_PATTERN_H_
#define KEELSON_CORE_CLUSTER_HOST_PATTERN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

inline constexpr int kMaxPatternHosts = 100'000;

// A comma-separated list, each "{FIRST..LAST}" in it replaced by the numbers from FIRST to LAST:
// "mnist-ps-{0..1}.mnist:2222,other:2222" are three hosts. Where an entry has several, the last
// one runs fastest. A leading zero in FIRST or LAST gives all numbers the width of the longer, as
// in bash: "{08..10}" is 08, 09, 10. Spaces around an entry are dropped. An empty list has no
// hosts. The hosts themselves are not checked.
//
// `flag` names where the text stands, for the message: "--ps_hosts".
// INVALID_ARGUMENT: braces that do not pair, or hold something else; more than kMaxPatternHosts.
absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view flag,
                                                     absl::string_view list);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_HOST_PATTERN_H_
