#include "core/cluster/consistency.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace keelson {
namespace {

// More replicas than this are a typing error; a round's tickets are kept in memory.
constexpr int64_t kMaxReplicas = 1 << 20;
// Far beyond any use, and far from where sums of clocks overflow.
constexpr int64_t kMaxStaleness = 1 << 30;

absl::Status FieldError(absl::string_view path, absl::string_view field, absl::string_view expected,
                        int64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".", field, ": expected ", expected, ", found ", found));
}

absl::Status UnknownText(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("consistency mode: expected async, ssp:STALENESS, sync:REPLICAS or "
                   "sync:REPLICAS/TOTAL, found \"",
                   text, "\""));
}

// "3" or "3/5".
bool ParseReplicas(absl::string_view text, v1::ConsistencyMode::Synchronous* synchronous) {
  int64_t aggregate = 0;
  int64_t total = 0;
  const size_t slash = text.find('/');
  if (!absl::SimpleAtoi(text.substr(0, slash), &aggregate)) return false;
  if (slash != absl::string_view::npos) {
    // A total that is given in the text counts: 0 does not mean "as many as".
    if (!absl::SimpleAtoi(text.substr(slash + 1), &total) || total == 0) return false;
  }
  synchronous->set_replicas_to_aggregate(aggregate);
  synchronous->set_total_replicas(total);
  return true;
}

absl::StatusOr<ConsistencyMode> FromSynchronous(const v1::ConsistencyMode::Synchronous& proto,
                                                absl::string_view path) {
  const int64_t aggregate = proto.replicas_to_aggregate();
  const int64_t total = proto.total_replicas() == 0 ? aggregate : proto.total_replicas();
  if (aggregate < 1 || aggregate > kMaxReplicas) {
    return FieldError(path, "synchronous.replicas_to_aggregate", absl::StrCat("1..", kMaxReplicas),
                      aggregate);
  }
  if (total < aggregate || total > kMaxReplicas) {
    return FieldError(path, "synchronous.total_replicas",
                      absl::StrCat(aggregate, " (replicas_to_aggregate)..", kMaxReplicas), total);
  }
  ConsistencyMode mode;
  mode.kind = ConsistencyMode::kSynchronous;
  mode.replicas_to_aggregate = aggregate;
  mode.total_replicas = total;
  return mode;
}

}  // namespace

absl::StatusOr<ConsistencyMode> ConsistencyMode::Parse(absl::string_view text) {
  v1::ConsistencyMode proto;
  absl::string_view rest = text;
  if (text == "async") {
    proto.mutable_async();
  } else if (absl::ConsumePrefix(&rest, "ssp:")) {
    int64_t staleness = 0;
    if (!absl::SimpleAtoi(rest, &staleness)) return UnknownText(text);
    proto.mutable_bounded_staleness()->set_staleness(staleness);
  } else if (!absl::ConsumePrefix(&rest, "sync:") ||
             !ParseReplicas(rest, proto.mutable_synchronous())) {
    return UnknownText(text);
  }
  return FromProto(proto);
}

std::string ConsistencyMode::ToString() const {
  switch (kind) {
    case kAsync:
      return "async";
    case kBoundedStaleness:
      return absl::StrCat("ssp:", staleness);
    case kSynchronous:
      return absl::StrCat("sync:", replicas_to_aggregate,
                          contested() ? absl::StrCat("/", total_replicas) : "");
  }
  return "";
}

absl::StatusOr<ConsistencyMode> ConsistencyMode::FromProto(const v1::ConsistencyMode& proto,
                                                           absl::string_view path) {
  ConsistencyMode mode;
  switch (proto.mode_case()) {
    case v1::ConsistencyMode::kBoundedStaleness:
      mode.kind = kBoundedStaleness;
      mode.staleness = proto.bounded_staleness().staleness();
      if (mode.staleness < 0 || mode.staleness > kMaxStaleness) {
        return FieldError(path, "bounded_staleness.staleness", absl::StrCat("0..", kMaxStaleness),
                          mode.staleness);
      }
      return mode;
    case v1::ConsistencyMode::kSynchronous:
      return FromSynchronous(proto.synchronous(), path);
    case v1::ConsistencyMode::kAsync:
    case v1::ConsistencyMode::MODE_NOT_SET:
      break;
  }
  return mode;
}

v1::ConsistencyMode ConsistencyMode::ToProto() const {
  v1::ConsistencyMode proto;
  switch (kind) {
    case kAsync:
      proto.mutable_async();
      break;
    case kBoundedStaleness:
      proto.mutable_bounded_staleness()->set_staleness(staleness);
      break;
    case kSynchronous:
      proto.mutable_synchronous()->set_replicas_to_aggregate(replicas_to_aggregate);
      proto.mutable_synchronous()->set_total_replicas(total_replicas);
      break;
  }
  return proto;
}

}  // namespace keelson
