"""No atomic is wider than 32 bits: wider ones take a lock, and a library, on armel, mips, riscv32.

Every atomic in the headers is looked at; where a compiler for armel is installed, a program that uses the
sleeper, wakers and the pacer must link without libatomic, and run where qemu-user is there.
"""

import re
import shutil
import tempfile

from common import finish, run, tree

COMPILER = "arm-linux-gnueabi-g++"
NARROW = re.compile(r"std::(u?int32_t|u?int16_t|u?int8_t)|bool|int|word")
PROGRAM = """
#include <punctual/punctual.hpp>
int main() {
  using namespace std::chrono_literals;
  punctual::waker bell;
  bell.wake();
  if (punctual::sleep_for(bell, 1h).why != punctual::outcome::woken) return 1;
  punctual::set_default_tuning({});
  punctual::calibrate(1ms);
  if (punctual::sleep_for(1ms).why != punctual::outcome::reached) return 2;
  punctual::pacer beats{punctual::hz(1000)};
  beats.nudge(5us);
  beats.set_rate(punctual::hz(500));
  return beats.next() && beats.next() ? 0 : 3;
}
"""

problems = []
found = 0
for path in tree().under("include/punctual", ".hpp"):
    for number, line in tree().lines(path):
        for held in re.findall(r"std::atomic<([^<>]*)>", line):
            found += 1
            if not NARROW.fullmatch(held):
                problems.append(f"{path}:{number}: std::atomic<{held}> may be wider than 32 bits")
if found < 5:
    problems.append(f"only {found} atomics were found: this check is blind")
said = f"{found} atomics of at most 32 bits"
if shutil.which(COMPILER):
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        command = [COMPILER, "-std=c++20", "-O1", "-Wno-psabi", "-Iinclude", "-static", "-pthread"]
        code, _, errors = run(*command, "-x", "c++", "-", "-o", program, stdin=PROGRAM)
        if code:
            problems.append(errors[-3000:])
        elif shutil.which("qemu-arm-static"):
            code, _, errors = run("timeout", "60", "qemu-arm-static", program)
            said += ", and runs on armel"
            if code:
                problems.append(f"on armel the program answers {code}: {errors}")
        else:
            said += ", and links for armel"
else:
    said += f" ({COMPILER} is not installed: not linked)"
finish(problems, said)
