// expects: precondition_broken|must be initialized by a constant expression
// Mistake that would live without it: a rate of zero in a constant, found only when the loop hangs.
#include <punctual/rate.hpp>

constexpr punctual::rate never = punctual::hz(0);
