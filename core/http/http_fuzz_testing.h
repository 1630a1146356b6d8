// Requests that careless handlers stumble over, for tests by the thousand.
#ifndef KEELSON_CORE_HTTP_HTTP_FUZZ_TESTING_H_
#define KEELSON_CORE_HTTP_HTTP_FUZZ_TESTING_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/http/message.h"

namespace keelson {

// A request that makes sense, of which nasty ones are made.
struct HttpSample {
  std::string method = "GET";
  std::string path;
  // Names and good values.
  std::vector<std::pair<std::string, std::string>> query;
  std::string body;
};

// Makes the same requests for the same seed: a sample in which one to three things are spoilt.
// Parts of the path become forms of "..", absolute paths, empty or huge; parameters get values of
// the wrong kind or size, are dropped, repeated or invented; bodies become broken, deep or huge
// JSON; methods and headers change. For one thread.
class NastyRequests {
 public:
  // `samples`: at least one.
  NastyRequests(uint64_t seed, std::vector<HttpSample> samples);

  HttpRequest Next();

 private:
  size_t Choose(size_t count);
  std::string NastyText();
  std::string NastyBody(const std::string& good);
  std::string RandomBytes();
  void SpoilPath(HttpRequest* request);
  void SpoilQuery(HttpRequest* request);
  void SpoilRest(HttpRequest* request);

  const std::vector<HttpSample> samples_;
  std::mt19937_64 random_;
};

// The request as a client sends it: the path and the query escaped, its headers, Content-Length
// where it has a body.
std::string RequestBytes(const HttpRequest& request);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_HTTP_FUZZ_TESTING_H_
