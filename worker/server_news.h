// What a worker learns of its shards' addresses while it works.
#ifndef KEELSON_WORKER_SERVER_NEWS_H_
#define KEELSON_WORKER_SERVER_NEWS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace keelson {

// Thread-safe.
class ServerNews {
 public:
  using Addresses = std::vector<std::string>;  // by shard
  using Watcher = std::function<void(const Addresses&)>;

  // The version that the worker knows, for its requests; 0: none.
  uint64_t version() const;

  // The worker works with this version of the addresses (GetModelResponse). What comes before is
  // ignored, for the chief tells it again.
  void Begin(uint64_t version);
  // An answer of the chief has brought this version; without addresses when the worker knows it. An
  // older one than the known is ignored.
  void Note(uint64_t version, const google::protobuf::RepeatedPtrField<std::string>& addresses);
  // The chief may have been replaced by one that numbers its versions anew, and tells them all.
  void Forget();

  // `watcher` gets the newest addresses whenever they have changed since Begin, on the thread that
  // notes them, and at once if they have changed already. It must not call this. Null: nobody is
  // told any more once this has returned.
  void Watch(Watcher watcher);

 private:
  mutable Mutex mu_;
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<Addresses> newest_ ABSL_GUARDED_BY(mu_);  // since Begin
  Watcher watcher_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SERVER_NEWS_H_
