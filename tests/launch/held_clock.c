/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program, this holds the clock that its deadlines are measured with until a file
 * is there:
 *
 *     LD_PRELOAD=held_clock.so CLOCK_HELD_UNTIL=file
 *
 * So a test can bring about what a deadline is there for, and make the file then: no deadline is
 * over before, however busy the machine is, and each process has all of it after it has seen the
 * file. What runs take is measured with other clocks, which go on.
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

/* @into, once it is set: by the first of all threads. */
static gint64
once(_Atomic gint64 *into)
{
    gint64 unset = 0;

    __atomic_compare_exchange_n((gint64 *)into, &unset, now_us(), FALSE, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return *into;
}

/* In the place of GLib's. */
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
