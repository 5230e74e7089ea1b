# What the scripts of this folder share: where things are kept, and how a run that cannot happen
# says so.
# shellcheck disable=SC2034  # the scripts that include this use the names
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${PUNCTUAL_KERNEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/punctual-kernels}
mkdir -p "$cache"

# Ends the script as "not run" (ctest shows 77 as skipped), or as failed where
# PUNCTUAL_KERNELS_REQUIRED is set: a machine that has installed everything must not turn green by
# skipping.
skip() {
  echo "SKIPPED: $*" >&2
  [[ -n ${PUNCTUAL_KERNELS_REQUIRED:-} ]] && exit 1
  exit 77
}
