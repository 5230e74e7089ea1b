// Everything at once.
//
// Layer L4. For programs that want one include; `punctual/sleep.hpp` alone compiles about as fast
// as <chrono>. The simulated machines (`punctual/testing/...`) are included by name.
#pragma once

#include <punctual/calibration.hpp>
#include <punctual/host.hpp>
#include <punctual/interrupt.hpp>
#include <punctual/limiter.hpp>
#include <punctual/pacer.hpp>
#include <punctual/rate.hpp>
#include <punctual/receipt.hpp>
#include <punctual/sleep.hpp>
#include <punctual/sleeper.hpp>
#include <punctual/statistics.hpp>
#include <punctual/time.hpp>
#include <punctual/tuning.hpp>
#include <punctual/version.hpp>
#include <punctual/waker.hpp>
