// expects: deleted function
// Mistake that would live without it: 59.94 as a double, whose loop drifts, or a refusal without
// advice.
#include <punctual/rate.hpp>

punctual::rate video = punctual::hz(59.94);
