/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preloaded library that holds the clock by which the program measures deadlines until a file
 * exists:
 *
 *     LD_PRELOAD=held_clock.so CLOCK_HELD_UNTIL=file
 *
 * A test can thus inject a fault and then create the file: no deadline passes before, however busy
 * the machine is, and each process has its full deadline after it has seen the file. Run times are
 * measured with other clocks, which continue.
 */
#include <glib.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static gint64
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (gint64)t.tv_sec * G_USEC_PER_SEC + t.tv_nsec / 1000;
}

/* Returns the time at which *@into was first set, by any thread. */
static gint64
once(_Atomic gint64 *into)
{
    gint64 unset = 0;

    __atomic_compare_exchange_n((gint64 *)into, &unset, now_us(), FALSE, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return *into;
}

/* Replaces GLib's. */
gint64
g_get_monotonic_time(void)
{
    static _Atomic gint64 held_us, going_us;
    const char *file = getenv("CLOCK_HELD_UNTIL");
    const gint64 held = once(&held_us);

    if (file != NULL && going_us == 0 && access(file, F_OK) != 0)
        return held;
    return held + now_us() - once(&going_us);
}
