// Whether native waits end on ticks: period, phase, extra ticks.
//
// Layer L2. Knows no clock and no system.
#pragma once

#include <punctual/platform/seam.hpp>

namespace punctual {

/// The instants at which native waits can end, once that is known.
class lattice_estimator {
 public:
  constexpr bool holds() const noexcept { return false; }
};

}  // namespace punctual
