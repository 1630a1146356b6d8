#include "worker/server_news.h"

#include <utility>

namespace keelson {

uint64_t ServerNews::version() const {
  MutexLock lock(&mu_);
  return version_;
}

void ServerNews::Begin(uint64_t version) {
  MutexLock lock(&mu_);
  begun_ = true;
  version_ = version;
  newest_.reset();
}

void ServerNews::Note(uint64_t version,
                      const google::protobuf::RepeatedPtrField<std::string>& addresses) {
  MutexLock lock(&mu_);
  if (!begun_ || version <= version_ || addresses.empty()) return;
  version_ = version;
  newest_.emplace(addresses.begin(), addresses.end());
  if (watcher_ != nullptr) watcher_(*newest_);
}

void ServerNews::Forget() {
  MutexLock lock(&mu_);
  version_ = 0;
}

void ServerNews::Watch(Watcher watcher) {
  MutexLock lock(&mu_);
  watcher_ = std::move(watcher);
  if (watcher_ != nullptr && newest_.has_value()) watcher_(*newest_);
}

}  // namespace keelson
