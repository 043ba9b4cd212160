/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/clocks.h"

#include "base/error.h"
#include "base/time_units.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define MARGIN_NS 1000000 /* margin beyond the longest round, for the last to learn of it */

int64_t
lh_clocks_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * LH_NS_PER_S + t.tv_nsec;
}

void
lh_clocks_sleep_until(int64_t until_ns)
{
    const struct timespec until = { until_ns / LH_NS_PER_S, until_ns % LH_NS_PER_S };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

int64_t
lh_clocks_ahead(const LhClockRound *first, const LhClockRound *other, size_t count,
                int64_t *width_ns)
{
    int64_t ahead_ns = 0;

    *width_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const int64_t width = other[i].received_ns - other[i].sent_ns;

        if (width >= *width_ns)
            continue;
        *width_ns = width;
        ahead_ns = first[i].received_ns - (other[i].sent_ns + width / 2);
    }
    return ahead_ns;
}

/* All-gathers the rounds @mine of every process into @all. */
static bool
tell_rounds(const LhOpenControl *control, const LhClockRound *mine, GByteArray *all, GError **error)
{
    g_autoptr(GByteArray) sent = g_byte_array_new();

    g_byte_array_set_size(all, 0);
    g_byte_array_append(sent, (const guint8 *)mine, LH_CLOCK_ROUNDS * sizeof(*mine));
    return control->table->share(control->state, sent, sent->len, all, error);
}

/* The longest last round of all processes. */
static int64_t
longest_ns(const LhClockRound *rounds, size_t processes)
{
    int64_t longest = 0;

    for (size_t i = 0; i < processes; i++) {
        const LhClockRound *last = &rounds[(i + 1) * LH_CLOCK_ROUNDS - 1];

        longest = MAX(longest, last->received_ns - last->sent_ns);
    }
    return longest;
}

int64_t
lh_clocks_start(const LhClockRound *rounds, size_t processes, size_t mine)
{
    int64_t width_ns, ahead_ns = 0;

    if (mine > 0)
        ahead_ns =
            lh_clocks_ahead(rounds, &rounds[mine * LH_CLOCK_ROUNDS], LH_CLOCK_ROUNDS, &width_ns);
    /* By the first process's clock; sending the last round to all took as long again. */
    return rounds[LH_CLOCK_ROUNDS - 1].received_ns + 2 * longest_ns(rounds, processes) + MARGIN_NS -
           ahead_ns;
}

bool
lh_clocks_meet(const LhOpenControl *control, int64_t *start_ns, GError **error)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    LhClockRound mine[LH_CLOCK_ROUNDS] = { 0 };
    const LhClockRound *rounds;
    size_t processes, own = 0;

    for (size_t i = 0; i < LH_CLOCK_ROUNDS; i++) {
        mine[i].sent_ns = lh_clocks_now();
        if (!tell_rounds(control, mine, all, error))
            return false;
        mine[i].received_ns = lh_clocks_now();
        *start_ns = mine[i].received_ns;
        if (all->len == sizeof(mine)) /* there is no other process */
            return true;
    }
    if (!tell_rounds(control, mine, all, error))
        return false;
    processes = all->len / sizeof(mine);
    rounds = (const LhClockRound *)(const void *)all->data;
    while (own < processes && memcmp(&rounds[own * LH_CLOCK_ROUNDS], mine, sizeof(mine)) != 0)
        own++;
    if (all->len % sizeof(mine) != 0 || own == processes) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "the processes have diverged: start all of them with the same options, "
                            "files and version");
        return false;
    }
    *start_ns = lh_clocks_start(rounds, processes, own);
    return true;
}
