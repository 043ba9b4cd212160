/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/first_failure.h"

#include "base/time_units.h"
#include "runtime/api/control.h"

#include "base/error.h"

#include <string.h>

typedef struct {
    const LhRankNews *news;
    uint32_t count, own;
    int64_t now_us, waited_us;
} Case;

/* ---- names ---- */

/* "rank 2 on host box1", or "rank 2". */
static void
append_name(const Case *c, uint32_t rank, GString *out)
{
    const char *host = c->news[rank].host;

    g_string_append_printf(out, "rank %u", rank);
    if (host != NULL && host[0] != '\0')
        g_string_append_printf(out, " on host %s", host);
}

static bool
has_state(const Case *c, uint32_t rank, LhRankState state)
{
    return c->news[rank].state == state;
}

static uint32_t
count_state(const Case *c, LhRankState state)
{
    uint32_t count = 0;

    for (uint32_t r = 0; r < c->count; r++)
        count += has_state(c, r, state);
    return count;
}

/* Appends the names of the ranks in @state, as "rank 1 on host a, rank 2 on host b and 5 more".
 * Returns the first of them. */
static uint32_t
append_names(const Case *c, LhRankState state, GString *out)
{
    uint32_t named = 0, first = 0;

    for (uint32_t r = c->count; r > 0; r--)
        first = has_state(c, r - 1, state) ? r - 1 : first;
    for (uint32_t r = first; r < c->count; r++) {
        if (!has_state(c, r, state) || named++ >= LH_CONTROL_NAMED_MAX)
            continue;
        if (named > 1)
            g_string_append(out, ", ");
        append_name(c, r, out);
    }
    if (named > LH_CONTROL_NAMED_MAX)
        g_string_append_printf(out, " and %u more", named - LH_CONTROL_NAMED_MAX);
    return first;
}

/* Appends when the rank was last heard from, and its progress then. */
static void
append_last(const Case *c, uint32_t rank, GString *out)
{
    const LhRankNews *news = &c->news[rank];

    if (news->heard_us == 0)
        return;
    g_string_append_printf(out, "last heard from %.1f s ago",
                           (double)MAX(c->now_us - news->heard_us, 0) / LH_US_PER_S);
    if (news->text != NULL && news->text[0] != '\0')
        g_string_append_printf(out, ": %s", news->text);
}

/* ---- verdicts ---- */

/* The rank that entered one of two states first; UINT32_MAX: none. */
static uint32_t
earliest(const Case *c, LhRankState state, LhRankState or_state)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t r = 0; r < c->count; r++) {
        if ((has_state(c, r, state) || has_state(c, r, or_state)) &&
            (found == UINT32_MAX || c->news[r].order < c->news[found].order))
            found = r;
    }
    return found;
}

/* Failure texts usually begin with the name of their rank; avoids repeating it. */
static uint32_t
tell_failure(const Case *c, uint32_t rank, GString *out)
{
    g_autofree char *name = g_strdup_printf("rank %u", rank);
    const char *text = c->news[rank].text != NULL ? c->news[rank].text : "it does not say why";
    const char *rest = text + strlen(name);

    append_name(c, rank, out);
    if (g_str_has_prefix(text, name) && !g_ascii_isdigit(*rest))
        g_string_append_printf(out, "%s%s", *rest == ' ' ? ":" : "", rest);
    else
        g_string_append_printf(out, ": %s", text);
    return rank;
}

static uint32_t
tell_gone(const Case *c, uint32_t rank, GString *out)
{
    append_name(c, rank, out);
    g_string_append(out, has_state(c, rank, LH_RANK_ENDED)
                             ? ": it has ended, and others wait for it; "
                             : ": its process is gone; ");
    append_last(c, rank, out);
    return rank;
}

static uint32_t
tell_missing(const Case *c, GString *out)
{
    const double waited_s = (double)c->waited_us / LH_US_PER_S;
    const uint32_t missing = count_state(c, LH_RANK_MISSING);
    uint32_t first = c->own;

    if (missing + 1 == c->count && missing > 1) {
        append_name(c, c->own, out);
        g_string_append_printf(
            out, ": no other rank connected within %.3g s, or this one started too late", waited_s);
        return first;
    }
    first = append_names(c, LH_RANK_MISSING, out);
    g_string_append_printf(out, " %s not connected within %.3g s", missing == 1 ? "has" : "have",
                           waited_s);
    return first;
}

static bool
same_host(const Case *c, uint32_t a, uint32_t b)
{
    return c->news[a].host != NULL && c->news[b].host != NULL &&
           strcmp(c->news[a].host, c->news[b].host) == 0;
}

/* The number of hosts other than @own's, all of whose ranks are silent; 0 if any of them still
 * answers. */
static uint32_t
lost_hosts(const Case *c)
{
    uint32_t hosts = 0;

    for (uint32_t r = 0; r < c->count; r++) {
        bool counted = false;

        if (r == c->own || same_host(c, r, c->own))
            continue;
        if (!has_state(c, r, LH_RANK_SILENT) || c->news[r].host_answers)
            return 0;
        for (uint32_t other = 0; other < r; other++)
            counted = counted || (other != c->own && same_host(c, r, other));
        hosts += !counted;
    }
    return hosts;
}

static uint32_t
tell_silent(const Case *c, GString *out)
{
    const uint32_t hosts = lost_hosts(c), silent = count_state(c, LH_RANK_SILENT);
    uint32_t first;

    if (hosts > 1) {
        append_name(c, c->own, out);
        g_string_append(out, " reaches no other host");
        return c->own;
    }
    if (hosts == 1) {
        append_name(c, c->own, out);
        g_string_append(out, " does not reach ");
        return append_names(c, LH_RANK_SILENT, out);
    }
    first = append_names(c, LH_RANK_SILENT, out);
    g_string_append_printf(out, " %s not answer, %s; ", silent == 1 ? "does" : "do",
                           c->news[first].host_answers ? "though the host does"
                                                       : "nor does the host");
    append_last(c, first, out);
    return first;
}

static bool
waits_for(const Case *c, uint32_t rank, uint32_t other)
{
    const GArray *awaited = c->news[rank].awaited;

    for (guint i = 0; awaited != NULL && i < awaited->len; i++) {
        if (g_array_index(awaited, uint32_t, i) == other)
            return true;
    }
    return false;
}

static bool
waits(const Case *c, uint32_t rank)
{
    return c->news[rank].awaited != NULL && c->news[rank].awaited->len > 0;
}

/* The rank that most others wait for, among those that wait for none; among all if every rank
 * waits. */
static uint32_t
tell_awaited(const Case *c, GString *out)
{
    uint32_t found = 0, most = 0;
    bool found_waits = true;

    for (uint32_t r = 0; r < c->count; r++) {
        uint32_t by = 0;

        for (uint32_t other = 0; other < c->count; other++)
            by += waits_for(c, other, r);
        if (by > 0 &&
            ((found_waits && !waits(c, r)) || (found_waits == waits(c, r) && by > most))) {
            found = r;
            most = by;
            found_waits = waits(c, r);
        }
    }
    append_name(c, found, out);
    if (most == 0)
        g_string_append(out, ": nothing has completed, though all ranks answer; ");
    else
        g_string_append_printf(out, ": %u other rank%s wait%s for it, %s; ", most,
                               most == 1 ? "" : "s", most == 1 ? "s" : "",
                               found_waits ? "and it waits for others, too"
                                           : "and it waits for nobody");
    append_last(c, found, out);
    return found;
}

LhFirstFailure
lh_first_failure_find(const LhRankNews *news, uint32_t count, uint32_t own, int64_t now_us,
                      int64_t waited_us)
{
    const Case c = { news, count, own, now_us, waited_us };
    const uint32_t failed = earliest(&c, LH_RANK_FAILED, LH_RANK_FAILED);
    const uint32_t gone = earliest(&c, LH_RANK_GONE, LH_RANK_ENDED);
    GString *text = g_string_new(NULL);
    uint32_t rank;

    if (failed != UINT32_MAX)
        rank = tell_failure(&c, failed, text);
    else if (gone != UINT32_MAX)
        rank = tell_gone(&c, gone, text);
    else if (count_state(&c, LH_RANK_MISSING) > 0)
        rank = tell_missing(&c, text);
    else if (count_state(&c, LH_RANK_SILENT) > 0)
        rank = tell_silent(&c, text);
    else
        rank = tell_awaited(&c, text);
    if (g_str_has_suffix(text->str, "; "))
        g_string_truncate(text, text->len - 2);
    return (LhFirstFailure){ .rank = rank,
                             .status =
                                 failed != UINT32_MAX ? news[failed].status : LH_ERROR_RUNTIME,
                             .text = g_string_free(text, FALSE) };
}
