// What one thread of the stranger works with, and the methods that it knows.
#ifndef KEELSON_TESTS_STRANGER_ASSAULT_H_
#define KEELSON_TESTS_STRANGER_ASSAULT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/stranger/http2_connection.h"

namespace keelson {

struct Assault {
  std::string source;  // the address that the stranger calls from
  int port = 0;        // of the server
  absl::Time end;
  std::minstd_rand* random = nullptr;

  bool Goes() const { return absl::Now() < end; }
  // Null: there is no connection to be had.
  std::unique_ptr<Http2Connection> Open() const;
  // A number below `limit`.
  uint32_t Draw(uint32_t limit) const { return static_cast<uint32_t>((*random)()) % limit; }
  std::string RandomBytes(size_t size) const;
};

// "/keelson.v1.ParameterService/Pull".
std::string PathOf(const google::protobuf::MethodDescriptor* method);

// Every method of our services and of the health service.
std::vector<const google::protobuf::MethodDescriptor*> AllMethods();

// Whether the access table lets strangers call it; false for what the table does not list.
bool IsOpenToStrangers(const std::string& path);

// A message of the type, all of whose fields have values that are plausible, extreme or faked.
std::string RandomMessage(const google::protobuf::Descriptor* type, const Assault& assault);

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_ASSAULT_H_
