// A server that echoes requests, and its clients, for tests of HttpServer.
#ifndef KEELSON_CORE_HTTP_SERVER_TESTING_H_
#define KEELSON_CORE_HTTP_SERVER_TESTING_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/http/http_testing.h"
#include "core/http/server.h"

namespace keelson {

// Answers with the path, the body and the client.
HttpResponse Echo(const HttpRequest& request);

// The defaults, with "--port_flag" in errors.
HttpServer::Options PortFlag();

std::unique_ptr<HttpServer> StartOrDie(const HttpServer::Options& options = PortFlag(),
                                       HttpServer::Handler handler = Echo);

HttpAnswer Ask(const HttpServer& server, absl::string_view method, absl::string_view target,
               absl::string_view headers = "", absl::string_view body = "");

HttpConnection ConnectOrDie(const HttpServer& server);
HttpConnection ConnectSlowlyOrDie(const HttpServer& server);  // HttpConnection::SlowlyTo

// Sends the bytes, and returns all that the server answers.
std::string Exchanged(const HttpServer& server, absl::string_view bytes);

// Of a directory such as /proc/self/task.
int CountEntries(const char* path);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_SERVER_TESTING_H_
