#include "core/cluster/rank_environment.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/host_name.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"
#include "core/cluster/host_pattern.h"
#include "core/cluster/peer_addresses.h"

namespace keelson {
namespace {

constexpr int kMaxProcesses = kMaxPatternHosts;

// The variables that number processes or name a leader, launcher by launcher.
constexpr absl::string_view kNames[] = {
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_RDZV_ENDPOINT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
};

// Those that only say more of one launcher.
constexpr absl::string_view kDetails[] = {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "PET_NNODES",
                                          "PET_NPROC_PER_NODE", "TORCHELASTIC_USE_AGENT_STORE"};

// PyTorchJob sets both of a pair.
constexpr std::pair<absl::string_view, absl::string_view> kSynonyms[] = {
    {"RANK", "PET_NODE_RANK"},
    {"MASTER_ADDR", "PET_MASTER_ADDR"},
    {"MASTER_PORT", "PET_MASTER_PORT"},
};

// --- Errors ---

absl::Status Wrong(absl::string_view name, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", expected, ", found \"", found, "\""));
}

absl::Status Missing(absl::string_view name, absl::string_view expected, absl::string_view beside) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", expected, " beside ", beside, ", found none"));
}

// Transient: the operator takes the worker away, or gives it a place again.
absl::Status RankBeyondWorld(int world, absl::string_view found) {
  return absl::UnavailableError(absl::StrCat("RANK: expected 0..", world - 1, ", found \"", found,
                                             "\": this worker was removed from the job"));
}

absl::Status SeveralPerHost(absl::string_view name, absl::string_view expected,
                            absl::string_view found) {
  return Wrong(name,
               absl::StrCat(expected,
                            " (one worker uses all devices of its pod: "
                            "--nproc_per_node=1, nprocPerNode: \"1\")"),
               found);
}

absl::Status NothingSaysWhoLeads(absl::string_view nodes) {
  return absl::InvalidArgumentError(
      absl::StrCat("PET_NNODES: expected RANK, PET_NODE_RANK or PET_RDZV_ENDPOINT beside \"", nodes,
                   "\", to say which pod leads, found none of them (a PyTorchJob has them with a "
                   "Master or an elasticPolicy)"));
}

// --- Values ---

const std::string* FindVariable(const RankEnvironment& environment, absl::string_view name) {
  const auto it = environment.variables.find(name);
  return it == environment.variables.end() ? nullptr : &it->second;
}

absl::StatusOr<int> ParseNumber(absl::string_view name, absl::string_view text, int lowest,
                                int highest) {
  int number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < lowest || number > highest) {
    return Wrong(name, absl::StrCat(lowest, "..", highest), text);
  }
  return number;
}

absl::StatusOr<int> ReadWorldSize(const RankEnvironment& environment, absl::string_view name,
                                  absl::string_view beside) {
  const std::string* const text = FindVariable(environment, name);
  if (text == nullptr) return Missing(name, "the number of processes", beside);
  return ParseNumber(name, *text, 1, kMaxProcesses);
}

struct World {
  int least = 1;
  int most = 1;
};

// "4" or "2:4", as PET_NNODES has it.
absl::StatusOr<World> ParseNodes(absl::string_view text) {
  World world;
  const size_t colon = text.find(':');
  const absl::string_view least = text.substr(0, colon);
  const absl::string_view most = colon == absl::string_view::npos ? least : text.substr(colon + 1);
  const bool numbers = absl::SimpleAtoi(least, &world.least) && absl::SimpleAtoi(most, &world.most);
  if (!numbers || world.least < 1 || world.most < world.least || world.most > kMaxProcesses) {
    return Wrong("PET_NNODES", absl::StrCat("N or MIN:MAX within 1..", kMaxProcesses), text);
  }
  return world;
}

absl::StatusOr<World> ReadNodes(const RankEnvironment& environment, absl::string_view beside) {
  const std::string* const text = FindVariable(environment, "PET_NNODES");
  if (text == nullptr) return Missing("PET_NNODES", "the number of pods", beside);
  return ParseNodes(*text);
}

// The address in two variables, `port_offset` ports further. An IPv6 address may lack its brackets.
absl::StatusOr<Address> ReadAddress(const RankEnvironment& environment,
                                    absl::string_view host_variable,
                                    absl::string_view port_variable, absl::string_view beside,
                                    int port_offset) {
  const std::string* const host = FindVariable(environment, host_variable);
  if (host == nullptr) return Missing(host_variable, "the host of the first process", beside);
  const std::string* const number = FindVariable(environment, port_variable);
  if (number == nullptr) return Missing(port_variable, "the port of the first process", beside);
  ASSIGN_OR_RETURN(const int port, ParseNumber(port_variable, *number, 1, kMaxPort - port_offset));
  const bool bare = absl::StrContains(*host, ':') && !absl::StartsWith(*host, "[");
  const Address address{bare ? absl::StrCat("[", *host, "]") : *host, port + port_offset};
  if (!ParseAddress("", address.ToString()).ok()) {
    return Wrong(host_variable, "a host's name or address", *host);
  }
  return address;
}

// --- The cluster ---

struct Membership {
  int rank = 0;
  World world;
  Address leader;
  absl::string_view leader_source;  // where its port stands, for messages
};

// The chief has rank 0 and the workers follow, or worker r has rank r.
enum class Naming { kChiefFirst, kWorkersOnly };

Task TaskOfRank(Naming naming, int rank) {
  if (naming == Naming::kWorkersOnly) return {Role::kWorker, rank};
  return rank == 0 ? Task{Role::kChief, 0} : Task{Role::kWorker, rank - 1};
}

// `by_rank`: all addresses; or the leader's, with which the others register.
ClusterSpec MakeSpec(const Membership& member, Naming naming,
                     const std::vector<std::string>& by_rank) {
  ClusterSpec spec;
  spec.distributed = true;
  spec.min_workers = member.world.least;
  spec.self = TaskOfRank(naming, member.rank);
  if (by_rank.empty()) {
    spec.world_size = member.world.most;
    spec.addresses(TaskOfRank(naming, 0).role)[0] = member.leader.ToString();
    return spec;
  }
  spec.derived_addresses = by_rank.size() > 1;
  for (int r = 0; r < static_cast<int>(by_rank.size()); ++r) {
    const Task task = TaskOfRank(naming, r);
    spec.addresses(task.role)[task.index] = by_rank[r];
  }
  return spec;
}

bool Contains(const std::vector<absl::string_view>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A variable of `used` says the same.
bool SaidAlready(const RankEnvironment& environment, absl::string_view name,
                 const std::vector<absl::string_view>& used) {
  const std::string& value = *FindVariable(environment, name);
  return std::any_of(std::begin(kSynonyms), std::end(kSynonyms), [&](const auto& pair) {
    const absl::string_view other = name == pair.first ? pair.second : pair.first;
    const bool in_pair = name == pair.first || name == pair.second;
    return in_pair && Contains(used, other) && *FindVariable(environment, other) == value;
  });
}

// How one launcher numbers processes: the variables that are read, which task is which, and by
// which names of the leader (peer_addresses.h) its hosts are numbered as the processes are.
struct Launcher {
  std::string source;
  std::vector<absl::string_view> used;  // the rank's first
  Naming naming = Naming::kChiefFirst;
  std::vector<absl::string_view> host_names = {};
  // Addresses do not follow from the leader's where a host has several processes.
  bool several_per_host = false;
};

absl::StatusOr<ClusterSpec> FinishSpec(const RankEnvironment& environment, const Membership& member,
                                       const Launcher& launcher) {
  std::vector<std::string> by_rank;
  if (!launcher.several_per_host) {
    ASSIGN_OR_RETURN(by_rank, AddressesByRank(member.leader_source, member.leader,
                                              member.world.most, launcher.host_names));
  }
  ClusterSpec spec = MakeSpec(member, launcher.naming, by_rank);
  spec.source = launcher.source;
  for (const std::string& name : environment.Names()) {
    const bool used =
        Contains(launcher.used, name) || SaidAlready(environment, name, launcher.used);
    if (!used) spec.ignored.push_back(name);
  }
  return spec;
}

absl::Status SetLeaderFromFlag(const std::string& chief_address, Membership* member) {
  member->leader_source = "--chief_hosts";
  ASSIGN_OR_RETURN(member->leader, ParseAddress(member->leader_source, chief_address));
  return absl::OkStatus();
}

// Finds the leader in --chief_hosts or the variables, and adds them to `launcher`.
absl::Status SetLeader(const RankEnvironment& environment,
                       const std::optional<std::string>& chief_address, absl::string_view host,
                       absl::string_view port, int port_offset, Launcher* launcher,
                       Membership* member) {
  if (chief_address.has_value()) {
    absl::StrAppend(&launcher->source, " with --chief_hosts");
    return SetLeaderFromFlag(*chief_address, member);
  }
  launcher->used.insert(launcher->used.end(), {host, port});
  member->leader_source = port;
  ASSIGN_OR_RETURN(member->leader,
                   ReadAddress(environment, host, port, launcher->used.front(), port_offset));
  return absl::OkStatus();
}

// --- RANK ---

constexpr absl::string_view kLocalRank = "LOCAL_RANK";
constexpr absl::string_view kLocalSize = "LOCAL_WORLD_SIZE";

// Whether torchrun has started several on this host, which are allowed.
bool HasSeveralPerHost(const RankEnvironment& environment) {
  const std::string* const count = FindVariable(environment, kLocalSize);
  return environment.several_per_host && count != nullptr && *count != "1";
}

absl::Status CheckOneProcessPerHost(const RankEnvironment& environment) {
  for (const auto& [name, only] : {std::pair(kLocalRank, "0"), std::pair(kLocalSize, "1")}) {
    const std::string* const found = FindVariable(environment, name);
    if (found != nullptr && *found != only) return SeveralPerHost(name, only, *found);
  }
  // torchrun may have been told otherwise than by its variable.
  const std::string* const per_node = FindVariable(environment, "PET_NPROC_PER_NODE");
  int number = 0;
  if (per_node != nullptr && FindVariable(environment, kLocalSize) == nullptr &&
      absl::SimpleAtoi(*per_node, &number) && number > 1) {
    return SeveralPerHost("PET_NPROC_PER_NODE", "1", *per_node);
  }
  return absl::OkStatus();
}

bool UnderTorchrun(const RankEnvironment& environment) {
  return FindVariable(environment, kLocalRank) != nullptr;
}

// The range that PET_NNODES gives beside RANK. torchrun starts all processes anew when their number
// changes; an operator adds pods up to the largest number, and those that run keep their
// WORLD_SIZE.
absl::Status WidenWorld(const RankEnvironment& environment, World* world) {
  const std::string* const nodes = FindVariable(environment, "PET_NNODES");
  if (nodes == nullptr || !absl::StrContains(*nodes, ':')) return absl::OkStatus();
  ASSIGN_OR_RETURN(const World range, ParseNodes(*nodes));
  world->least = std::min(range.least, world->most);
  if (!UnderTorchrun(environment)) world->most = std::max(range.most, world->most);
  return absl::OkStatus();
}

// Operators up to 1.3 tell the master's pod that the master is at localhost, and the others its
// name.
void NameMaster(const RankEnvironment& environment, Address* leader) {
  const absl::string_view label = FirstLabel(environment.host_name);
  const bool pod = absl::EndsWith(label, kPyTorchMaster) && !UnderTorchrun(environment);
  if (pod && leader->host == "localhost") leader->host = std::string(label);
}

// The pods are numbered as their processes are, unless torchrun's rendezvous has given them other
// ranks.
absl::Status CheckRankIsThePods(const RankEnvironment& environment, const ClusterSpec& spec,
                                const Address& leader) {
  const std::string* const pod = FindVariable(environment, "PET_NODE_RANK");
  const std::string& rank = *FindVariable(environment, "RANK");
  const bool by_name = spec.derived_addresses && !leader.is_literal();
  if (!by_name || !UnderTorchrun(environment) || pod == nullptr || *pod == rank) {
    return absl::OkStatus();
  }
  return Wrong("RANK",
               absl::StrCat(*pod,
                            ", the pod's PET_NODE_RANK, by which the others find it "
                            "(torchrun with --rdzv_backend=static gives it that)"),
               rank);
}

absl::StatusOr<ClusterSpec> FromRank(const RankEnvironment& environment,
                                     const std::optional<std::string>& chief_address) {
  Launcher launcher{"RANK and WORLD_SIZE",
                    {"RANK", "WORLD_SIZE"},
                    Naming::kChiefFirst,
                    {kPyTorchMaster, kTrainJobNode},
                    HasSeveralPerHost(environment)};
  if (!launcher.several_per_host) RETURN_IF_ERROR(CheckOneProcessPerHost(environment));
  Membership member;
  ASSIGN_OR_RETURN(member.rank,
                   ParseNumber("RANK", *FindVariable(environment, "RANK"), 0, kMaxProcesses - 1));
  ASSIGN_OR_RETURN(member.world.most, ReadWorldSize(environment, "WORLD_SIZE", "RANK"));
  if (member.rank >= member.world.most) {
    return RankBeyondWorld(member.world.most, *FindVariable(environment, "RANK"));
  }
  member.world.least = member.world.most;
  RETURN_IF_ERROR(WidenWorld(environment, &member.world));
  const std::string* const agent_store = FindVariable(environment, "TORCHELASTIC_USE_AGENT_STORE");
  const int port_offset = agent_store != nullptr && *agent_store == "True" ? 1 : 0;
  RETURN_IF_ERROR(SetLeader(environment, chief_address, "MASTER_ADDR", "MASTER_PORT", port_offset,
                            &launcher, &member));
  if (!chief_address.has_value()) NameMaster(environment, &member.leader);
  ASSIGN_OR_RETURN(ClusterSpec spec, FinishSpec(environment, member, launcher));
  RETURN_IF_ERROR(CheckRankIsThePods(environment, spec, member.leader));
  return spec;
}

// --- PET_NODE_RANK ---

absl::StatusOr<ClusterSpec> FromNodeRank(const RankEnvironment& environment,
                                         const std::optional<std::string>& chief_address) {
  Launcher launcher{
      "PET_NODE_RANK and PET_NNODES", {"PET_NODE_RANK"}, Naming::kWorkersOnly, {kTrainJobNode}};
  Membership member;
  ASSIGN_OR_RETURN(member.world, ReadNodes(environment, "PET_NODE_RANK"));
  ASSIGN_OR_RETURN(member.rank,
                   ParseNumber("PET_NODE_RANK", *FindVariable(environment, "PET_NODE_RANK"), 0,
                               member.world.most - 1));
  RETURN_IF_ERROR(SetLeader(environment, chief_address, "PET_MASTER_ADDR", "PET_MASTER_PORT", 0,
                            &launcher, &member));
  return FinishSpec(environment, member, launcher);
}

// --- PET_RDZV_ENDPOINT ---

// The rank by the host's name; -1: the name does not end in a number.
int LastNumber(absl::string_view name) {
  const absl::string_view label = FirstLabel(name);
  size_t begin = label.size();
  while (begin > 0 && absl::ascii_isdigit(label[begin - 1])) --begin;
  int number = 0;
  return absl::SimpleAtoi(label.substr(begin), &number) ? number : -1;
}

// The pod at the endpoint leads, and has the number 0, if the endpoint has a name.
absl::Status CheckEndpoint(const RankEnvironment& environment, const Address& endpoint, int rank) {
  if (endpoint.is_literal()) return absl::OkStatus();
  const bool own = FirstLabel(endpoint.host) == FirstLabel(environment.host_name);
  if (own == (rank == 0)) return absl::OkStatus();
  return Wrong("PET_RDZV_ENDPOINT",
               absl::StrCat("the pod with the number 0, which leads (this one is ",
                            environment.host_name, ")"),
               endpoint.ToString());
}

absl::StatusOr<ClusterSpec> FromEndpoint(const RankEnvironment& environment,
                                         const std::optional<std::string>& chief_address) {
  constexpr absl::string_view kEndpoint = "PET_RDZV_ENDPOINT";
  Launcher launcher{
      "PET_RDZV_ENDPOINT and PET_NNODES", {kEndpoint}, Naming::kWorkersOnly, {kPyTorchWorker}};
  Membership member;
  ASSIGN_OR_RETURN(member.world, ReadNodes(environment, kEndpoint));
  member.rank = LastNumber(environment.host_name);
  if (member.rank < 0 || member.rank >= member.world.most) {
    return Wrong("the host's name",
                 absl::StrCat("one that ends in a number 0..", member.world.most - 1,
                              ", the rank beside PET_RDZV_ENDPOINT"),
                 environment.host_name);
  }
  if (chief_address.has_value()) {
    absl::StrAppend(&launcher.source, " with --chief_hosts");
    RETURN_IF_ERROR(SetLeaderFromFlag(*chief_address, &member));
    return FinishSpec(environment, member, launcher);
  }
  member.leader_source = kEndpoint;
  ASSIGN_OR_RETURN(member.leader, ParseAddress(kEndpoint, *FindVariable(environment, kEndpoint)));
  RETURN_IF_ERROR(CheckEndpoint(environment, member.leader, member.rank));
  return FinishSpec(environment, member, launcher);
}

// --- mpirun ---

absl::StatusOr<std::optional<ClusterSpec>> FromMpi(
    const RankEnvironment& environment, absl::string_view rank, absl::string_view size,
    const std::optional<std::string>& chief_address) {
  Launcher launcher{absl::StrCat(rank, " and ", size), {rank, size}, Naming::kChiefFirst};
  Membership member;
  ASSIGN_OR_RETURN(member.world.most, ReadWorldSize(environment, size, rank));
  member.world.least = member.world.most;
  ASSIGN_OR_RETURN(member.rank,
                   ParseNumber(rank, *FindVariable(environment, rank), 0, member.world.most - 1));
  if (!chief_address.has_value()) {
    if (member.world.most == 1) return std::nullopt;
    if (FindVariable(environment, "MASTER_ADDR") == nullptr) {
      return Missing("--chief_hosts",
                     "the address at which the process of rank 0 listens, or MASTER_ADDR and "
                     "MASTER_PORT,",
                     rank);
    }
  }
  RETURN_IF_ERROR(
      SetLeader(environment, chief_address, "MASTER_ADDR", "MASTER_PORT", 0, &launcher, &member));
  return FinishSpec(environment, member, launcher);
}

void AddVariables(absl::Span<const absl::string_view> names, RankEnvironment* environment) {
  for (const absl::string_view name : names) {
    const char* const value = std::getenv(std::string(name).c_str());
    if (value != nullptr) environment->variables.emplace(name, value);
  }
}

}  // namespace

RankEnvironment RankEnvironment::OfProcess() {
  RankEnvironment environment;
  const char* const pod = std::getenv("HOSTNAME");
  environment.host_name = pod != nullptr ? pod : HostName();
  AddVariables(kNames, &environment);
  AddVariables(kDetails, &environment);
  return environment;
}

std::vector<std::string> RankEnvironment::Names() const {
  std::vector<std::string> names;
  for (const absl::string_view name : kNames) {
    if (variables.contains(name)) names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<std::optional<ClusterSpec>> ParseRankEnvironment(
    const RankEnvironment& environment, const std::optional<std::string>& chief_address) {
  const auto has = [&](absl::string_view name) {
    return FindVariable(environment, name) != nullptr;
  };
  if (has("RANK")) return FromRank(environment, chief_address);
  if (has("PET_NODE_RANK")) return FromNodeRank(environment, chief_address);
  if (has("PET_RDZV_ENDPOINT")) return FromEndpoint(environment, chief_address);
  for (const auto& [rank, size] : {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                   std::pair("PMI_RANK", "PMI_SIZE")}) {
    if (has(rank)) return FromMpi(environment, rank, size, chief_address);
  }
  const std::string* const nodes = FindVariable(environment, "PET_NNODES");
  if (nodes == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const World world, ParseNodes(*nodes));
  if (world.most > 1) return NothingSaysWhoLeads(*nodes);
  return std::nullopt;
}

}  // namespace keelson
