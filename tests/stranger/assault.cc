#include "tests/stranger/assault.h"

#include <iterator>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/rpc/access.h"
#include "grpc/health/v1/health.pb.h"
#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kMostDepth = 4;
constexpr uint32_t kMostRepeated = 4;

constexpr const char* kTexts[] = {"",
                                  "worker-0",
                                  "chief",
                                  "127.0.0.66:1",
                                  "../../../etc/passwd",
                                  "/tmp/stranger",
                                  "hidden/kernel"};
constexpr int64_t kNumbers[] = {0,
                                1,
                                2,
                                3,
                                -1,
                                100,
                                1 << 20,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
constexpr double kReals[] = {0,
                             1,
                             -1,
                             1e30,
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};

template <typename T, size_t n>
T OneOf(const T (&values)[n], const Assault& assault) {
  return values[assault.Draw(n)];
}

int64_t RandomNumber(const Assault& assault) {
  if (assault.Draw(3) != 0) return OneOf(kNumbers, assault);
  return static_cast<int64_t>(assault.Draw(1u << 31)) << assault.Draw(32);
}

void Fill(const Assault& assault, int depth, Message* message);

void SetOne(const Assault& assault, int depth, const FieldDescriptor* field, Message* message) {
  const google::protobuf::Reflection& set = *message->GetReflection();
  const bool repeated = field->is_repeated();
  const int64_t number = RandomNumber(assault);
  const double real = OneOf(kReals, assault);
  // Sets the field, or adds to it.
  const auto put = [&](auto setter, auto adder, auto value) {
    repeated ? (set.*adder)(message, field, value) : (set.*setter)(message, field, value);
  };
  using R = google::protobuf::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&R::SetInt32, &R::AddInt32, static_cast<int32_t>(number));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&R::SetInt64, &R::AddInt64, number);
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&R::SetUInt32, &R::AddUInt32, static_cast<uint32_t>(number));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&R::SetUInt64, &R::AddUInt64, static_cast<uint64_t>(number));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&R::SetDouble, &R::AddDouble, real);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&R::SetFloat, &R::AddFloat, static_cast<float>(real));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&R::SetBool, &R::AddBool, number % 2 != 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return put(&R::SetEnumValue, &R::AddEnumValue, static_cast<int>(number % 5));
    case FieldDescriptor::CPPTYPE_STRING: {
      const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
      const std::string text =
          bytes ? assault.RandomBytes(assault.Draw(5000)) : OneOf(kTexts, assault);
      repeated ? set.AddString(message, field, text) : set.SetString(message, field, text);
      return;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Fill(assault, depth + 1,
                  repeated ? set.AddMessage(message, field) : set.MutableMessage(message, field));
  }
}

void Fill(const Assault& assault, int depth, Message* message) {
  if (depth > kMostDepth) return;
  for (int f = 0; f < message->GetDescriptor()->field_count(); ++f) {
    const FieldDescriptor* const field = message->GetDescriptor()->field(f);
    const uint32_t times = field->is_repeated() ? assault.Draw(kMostRepeated) : 1;
    for (uint32_t i = 0; i < times; ++i) SetOne(assault, depth, field, message);
  }
}

}  // namespace

std::unique_ptr<Http2Connection> Assault::Open() const {
  auto connection = Http2Connection::Open(source, port);
  return connection.ok() ? *std::move(connection) : nullptr;
}

std::string Assault::RandomBytes(size_t size) const {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)() >> 8);
  return bytes;
}

std::string PathOf(const google::protobuf::MethodDescriptor* method) {
  return absl::StrCat("/", method->service()->full_name(), "/", method->name());
}

std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::Descriptor* of_file :
       {v1::PushRequest::descriptor(), v1::JobStatus::descriptor(),
        grpc::health::v1::HealthCheckRequest::descriptor()}) {
    for (int s = 0; s < of_file->file()->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor* const service = of_file->file()->service(s);
      for (int m = 0; m < service->method_count(); ++m) methods.push_back(service->method(m));
    }
  }
  return methods;
}

bool IsOpenToStrangers(const std::string& path) {
  return absl::c_any_of(AccessTable(), [&](const AccessRow& row) {
    return row.method == path && row.allowed[0] == CallerKind::kStranger;
  });
}

std::string RandomMessage(const google::protobuf::Descriptor* type, const Assault& assault) {
  const std::unique_ptr<Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  Fill(assault, 0, message.get());
  return message->SerializeAsString();
}

}  // namespace keelson
