// The version of punctual, and the only place that states it: the build reads these three lines.
//
// Layer: none; any header may include this one. It knows nothing else.
#pragma once

#define PUNCTUAL_VERSION_MAJOR 0
#define PUNCTUAL_VERSION_MINOR 1
#define PUNCTUAL_VERSION_PATCH 0
