// Mistake that would live without it: a library that uses punctual cannot be loaded into a running
// program, since its thread state wants a place in the threads that are already there.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/skip.hpp"

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include <dlfcn.h>

using namespace std::chrono_literals;

TEST_CASE("a library that is loaded later waits in old threads and in new ones",
          "[contract][life]") {
  std::atomic<int (*)(long long)> waits{nullptr};
  std::atomic<int> old_thread{-1};
  std::thread old([&] {
    while (waits == nullptr) std::this_thread::sleep_for(1ms);
    old_thread = waits.load()(2'000'000);
  });
  void* plugin = ::dlopen(PUNCTUAL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  INFO("dlopen: " << (plugin == nullptr ? ::dlerror() : "loaded"));
  if (plugin == nullptr) waits = +[](long long) { return 2; };
  CHECK(plugin != nullptr);
  if (plugin != nullptr) {
    waits = reinterpret_cast<int (*)(long long)>(::dlsym(plugin, "plugin_waits"));
  }
  old.join();
  CHECK(old_thread == 0);
  int new_thread = -1;
  std::thread([&] { new_thread = waits.load()(2'000'000); }).join();
  CHECK(new_thread == 0);
  CHECK(waits.load()(1'000'000) == 0);
}

TEST_CASE("such a library does not ask for static thread storage", "[contract][life][G4]") {
  std::FILE* pipe = ::popen("readelf -d '" PUNCTUAL_PLUGIN "' 2>/dev/null", "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) text += line;
  ::pclose(pipe);
  if (text.find("DYNAMIC") == std::string::npos && text.find("NEEDED") == std::string::npos) {
    return support::skip("readelf is not here");
  }
  CHECK(text.find("STATIC_TLS") == std::string::npos);
}
