"""The lines that examples/simh/README.md tells a maintainer of simh to write compile as C beside the names
that sim_timer.c has, and do what it says: in the build without asynchronous input and output, and with it.

Mistake that would live without it: instructions that nobody has followed. Usage: readme.py C_COMPILER
C++_COMPILER
"""

import pathlib
import re
import subprocess
import sys
import tempfile

cc, cxx = sys.argv[1:]
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/simh"
blocks = re.findall(r"^ *```\n(.*?)^ *```", (EXAMPLE / "README.md").read_text(), re.M | re.S)


def block(word):
    found = [text for text in blocks if word in text]
    if len(found) != 1:
        sys.exit(f"README.md has {len(found)} pieces of code with {word}, not one")
    return found[0]


# What stands around those lines in sim_timer.c, sim_defs.h and scp.c.
SIM_TIMER = f"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
typedef unsigned int uint32;
typedef int t_bool;
#define FALSE 0
#define TRUE 1
{block('#include "punctual_simh.h"')}
static uint32 sim_os_sleep_min_ms, sim_os_sleep_inc_ms, sim_os_clock_resoluton_ms;
volatile t_bool sim_idle_wait = FALSE;
uint32 sim_os_msec (void);
uint32 sim_os_ms_sleep (unsigned int msec);
uint32 sim_os_ms_sleep_init (void);
uint32 sim_idle_ms_sleep (unsigned int msec);

static t_bool sim_timer_init (void)
{{
uint32 found = sim_os_ms_sleep_init ();
{block("sim_os_sleep_min_ms =")}
return found == 1 && sim_os_sleep_min_ms == 1 && sim_os_sleep_inc_ms == 1 && sim_os_clock_resoluton_ms == 1;
}}

static int wrong = 0;
static void check (int holds, const char* what) {{ if (!holds) {{ printf ("wrong: %s\\n", what); ++wrong; }} }}

#if defined(SIM_ASYNCH_IO)
typedef struct UNIT {{ struct UNIT* a_next; }} UNIT;
static UNIT last, work;
#define QUEUE_LIST_END (&last)
UNIT* volatile sim_asynch_queue = QUEUE_LIST_END;
static int updates = 0;
#define AIO_QUEUE_VAL sim_asynch_queue
#define AIO_UPDATE_QUEUE do {{ ++updates; sim_asynch_queue = QUEUE_LIST_END; }} while (0)
pthread_mutex_t sim_asynch_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_asynch_wake = PTHREAD_COND_INITIALIZER;
int sim_asynch_check = 7;
{block("sim_asynch_pending")}
static void* other_thread (void* unused)
{{
usleep (20000);
sim_asynch_queue = &work;
pthread_mutex_lock (&sim_asynch_lock);
if (sim_idle_wait)
    pthread_cond_signal (&sim_asynch_wake);
pthread_mutex_unlock (&sim_asynch_lock);
return unused;
}}
static void wake (void)
{{
pthread_t thread;
uint32 from = sim_os_msec ();
check (updates == 0, "a sleep that nobody ended updates the queue");
pthread_create (&thread, NULL, other_thread, NULL);
sim_idle_ms_sleep (20000);
check (sim_os_msec () - from < 10000, "queued work does not end the sleep");
check (updates == 1 && sim_asynch_check == 0, "the queue is not updated after a sleep that was ended");
pthread_join (thread, NULL);
}}
#else
static void wake (void) {{}}
#endif

int main (void)
{{
uint32 from, slept = 0;
int i;
check (sim_timer_init (), "the start finds another host");
from = sim_os_msec ();
for (i = 0; i < 20; i++)
    slept += sim_idle_ms_sleep (2) + sim_os_ms_sleep (1);
check (slept >= 59 && slept <= sim_os_msec () - from + 1, "the sleeps do not add up");
check (sim_idle_wait == FALSE, "still waiting");
wake ();
return wrong;
}}
"""

with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    (folder / "sim_timer.c").write_text(SIM_TIMER)
    for build in ([], ["-DSIM_ASYNCH_IO"]):
        for words in (
            [cxx, "-std=c++20", "-O1", f"-I{ROOT}/include", *build, "-c", EXAMPLE / "punctual_simh.cpp", "-o", "p.o"],
            [cc, "-Wall", "-Wextra", "-Werror", f"-I{EXAMPLE}", "-DSIM_PUNCTUAL", *build, "-c", "sim_timer.c"],
            [cc, "sim_timer.o", "p.o", "-lstdc++", "-lm", "-lpthread", "-o", "simulator"],
            ["./simulator"],
        ):
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        print("as README.md says" + "".join(f", with {word}" for word in build))
