#include "dashboard/runs/run_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::Duration kScanInterval = absl::Seconds(5);
constexpr absl::Duration kQuietInterval = absl::Seconds(5);
constexpr size_t kMaxRuns = 500;
constexpr size_t kMaxIdBytes = 100;
constexpr const char* kRunFiles[] = {"status.json", "train_config.textproto", "checkpoint", "DONE",
                                     "eval/metrics.jsonl"};

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string NameOf(const std::string& path) { return BaseName(WithoutSlash(path)); }

// The name of the model directory with the local launcher and the cluster manifests.
constexpr char kModel[] = "model";

// The name "model" is not specific: the parent directory's name is shown.
std::string ShownName(const std::string& path, const std::string& job_name) {
  const std::string name = NameOf(path);
  if (name != kModel) return name;
  if (!job_name.empty()) return job_name;
  const std::string parent = NameOf(DirectoryOf(WithoutSlash(path)));
  return parent.empty() || parent == "/" || parent == "." || parent == ".." ? name : parent;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunSet>> RunSet::Create(Options options) {
  std::unique_ptr<RunSet> set(new RunSet(std::move(options)));
  const Options& given = set->options_;
  if (!given.model_dir.empty()) {
    if (!given.live) {
      const auto names = given.file_system->List(WithoutSlash(given.model_dir));
      if (!names.ok()) {
        return absl::Status(names.status().code(),
                            absl::StrCat("--model_dir: ", names.status().message()));
      }
    }
    set->Add(NameOf(given.model_dir), ShownName(given.model_dir, given.job_name), given.model_dir,
             given.live);
  }
  for (const std::string& flag : given.runs) RETURN_IF_ERROR(set->AddFlag(flag));
  set->ScanFolders();
  return set;
}

absl::Status RunSet::AddFlag(const std::string& flag) {
  const size_t equals = flag.find('=');
  const bool named =
      equals != std::string::npos && flag.substr(0, equals).find('/') == std::string::npos;
  const std::string name = named ? flag.substr(0, equals) : "";
  const std::string path = WithoutSlash(named ? flag.substr(equals + 1) : flag);
  if (path.empty() || (named && name.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--runs: expected NAME=DIR or DIR, found \"", flag, "\""));
  }
  const auto names = options_.file_system->List(path);
  if (!names.ok()) {
    return absl::Status(names.status().code(), absl::StrCat("--runs: ", names.status().message()));
  }
  if (IsRun(path)) {
    Add(named ? name : NameOf(path), named ? name : ShownName(path, ""), path, /*live=*/false);
  } else {
    folders_.push_back({name, path});
  }
  return absl::OkStatus();
}

bool RunSet::IsRun(const std::string& path) const {
  return std::any_of(std::begin(kRunFiles), std::end(kRunFiles), [&](const char* file) {
    return options_.file_system->Exists(JoinPath(path, file)).value_or(false);
  });
}

void RunSet::Add(const std::string& id_name, const std::string& name, const std::string& path,
                 bool live) {
  const std::string model_dir = WithoutSlash(path);
  MutexLock lock(&mu_);
  const bool known = std::any_of(runs_.begin(), runs_.end(), [&](const std::shared_ptr<Run>& run) {
    return run->model_dir() == model_dir;
  });
  if (known) return;
  if (runs_.size() >= kMaxRuns) {
    if (!full_) LogWarning("more than ", kMaxRuns, " runs, the others are not shown: ", model_dir);
    full_ = true;
    return;
  }
  Run::Options options;
  options.id = IdOf(id_name);
  options.name = name;
  options.model_dir = model_dir;
  options.live = live;
  if (model_dir == WithoutSlash(options_.model_dir)) {
    options.config_text = options_.config_text;
    options.script = options_.script;
  }
  options.file_system = options_.file_system;
  options.clock = options_.clock;
  runs_.push_back(std::make_shared<Run>(std::move(options)));
}

std::string RunSet::IdOf(absl::string_view name) const {
  std::string id(name.substr(0, kMaxIdBytes));
  for (char& c : id) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '-';
  }
  // A browser removes "." and ".." from an address.
  if (id.find_first_not_of('.') == std::string::npos) id = "run";
  const auto taken = [&](const std::string& candidate) {
    for (const std::shared_ptr<Run>& run : runs_) {
      if (run->id() == candidate) return true;
    }
    return false;
  };
  if (!taken(id)) return id;
  int number = 2;
  while (taken(absl::StrCat(id, "-", number))) ++number;
  return absl::StrCat(id, "-", number);
}

void RunSet::ScanFolders() {
  const absl::Duration now = options_.clock->Monotonic();
  if (scanned_.has_value() && now - *scanned_ < kScanInterval) return;
  scanned_ = now;
  for (const Folder& folder : folders_) ScanFolder(folder);
}

void RunSet::ScanFolder(const Folder& folder) {
  const auto names = options_.file_system->List(folder.path);
  if (!names.ok()) return;
  const bool named = !folder.name.empty();
  if (IsRun(folder.path)) {
    Add(named ? folder.name : NameOf(folder.path), named ? folder.name : ShownName(folder.path, ""),
        folder.path, /*live=*/false);
    return;
  }
  for (const std::string& name : *names) {
    std::string path = JoinPath(folder.path, name);
    if (!IsRun(path)) path = JoinPath(path, kModel);
    if (!IsRun(path)) continue;
    if (name == kModel) {
      Add(named ? folder.name : name, named ? folder.name : ShownName(path, ""), path,
          /*live=*/false);
    } else {
      const std::string full_name = named ? absl::StrCat(folder.name, "/", name) : name;
      Add(full_name, full_name, path, /*live=*/false);
    }
  }
}

bool RunSet::Due(const Run& run) {
  if (run.live()) return true;
  bool quiet = false;
  run.Read([&](const RunData& data) {
    quiet = data.state.over() || data.state.state == "stopped" || data.status.is_null();
  });
  const auto polled = polled_.find(run.id());
  return !quiet || polled == polled_.end() ||
         options_.clock->Monotonic() - polled->second >= kQuietInterval;
}

bool RunSet::Poll() {
  ScanFolders();
  bool more = false;
  for (const std::shared_ptr<Run>& run : All()) {
    if (!Due(*run)) continue;
    if (run->Poll()) {
      polled_.erase(run->id());
      more = true;
    } else {
      polled_[run->id()] = options_.clock->Monotonic();
    }
  }
  return more;
}

std::vector<std::shared_ptr<Run>> RunSet::All() const {
  MutexLock lock(&mu_);
  return runs_;
}

std::shared_ptr<Run> RunSet::Find(absl::string_view id) const {
  MutexLock lock(&mu_);
  for (const std::shared_ptr<Run>& run : runs_) {
    if (run->id() == id) return run;
  }
  return nullptr;
}

}  // namespace keelson
