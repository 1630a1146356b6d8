#include "core/cluster/tf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/cluster/address.h"

namespace keelson {
namespace {

using Json = nlohmann::json;

// --- Errors ---

absl::Status Invalid(absl::string_view key, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("TF_CONFIG: ", key, ": expected ", expected, ", found ", found));
}

// The value as JSON, shortened.
std::string Dump(const Json& value) {
  constexpr size_t kMaxLength = 80;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxLength) text = absl::StrCat(text.substr(0, kMaxLength), "...");
  return text;
}

absl::Status SyntaxError(size_t byte, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("TF_CONFIG: not valid JSON at byte ", byte, ": ", reason));
}

absl::Status TooDeep(int limit) {
  return absl::InvalidArgumentError(
      absl::StrCat("TF_CONFIG: expected values within at most ", limit, " others, found more"));
}

absl::Status WrongType(absl::string_view key, absl::string_view expected, const Json& found) {
  return Invalid(key, expected, Dump(found));
}

absl::Status TwoClusters() {
  return absl::InvalidArgumentError(
      "TF_CONFIG: expected one of cluster and sparseCluster, found both");
}

absl::Status MasterBesideChief(const Json& master, const Json& chief) {
  return Invalid("cluster.master", "no master in a cluster that has a chief",
                 absl::StrCat(Dump(master), " beside ", Dump(chief)));
}

absl::Status EvaluatorWithMaster(absl::string_view type) {
  return Invalid("task.type",
                 "no evaluator in a cluster with a master, which evaluates by itself (name the job "
                 "\"chief\")",
                 absl::StrCat("\"", type, "\""));
}

absl::Status NoLeader(const Json& cluster) {
  return Invalid("cluster", "a chief or a worker to lead the job", Dump(cluster));
}

absl::Status TooManyChiefs(absl::string_view key, const Json& found) {
  return Invalid(absl::StrCat("cluster.", key), "one task", Dump(found));
}

absl::Status MissingTaskField(absl::string_view key, absl::string_view expected) {
  return Invalid(key, absl::StrCat(expected, " (a cluster is given)"), "none");
}

absl::Status NegativeIndex(const Json& found) { return Invalid("task.index", ">= 0", Dump(found)); }

absl::Status IndexOutside(absl::string_view expected, int found) {
  return Invalid("task.index", expected, absl::StrCat(found));
}

// Transient: the operator takes the worker away, or gives it a place again.
absl::Status RemovedWorker(absl::string_view expected, int found) {
  return absl::UnavailableError(absl::StrCat("TF_CONFIG: task.index: expected ", expected,
                                             ", found ", found,
                                             ": this worker was removed from the job"));
}

absl::Status OtherRole(Role expected, absl::string_view found) {
  return Invalid("task.type",
                 absl::StrCat("\"", RoleName(expected), "\", the role of this program"),
                 absl::StrCat("\"", found, "\""));
}

absl::Status NotInCluster(absl::string_view type, const Json& cluster) {
  return Invalid("task.type", "a job of the cluster",
                 absl::StrCat("\"", type, "\" with the cluster ", Dump(cluster)));
}

absl::Status NeedsCluster(absl::string_view type) {
  return Invalid("task.type", "chief, worker or evaluator when there is no cluster",
                 absl::StrCat("\"", type, "\""));
}

// --- JSON ---

// Builds the document and stores the first error instead of throwing it. The depth is limited, for
// the library writes a value into a message by recursion.
class DocumentBuilder : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  explicit DocumentBuilder(Json* document) : json_sax_dom_parser(*document, false) {}

  bool start_object(size_t size) { return Enter() && json_sax_dom_parser::start_object(size); }
  bool start_array(size_t size) { return Enter() && json_sax_dom_parser::start_array(size); }
  bool end_object() {
    --depth_;
    return json_sax_dom_parser::end_object();
  }
  bool end_array() {
    --depth_;
    return json_sax_dom_parser::end_array();
  }

  template <typename Exception>
  bool parse_error(size_t byte, const std::string& last_token, const Exception& error) {
    const absl::string_view reason = error.what();
    // Without the library's prefix.
    status_ =
        SyntaxError(byte, reason.substr(std::min(reason.find("syntax error"), reason.size())));
    return false;
  }
  const absl::Status& status() const { return status_; }

 private:
  static constexpr int kMaxDepth = 32;

  bool Enter() {
    if (++depth_ <= kMaxDepth) return true;
    status_ = TooDeep(kMaxDepth);
    return false;
  }

  int depth_ = 0;
  absl::Status status_;
};

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  Json document;
  DocumentBuilder builder(&document);
  Json::sax_parse(text.begin(), text.end(), &builder);
  RETURN_IF_ERROR(builder.status());
  if (!document.is_object()) return WrongType("the whole", "a JSON object", document);
  return document;
}

// The member, or null when it is absent or null.
const Json* Find(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

absl::StatusOr<const Json*> FindObject(const Json& object, const char* key) {
  const Json* member = Find(object, key);
  if (member != nullptr && !member->is_object()) return WrongType(key, "an object", *member);
  return member;
}

// --- cluster ---

absl::Status AddAddress(const std::string& key, int index, const Json& value,
                        TaskAddresses* addresses) {
  if (!value.is_string()) return WrongType(key, "\"host:port\"", value);
  const auto& text = value.get_ref<const std::string&>();
  RETURN_IF_ERROR(ParseAddress(absl::StrCat("TF_CONFIG: ", key), text).status());
  (*addresses)[index] = text;
  return absl::OkStatus();
}

absl::Status ReadMap(const std::string& key, const Json& map, TaskAddresses* addresses) {
  for (const auto& [name, value] : map.items()) {
    int index;
    if (!absl::SimpleAtoi(name, &index) || index < 0) {
      return Invalid(key, "a task index >= 0 as key", absl::StrCat("\"", name, "\""));
    }
    RETURN_IF_ERROR(AddAddress(absl::StrCat(key, "[", index, "]"), index, value, addresses));
  }
  return absl::OkStatus();
}

absl::Status ReadList(const std::string& key, const Json& list, TaskAddresses* addresses) {
  for (size_t i = 0; i < list.size(); ++i) {
    RETURN_IF_ERROR(
        AddAddress(absl::StrCat(key, "[", i, "]"), static_cast<int>(i), list[i], addresses));
  }
  return absl::OkStatus();
}

absl::StatusOr<TaskAddresses> ReadJob(const Json& cluster, const char* name) {
  TaskAddresses addresses;
  const Json* job = Find(cluster, name);
  if (job == nullptr) return addresses;
  const std::string key = absl::StrCat("cluster.", name);
  if (job->is_object()) {
    RETURN_IF_ERROR(ReadMap(key, *job, &addresses));
  } else if (job->is_array()) {
    RETURN_IF_ERROR(ReadList(key, *job, &addresses));
  } else {
    return WrongType(key, "a list or a map of addresses", *job);
  }
  return addresses;
}

bool HasMap(const Json& cluster) {
  for (const char* name : {"chief", "master", "ps", "worker", "evaluator"}) {
    const Json* job = Find(cluster, name);
    if (job != nullptr && job->is_object()) return true;
  }
  return false;
}

// Null: there is no cluster, or it is empty.
absl::StatusOr<const Json*> FindCluster(const Json& config) {
  ASSIGN_OR_RETURN(const Json* dense, FindObject(config, "cluster"));
  ASSIGN_OR_RETURN(const Json* sparse, FindObject(config, "sparseCluster"));
  if (dense != nullptr && sparse != nullptr) return TwoClusters();
  const Json* cluster = dense != nullptr ? dense : sparse;
  return cluster == nullptr || cluster->empty() ? nullptr : cluster;
}

absl::Status ReadChief(const Json& cluster, ClusterSpec* spec) {
  ASSIGN_OR_RETURN(spec->chief, ReadJob(cluster, "chief"));
  ASSIGN_OR_RETURN(const TaskAddresses master, ReadJob(cluster, "master"));
  if (!spec->chief.empty() && !master.empty()) {
    return MasterBesideChief(cluster["master"], cluster["chief"]);
  }
  if (!master.empty()) spec->chief = master;
  const char* key = master.empty() ? "chief" : "master";
  if (spec->chief.size() > 1) return TooManyChiefs(key, cluster[key]);
  return absl::OkStatus();
}

absl::Status ReadCluster(const Json& cluster, ClusterSpec* spec) {
  spec->distributed = true;
  spec->source = "TF_CONFIG";
  spec->sparse = HasMap(cluster);
  RETURN_IF_ERROR(ReadChief(cluster, spec));
  ASSIGN_OR_RETURN(spec->ps, ReadJob(cluster, "ps"));
  ASSIGN_OR_RETURN(spec->workers, ReadJob(cluster, "worker"));
  ASSIGN_OR_RETURN(spec->evaluators, ReadJob(cluster, "evaluator"));
  if (!spec->sparse && spec->chief.empty() && spec->workers.empty()) return NoLeader(cluster);
  return absl::OkStatus();
}

// --- task ---

// As written, so that messages can repeat it.
struct TaskEntry {
  std::optional<std::string> type;
  std::optional<Role> role;
  std::optional<int> index;
};

absl::Status ReadType(const Json& value, TaskEntry* entry) {
  constexpr absl::string_view kExpected = "chief, master, ps, worker or evaluator";
  if (!value.is_string()) return WrongType("task.type", kExpected, value);
  entry->type = value.get<std::string>();
  entry->role = ParseRole(*entry->type);
  if (!entry->role.has_value()) return WrongType("task.type", kExpected, value);
  return absl::OkStatus();
}

absl::Status ReadIndex(const Json& value, TaskEntry* entry) {
  int index;
  const bool numeric = value.is_number_integer() || value.is_string();
  const std::string text = value.is_string() ? value.get<std::string>() : Dump(value);
  if (!numeric || !absl::SimpleAtoi(text, &index)) {
    return WrongType("task.index", "an integer", value);
  }
  if (index < 0) return NegativeIndex(value);
  entry->index = index;
  return absl::OkStatus();
}

absl::StatusOr<TaskEntry> ReadTask(const Json& config) {
  TaskEntry entry;
  ASSIGN_OR_RETURN(const Json* task, FindObject(config, "task"));
  if (task == nullptr) return entry;
  if (const Json* type = Find(*task, "type")) RETURN_IF_ERROR(ReadType(*type, &entry));
  if (const Json* index = Find(*task, "index")) RETURN_IF_ERROR(ReadIndex(*index, &entry));
  return entry;
}

// Sets the own role, which the program of role `program` must be able to run.
absl::Status SetRole(const TaskEntry& task, std::optional<Role> program, ClusterSpec* spec) {
  if (!task.role.has_value()) return absl::OkStatus();
  spec->self.role = *task.role;
  if (program.has_value() && !spec->RunBy(*program)) return OtherRole(*program, *task.type);
  return absl::OkStatus();
}

// "0", "0..3" or "1, 4".
std::string IndexesText(const TaskAddresses& addresses) {
  const int last = addresses.rbegin()->first;
  const bool dense = static_cast<size_t>(last) + 1 == addresses.size();
  if (dense) return last == 0 ? "0" : absl::StrCat("0..", last);
  return absl::StrJoin(addresses, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first);
  });
}

absl::Status CheckMembership(const Json& cluster, absl::string_view type, const ClusterSpec& spec) {
  const Task& self = spec.self;
  if (self.role == Role::kChief && self.index > 0) {
    return IndexOutside(absl::StrCat("0 for the ", RoleName(self.role)), self.index);
  }
  const TaskAddresses& peers = spec.addresses(self.role);
  // No task calls evaluators, so they may be omitted.
  if (self.role == Role::kEvaluator && peers.empty()) return absl::OkStatus();
  if (peers.empty()) return spec.sparse ? absl::OkStatus() : NotInCluster(type, cluster);
  if (self.role == Role::kWorker && !spec.sparse && self.index > peers.rbegin()->first) {
    return RemovedWorker(IndexesText(peers), self.index);
  }
  if (!peers.contains(self.index)) return IndexOutside(IndexesText(peers), self.index);
  return absl::OkStatus();
}

// A ps of a dynamic job is given a list of only itself.
void GiveSoleServerItsIndex(const Json& cluster, ClusterSpec* spec) {
  const Json* ps = Find(cluster, "ps");
  if (!spec->sparse || spec->self.role != Role::kPs || ps == nullptr) return;
  if (ps->is_array() && ps->size() == 1) spec->ps = {{spec->self.index, spec->ps.begin()->second}};
}

absl::Status SetSelf(const Json& cluster, const TaskEntry& task, ClusterSpec* spec) {
  if (!task.role.has_value()) return MissingTaskField("task.type", "the type of this task");
  if (!task.index.has_value()) return MissingTaskField("task.index", "the index of this task");
  if (*task.role == Role::kEvaluator && Find(cluster, "master") != nullptr) {
    return EvaluatorWithMaster(*task.type);
  }
  spec->self.index = *task.index;
  GiveSoleServerItsIndex(cluster, spec);
  return CheckMembership(cluster, *task.type, *spec);
}

absl::Status CheckSelfWithoutCluster(const TaskEntry& task) {
  if (task.role == Role::kPs) return NeedsCluster(*task.type);
  const int index = task.index.value_or(0);
  if (index != 0) return IndexOutside("0 when there is no cluster", index);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClusterSpec> ParseTfConfig(absl::string_view json,
                                          std::optional<Role> expected_role) {
  ClusterSpec spec;
  spec.self = {expected_role.value_or(Role::kChief), 0};
  if (absl::StripAsciiWhitespace(json).empty()) return spec;
  ASSIGN_OR_RETURN(const Json config, ParseJson(json));
  RETURN_IF_ERROR(FindObject(config, "service").status());
  ASSIGN_OR_RETURN(const Json* cluster, FindCluster(config));
  if (cluster != nullptr) RETURN_IF_ERROR(ReadCluster(*cluster, &spec));
  ASSIGN_OR_RETURN(const TaskEntry task, ReadTask(config));
  RETURN_IF_ERROR(SetRole(task, expected_role, &spec));
  if (cluster != nullptr) {
    RETURN_IF_ERROR(SetSelf(*cluster, task, &spec));
  } else {
    RETURN_IF_ERROR(CheckSelfWithoutCluster(task));
  }
  return spec;
}

}  // namespace keelson
