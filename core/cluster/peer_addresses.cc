#include "core/cluster/peer_addresses.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace keelson {
namespace {

bool OnThisMachine(const Address& leader) {
  const bool number = leader.is_literal() && absl::StartsWith(leader.host, "127.");
  return number || leader.host == "localhost" || leader.host == "[::1]";
}

absl::StatusOr<std::vector<std::string>> PortByPort(absl::string_view source, const Address& leader,
                                                    int processes) {
  const int highest = kMaxPort - (processes - 1);
  if (leader.port > highest) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": expected a leader's port up to ", highest, ", since of ", processes,
        " processes at ", leader.host, " rank r listens r ports further, found ", leader.port));
  }
  std::vector<std::string> addresses;
  for (int r = 0; r < processes; ++r) {
    addresses.push_back(Address{leader.host, leader.port + r}.ToString());
  }
  return addresses;
}

// The name of rank r's host, by the leader's first label without `ending`.
std::string LabelOfRank(absl::string_view job, absl::string_view ending, int r) {
  if (r == 0) return absl::StrCat(job, ending);
  if (ending == kPyTorchMaster) return absl::StrCat(job, "-worker-", r - 1);
  return absl::StrCat(job, absl::StripSuffix(ending, "0"), r);
}

std::vector<std::string> NameByName(const Address& leader, absl::string_view ending,
                                    int processes) {
  const absl::string_view label = FirstLabel(leader.host);
  const absl::string_view domain = absl::string_view(leader.host).substr(label.size());
  const absl::string_view job = absl::StripSuffix(label, ending);
  std::vector<std::string> addresses;
  for (int r = 0; r < processes; ++r) {
    addresses.push_back(absl::StrCat(LabelOfRank(job, ending, r), domain, ":", leader.port));
  }
  return addresses;
}

}  // namespace

absl::string_view FirstLabel(absl::string_view host) { return host.substr(0, host.find('.')); }

absl::StatusOr<std::vector<std::string>> AddressesByRank(
    absl::string_view source, const Address& leader, int processes,
    absl::Span<const absl::string_view> names) {
  if (processes == 1) return std::vector<std::string>{leader.ToString()};
  if (OnThisMachine(leader)) return PortByPort(source, leader, processes);
  const absl::string_view label = FirstLabel(leader.host);
  const auto ending = std::find_if(names.begin(), names.end(), [&](absl::string_view name) {
    return label.size() > name.size() && absl::EndsWith(label, name);
  });
  if (leader.is_literal() || ending == names.end()) return std::vector<std::string>();
  return NameByName(leader, *ending, processes);
}

}  // namespace keelson
