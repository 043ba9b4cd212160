/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the single rank and derivation of its replay (single_rank.h). */
#include "execute/single_rank.h"

#include "base/error.h"

#include <string.h>

static const char *const choice_names[] = { [LH_SINGLE_RANK_SLOWEST] = "slowest",
                                            [LH_SINGLE_RANK_MEDIAN] = "median",
                                            [LH_SINGLE_RANK_FASTEST] = "fastest" };

bool
lh_single_rank_parse(const char *text, LhSingleRank *alone, GError **error)
{
    guint64 rank;

    *alone = (LhSingleRank){ LH_SINGLE_RANK_NONE, 0 };
    if (text == NULL)
        return true;
    for (int choice = LH_SINGLE_RANK_SLOWEST; choice <= LH_SINGLE_RANK_FASTEST; choice++) {
        if (strcmp(text, choice_names[choice]) == 0) {
            alone->choice = (LhSingleRankChoice)choice;
            return true;
        }
    }
    if (!g_ascii_string_to_unsigned(text, 10, 0, LH_RANKS_MAX - 1, &rank, NULL)) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "--replay-rank: found \"%s\"; allowed: slowest, median, fastest, or a rank from "
            "0 to %u",
            text, LH_RANKS_MAX - 1);
        return false;
    }
    *alone = (LhSingleRank){ LH_SINGLE_RANK_RANK, (uint32_t)rank };
    return true;
}

char *
lh_single_rank_text(const LhSingleRank *alone)
{
    if (alone->choice == LH_SINGLE_RANK_NONE)
        return g_strdup("no rank");
    return alone->choice == LH_SINGLE_RANK_RANK
               ? g_strdup_printf("rank %u", alone->rank)
               : g_strdup_printf("the %s rank", choice_names[alone->choice]);
}

typedef struct {
    uint32_t rank;
    LhTime end_ps;
} Finish;

static int
by_finish(const void *a, const void *b)
{
    const Finish *x = a, *y = b;

    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* End of each rank's last op, sorted; ranks without ops are omitted. */
static GArray *
finishes(const GArray *records)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Finish));

    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, i);
        const Finish finish = { r->rank, r->end_ps };
        Finish *last = all->len == 0 ? NULL : &g_array_index(all, Finish, all->len - 1);

        if (last == NULL || last->rank != r->rank)
            g_array_append_val(all, finish);
        else
            last->end_ps = MAX(last->end_ps, r->end_ps);
    }
    g_array_sort(all, by_finish);
    return all;
}

bool
lh_single_rank_choose(const LhSingleRank *alone, const GArray *records, uint32_t *rank,
                      GError **error)
{
    g_autoptr(GArray) all = finishes(records);
    guint at = 0;

    if (alone->choice == LH_SINGLE_RANK_RANK) {
        while (at < all->len && g_array_index(all, Finish, at).rank != alone->rank)
            at++;
    } else if (all->len > 0) {
        at = alone->choice == LH_SINGLE_RANK_SLOWEST  ? all->len - 1
             : alone->choice == LH_SINGLE_RANK_MEDIAN ? (all->len - 1) / 2
                                                      : 0;
    }
    if (at == all->len) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--replay-rank: rank %u has no ops; %u ranks have some", alone->rank, all->len);
        return false;
    }
    *rank = g_array_index(all, Finish, at).rank;
    return true;
}

/* Prediction of record @index. A peer that begins after its end does not delay it: a broadcast is a
 * chain. */
static LhReplayOp
predicted_of(const GArray *records, const LhPairing *meetings, guint index)
{
    const LhTimelineRecord *own = &g_array_index(records, LhTimelineRecord, index);
    LhTime last_ps = 0;
    guint count;
    const guint *others = lh_pairing_with(meetings, index, &count);

    for (guint i = 0; i < count; i++)
        last_ps = MAX(last_ps, g_array_index(records, LhTimelineRecord, others[i]).start_ps);
    last_ps = MIN(last_ps, own->end_ps);
    return (LhReplayOp){ .others_ps = last_ps,
                         .took_ps = own->end_ps - MAX(own->start_ps, last_ps) };
}

LhReplay *
lh_single_rank_replay(const GArray *records, const LhPairing *meetings, uint32_t rank, GArray *own)
{
    LhReplay *replay = lh_replay_new(rank);

    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(records, LhTimelineRecord, i);

        if (r->rank != rank)
            continue;
        g_array_append_vals(own, r, 1);
        if (r->kind != LH_OP_COMPUTE)
            lh_replay_set(replay, r->op, predicted_of(records, meetings, i));
    }
    return replay;
}
