#include "core/cluster/cluster_flags.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"
#include "core/cluster/host_pattern.h"
#include "core/cluster/tf_config.h"

namespace keelson {
namespace {

constexpr absl::string_view kTaskIndexFlag = "--task_index";
constexpr char kCompletionIndex[] = "JOB_COMPLETION_INDEX";

absl::Status NoCluster(Role role) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster: expected TF_CONFIG or --ps_hosts, --worker_hosts, --chief_hosts and "
                   "--task_index (or JOB_COMPLETION_INDEX) for the ",
                   RoleName(role), ", found neither (only the chief can run alone)"));
}

absl::Status UnknownJobName(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--job_name: expected chief, master, ps, worker or evaluator, found \"", name, "\""));
}

absl::Status OtherJobName(Role expected, absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("--job_name: expected \"", RoleName(expected),
                                                 "\", the role of this program, found \"", name,
                                                 "\""));
}

absl::Status BadTaskIndex(absl::string_view source, absl::string_view expected,
                          absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": expected ", expected, ", found ", found));
}

absl::Status MissingTaskIndex() {
  return BadTaskIndex(kTaskIndexFlag, absl::StrCat(">= 0 (or ", kCompletionIndex, ")"), "none");
}

absl::Status ConflictingTaskIndex(int flag, int tf_config) {
  return absl::InvalidArgumentError(
      absl::StrCat("--task_index: found ", flag, ", but TF_CONFIG task.index is ", tf_config));
}

absl::Status ConflictingHost(absl::string_view flag, int index, absl::string_view ours,
                             absl::string_view theirs) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": found \"", ours, "\" for task ", index,
                                                 ", but TF_CONFIG has \"", theirs, "\""));
}

absl::Status ConflictingHostCount(absl::string_view flag, size_t ours, size_t theirs) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": found ", ours, " addresses, but TF_CONFIG has ", theirs));
}

absl::Status MissingHost(absl::string_view flag, int index, absl::string_view theirs) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": found no address for task ", index,
                                                 ", but TF_CONFIG has \"", theirs, "\""));
}

absl::Status TooManyChiefHosts(absl::string_view hosts) {
  return absl::InvalidArgumentError(
      absl::StrCat("--chief_hosts: expected one address, found \"", hosts, "\""));
}

absl::Status OwnRoleNotListed(const Task& self, absl::string_view flag) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": expected the address of ", self.ToString(), ", found none"));
}

absl::Status PortOutOfRange(int port) {
  return absl::InvalidArgumentError(absl::StrCat("--port: expected 1..65535, found ", port));
}

// One flag that lists the tasks of a role.
struct HostsFlag {
  absl::string_view name;
  Role role;
  const std::string* value;
};

std::vector<HostsFlag> HostsFlags(const ClusterFlags& flags) {
  return {{"--chief_hosts", Role::kChief, &flags.chief_hosts},
          {"--ps_hosts", Role::kPs, &flags.ps_hosts},
          {"--worker_hosts", Role::kWorker, &flags.worker_hosts},
          {"--evaluator_hosts", Role::kEvaluator, &flags.evaluator_hosts}};
}

absl::string_view HostsFlagName(Role role) {
  for (const HostsFlag& flag : HostsFlags({})) {
    if (flag.role == role) return flag.name;
  }
  return "";
}

// The index of this task without TF_CONFIG.
struct OwnIndex {
  std::optional<int> value;
  absl::string_view source;  // for messages
};

absl::StatusOr<OwnIndex> FindOwnIndex(const ClusterFlags& flags,
                                      const ClusterEnvironment& environment) {
  if (flags.task_index != -1) return OwnIndex{flags.task_index, kTaskIndexFlag};
  if (!environment.completion_index.has_value()) return OwnIndex{std::nullopt, kTaskIndexFlag};
  int index = 0;
  if (!absl::SimpleAtoi(*environment.completion_index, &index) || index < 0) {
    return BadTaskIndex(kCompletionIndex, "an integer >= 0",
                        absl::StrCat("\"", *environment.completion_index, "\""));
  }
  return OwnIndex{index, kCompletionIndex};
}

bool AnyHosts(const ClusterFlags& flags) {
  for (const HostsFlag& flag : HostsFlags(flags)) {
    if (!flag.value->empty()) return true;
  }
  return false;
}

absl::StatusOr<TaskAddresses> ParseHosts(const HostsFlag& flag) {
  TaskAddresses addresses;
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts, ExpandHosts(flag.name, *flag.value));
  for (size_t i = 0; i < hosts.size(); ++i) {
    RETURN_IF_ERROR(ParseAddress(absl::StrCat(flag.name, "[", i, "]"), hosts[i]).status());
    addresses[static_cast<int>(i)] = hosts[i];
  }
  if (flag.role == Role::kChief && addresses.size() > 1) return TooManyChiefHosts(*flag.value);
  return addresses;
}

absl::Status CheckAgrees(absl::string_view flag, const TaskAddresses& ours,
                         const TaskAddresses& theirs) {
  for (const auto& [index, address] : theirs) {
    const auto own = ours.find(index);
    if (own == ours.end()) return MissingHost(flag, index, address);
    if (own->second != address) return ConflictingHost(flag, index, own->second, address);
  }
  return absl::OkStatus();
}

// Adds the flag's tasks to those of TF_CONFIG, which must all be among them.
absl::Status AddHosts(const HostsFlag& flag, ClusterSpec* spec) {
  ASSIGN_OR_RETURN(TaskAddresses ours, ParseHosts(flag));
  if (ours.empty()) return absl::OkStatus();
  TaskAddresses& theirs = spec->addresses(flag.role);
  RETURN_IF_ERROR(CheckAgrees(flag.name, ours, theirs));
  if (!spec->sparse && !theirs.empty() && ours.size() != theirs.size()) {
    return ConflictingHostCount(flag.name, ours.size(), theirs.size());
  }
  theirs = std::move(ours);
  return absl::OkStatus();
}

absl::Status CheckJobName(Role binary_role, const std::string& job_name) {
  if (job_name.empty()) return absl::OkStatus();
  const auto role = ParseRole(job_name);
  if (!role.has_value()) return UnknownJobName(job_name);
  if (*role != binary_role) return OtherJobName(binary_role, job_name);
  return absl::OkStatus();
}

absl::StatusOr<Task> SelfFromIndex(Role role, const OwnIndex& index) {
  if (role == Role::kChief && index.value.value_or(0) > 0) {
    return BadTaskIndex(index.source, absl::StrCat("0 for the ", RoleName(role)),
                        absl::StrCat(*index.value));
  }
  const bool mostly_alone = role == Role::kChief || role == Role::kEvaluator;
  if (!mostly_alone && !index.value.has_value()) return MissingTaskIndex();
  return Task{role, index.value.value_or(0)};
}

// Checks that a dense cluster lists this task in its job; evaluators need not be listed, since no
// task calls them. `index_source` says where the own index comes from, for the message.
absl::Status CheckSelfListed(const ClusterSpec& spec, absl::string_view index_source) {
  const TaskAddresses& peers = spec.addresses(spec.self.role);
  if (peers.empty() && spec.self.role == Role::kEvaluator) return absl::OkStatus();
  if (peers.empty()) {
    return spec.sparse ? absl::OkStatus()
                       : OwnRoleNotListed(spec.self, HostsFlagName(spec.self.role));
  }
  if (peers.contains(spec.self.index)) return absl::OkStatus();
  const int last = peers.rbegin()->first;
  return BadTaskIndex(index_source, last == 0 ? "0" : absl::StrCat("0..", last),
                      absl::StrCat(spec.self.index));
}

absl::StatusOr<ClusterSpec> FromFlags(Role role, const ClusterFlags& flags, const OwnIndex& index) {
  ClusterSpec spec;
  spec.distributed = true;
  spec.sparse = flags.worker_hosts.empty();
  ASSIGN_OR_RETURN(spec.self, SelfFromIndex(role, index));
  for (const HostsFlag& flag : HostsFlags(flags)) RETURN_IF_ERROR(AddHosts(flag, &spec));
  RETURN_IF_ERROR(CheckSelfListed(spec, index.source));
  return spec;
}

absl::StatusOr<ClusterSpec> Complete(ClusterSpec spec, const ClusterFlags& flags) {
  if (flags.task_index != -1 && flags.task_index != spec.self.index) {
    return ConflictingTaskIndex(flags.task_index, spec.self.index);
  }
  for (const HostsFlag& flag : HostsFlags(flags)) RETURN_IF_ERROR(AddHosts(flag, &spec));
  if (!flags.worker_hosts.empty()) spec.sparse = false;
  RETURN_IF_ERROR(CheckSelfListed(spec, "TF_CONFIG: task.index"));
  return spec;
}

absl::StatusOr<ClusterSpec> WithoutCluster(Role role) {
  if (role == Role::kPs || role == Role::kWorker) return NoCluster(role);
  ClusterSpec spec;
  spec.self = {role, 0};
  return spec;
}

absl::StatusOr<ClusterSpec> Resolve(Role role, const ClusterFlags& flags,
                                    const ClusterEnvironment& environment) {
  ASSIGN_OR_RETURN(ClusterSpec spec, ParseTfConfig(environment.tf_config.value_or(""), role));
  if (spec.distributed) return Complete(std::move(spec), flags);
  ASSIGN_OR_RETURN(const OwnIndex index, FindOwnIndex(flags, environment));
  // A ps needs only its index, since it calls no other task.
  const bool lone_server = role == Role::kPs && index.value.has_value();
  if (AnyHosts(flags) || lone_server) return FromFlags(role, flags, index);
  return WithoutCluster(role);
}

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace

ClusterEnvironment ClusterEnvironment::OfProcess() {
  return {Variable("TF_CONFIG"), Variable(kCompletionIndex)};
}

absl::StatusOr<ClusterSpec> ResolveCluster(Role binary_role, const ClusterFlags& flags,
                                           const ClusterEnvironment& environment) {
  if (flags.port < 0 || flags.port > 65535) return PortOutOfRange(flags.port);
  if (flags.task_index < -1) {
    return BadTaskIndex(kTaskIndexFlag, ">= 0", absl::StrCat(flags.task_index));
  }
  RETURN_IF_ERROR(CheckJobName(binary_role, flags.job_name));
  ASSIGN_OR_RETURN(ClusterSpec spec, Resolve(binary_role, flags, environment));
  spec.listen_port = flags.port;
  RETURN_IF_ERROR(spec.Validate());
  return spec;
}

}  // namespace keelson
