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

constexpr absl::string_view kJobNameFlag = "--job_name";
constexpr absl::string_view kTaskIndexFlag = "--task_index";
constexpr absl::string_view kTaskType = "TF_CONFIG: task.type";
constexpr char kCompletionIndex[] = "JOB_COMPLETION_INDEX";

absl::Status NoCluster(Role role) {
  return absl::InvalidArgumentError(
      absl::StrCat("cluster: expected TF_CONFIG", role == Role::kWorker ? ", RANK" : "",
                   " or --ps_hosts, --worker_hosts, --chief_hosts and --task_index (or "
                   "JOB_COMPLETION_INDEX) for the ",
                   RoleName(role), ", found none of them (only the chief can run alone)"));
}

absl::Status UnknownJobName(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--job_name: expected chief, master, ps, worker or evaluator, found \"", name, "\""));
}

absl::Status OtherRole(absl::string_view source, Role program, Role found) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": expected \"", RoleName(program),
                                                 "\", the role of this program, found \"",
                                                 RoleName(found), "\""));
}

absl::Status ConflictingJobName(Role flag, Role tf_config) {
  return absl::InvalidArgumentError(absl::StrCat("--job_name: found \"", RoleName(flag),
                                                 "\", but TF_CONFIG task.type is \"",
                                                 RoleName(tf_config), "\""));
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

absl::Status OtherRank(absl::string_view flag, absl::string_view found, const ClusterSpec& spec) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": found ", found, ", but ", spec.source, " say ", spec.self.ToString()));
}

absl::Status RankForChief(const ClusterSpec& spec) {
  return absl::InvalidArgumentError(absl::StrCat(
      spec.source, ": expected rank 0, the only one that the program chief runs, found ",
      spec.self.ToString(), " (the program worker runs every rank)"));
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

absl::Status OtherPortThanDerived(const Address& own, int port) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--port: expected none, or ", own.port, ", since the others look for this task at ",
      own.ToString(), ", which follows from the leader's address (--chief_hosts sets that), found ",
      port));
}

absl::Status NobodyToAnnounceTo(absl::string_view host, const ClusterSpec& spec) {
  return absl::InvalidArgumentError(absl::StrCat("--announce_host: expected none, since ",
                                                 spec.IsChief()
                                                     ? "the others know the leader's address"
                                                     : "the cluster gives this task's address",
                                                 ", found \"", host, "\""));
}

// `port`: --port. It may repeat the port that the others expect.
absl::Status SetListenPort(int port, ClusterSpec* spec) {
  if (!spec->derived_addresses) {
    spec->listen_port = port;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Address own, ParseAddress("cluster", spec->SelfAddress().value_or("")));
  return port == 0 || port == own.port ? absl::OkStatus() : OtherPortThanDerived(own, port);
}

// `host`: --announce_host.
absl::Status SetAnnouncedHost(const std::string& host, ClusterSpec* spec) {
  if (host.empty()) return absl::OkStatus();
  if (!spec->peers_register() || spec->IsChief()) return NobodyToAnnounceTo(host, *spec);
  RETURN_IF_ERROR(ParseAddress("--announce_host, with a port", absl::StrCat(host, ":1")).status());
  spec->announced_host = host;
  return absl::OkStatus();
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

// The role of --job_name; nothing: it is not given. Whether the program runs a task of another role
// than its own, RunBy says when the cluster is known.
absl::StatusOr<std::optional<Role>> ParseJobName(Role binary_role, const std::string& job_name) {
  if (job_name.empty()) return std::nullopt;
  const auto role = ParseRole(job_name);
  if (!role.has_value()) return UnknownJobName(job_name);
  const bool may_run =
      *role == binary_role || (binary_role == Role::kWorker && *role == Role::kChief);
  if (!may_run) return OtherRole(kJobNameFlag, binary_role, *role);
  return role;
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
  spec.source = "flags";
  spec.sparse = flags.worker_hosts.empty();
  ASSIGN_OR_RETURN(spec.self, SelfFromIndex(role, index));
  for (const HostsFlag& flag : HostsFlags(flags)) RETURN_IF_ERROR(AddHosts(flag, &spec));
  RETURN_IF_ERROR(CheckSelfListed(spec, index.source));
  return spec;
}

absl::StatusOr<ClusterSpec> Complete(ClusterSpec spec, const ClusterFlags& flags,
                                     std::optional<Role> job_name) {
  if (job_name.has_value() && *job_name != spec.self.role) {
    return ConflictingJobName(*job_name, spec.self.role);
  }
  if (flags.task_index != -1 && flags.task_index != spec.self.index) {
    return ConflictingTaskIndex(flags.task_index, spec.self.index);
  }
  for (const HostsFlag& flag : HostsFlags(flags)) RETURN_IF_ERROR(AddHosts(flag, &spec));
  if (!flags.worker_hosts.empty()) spec.sparse = false;
  if (AnyHosts(flags)) spec.source = "TF_CONFIG and flags";
  RETURN_IF_ERROR(CheckSelfListed(spec, "TF_CONFIG: task.index"));
  return spec;
}

// The job's name and index by flag name the task that the rank makes this process, if they are
// given;
// --job_name may also say worker in general, for one command serves all ranks.
absl::Status CheckAgreesWithRank(const ClusterFlags& flags, std::optional<Role> job_name,
                                 const ClusterSpec& spec) {
  if (job_name == Role::kChief && !spec.IsChief()) {
    return OtherRank(kJobNameFlag, RoleName(*job_name), spec);
  }
  if (flags.task_index != -1 && flags.task_index != spec.self.index) {
    return OtherRank(kTaskIndexFlag, absl::StrCat(flags.task_index), spec);
  }
  return absl::OkStatus();
}

// Nothing: no launcher has numbered this process, or the flags list ps or workers.
absl::StatusOr<std::optional<ClusterSpec>> FromRanks(Role binary_role, const ClusterFlags& flags,
                                                     std::optional<Role> job_name,
                                                     const RankEnvironment& environment) {
  const bool trains = binary_role == Role::kChief || binary_role == Role::kWorker;
  const bool listed = !flags.ps_hosts.empty() || !flags.worker_hosts.empty();
  if (!trains || listed) return std::nullopt;
  ASSIGN_OR_RETURN(const TaskAddresses chief,
                   ParseHosts({"--chief_hosts", Role::kChief, &flags.chief_hosts}));
  std::optional<std::string> chief_address;
  if (!chief.empty()) chief_address = chief.begin()->second;
  ASSIGN_OR_RETURN(std::optional<ClusterSpec> spec,
                   ParseRankEnvironment(environment, chief_address));
  if (!spec.has_value()) return std::nullopt;
  RETURN_IF_ERROR(
      AddHosts({"--evaluator_hosts", Role::kEvaluator, &flags.evaluator_hosts}, &*spec));
  RETURN_IF_ERROR(CheckAgreesWithRank(flags, job_name, *spec));
  if (!spec->RunBy(binary_role)) return RankForChief(*spec);
  return spec;
}

absl::StatusOr<ClusterSpec> WithoutCluster(Role role) {
  if (role == Role::kPs || role == Role::kWorker) return NoCluster(role);
  ClusterSpec spec;
  spec.self = {role, 0};
  return spec;
}

absl::StatusOr<ClusterSpec> Resolve(Role binary_role, const ClusterFlags& flags,
                                    const ClusterEnvironment& environment) {
  ASSIGN_OR_RETURN(const std::optional<Role> job_name, ParseJobName(binary_role, flags.job_name));
  ASSIGN_OR_RETURN(ClusterSpec spec,
                   ParseTfConfig(environment.tf_config.value_or(""), binary_role));
  if (spec.distributed) {
    ASSIGN_OR_RETURN(spec, Complete(std::move(spec), flags, job_name));
    if (!spec.RunBy(binary_role)) return OtherRole(kTaskType, binary_role, spec.self.role);
    spec.ignored = environment.ranks.Names();
    return spec;
  }
  ASSIGN_OR_RETURN(const std::optional<ClusterSpec> ranked,
                   FromRanks(binary_role, flags, job_name, environment.ranks));
  if (ranked.has_value()) return *ranked;
  const Role role = job_name.value_or(binary_role);
  ASSIGN_OR_RETURN(const OwnIndex index, FindOwnIndex(flags, environment));
  // A ps needs only its index, since it calls no other task.
  const bool lone_server = role == Role::kPs && index.value.has_value();
  if (AnyHosts(flags) || lone_server) {
    ASSIGN_OR_RETURN(spec, FromFlags(role, flags, index));
  } else {
    ASSIGN_OR_RETURN(spec, WithoutCluster(role));
  }
  if (!spec.RunBy(binary_role)) return OtherRole(kJobNameFlag, binary_role, role);
  spec.ignored = environment.ranks.Names();
  return spec;
}

std::optional<std::string> Variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace

ClusterEnvironment ClusterEnvironment::OfProcess() {
  return {Variable("TF_CONFIG"), Variable(kCompletionIndex), RankEnvironment::OfProcess()};
}

absl::StatusOr<ClusterSpec> ResolveCluster(Role binary_role, const ClusterFlags& flags,
                                           const ClusterEnvironment& environment) {
  if (flags.port < 0 || flags.port > 65535) return PortOutOfRange(flags.port);
  if (flags.task_index < -1) {
    return BadTaskIndex(kTaskIndexFlag, ">= 0", absl::StrCat(flags.task_index));
  }
  ASSIGN_OR_RETURN(ClusterSpec spec, Resolve(binary_role, flags, environment));
  RETURN_IF_ERROR(SetListenPort(flags.port, &spec));
  RETURN_IF_ERROR(SetAnnouncedHost(flags.announce_host, &spec));
  RETURN_IF_ERROR(spec.Validate());
  return spec;
}

}  // namespace keelson
