#include "core/cluster/job_name.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"

namespace keelson {
namespace {

// The chief's former name in a TFJob.
constexpr char kMaster[] = "master";

// Empty: the address has another form.
std::string JobOfAddress(const std::string& address, absl::Span<const std::string> roles,
                         int index) {
  const absl::string_view host = absl::string_view(address).substr(0, address.find_first_of(".:"));
  for (const std::string& role : roles) {
    absl::string_view job = host;
    if (absl::ConsumeSuffix(&job, absl::StrCat("-", role, "-", index)) && !job.empty()) {
      return std::string(job);
    }
  }
  return "";
}

}  // namespace

std::string JobNameOf(const ClusterSpec& cluster) {
  const auto of_task = [&](Role role, int index) -> std::string {
    const TaskAddresses& addresses = cluster.addresses(role);
    const auto found = addresses.find(index);
    if (found == addresses.end()) return "";
    std::vector<std::string> roles = {std::string(RoleName(role))};
    if (role == Role::kChief) roles.push_back(kMaster);
    return JobOfAddress(found->second, roles, index);
  };
  std::string name = of_task(cluster.self.role, cluster.self.index);
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    for (const auto& entry : cluster.addresses(role)) {
      if (!name.empty()) return name;
      name = of_task(role, entry.first);
    }
  }
  return name;
}

}  // namespace keelson
