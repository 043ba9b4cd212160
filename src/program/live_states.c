/* SPDX-License-Identifier: Apache-2.0 */
#include "program/live_states.h"

#include "base/mix.h"

#include <string.h>

#define SHARED_FROM 64  /* ranks */
#define CHANGES 1024    /* remembered; a power of two */
#define UNUSED_MAX 1024 /* states that no rank is in, kept for ranks that are behind */
#define NO_STATE UINT32_MAX

typedef struct {
    LhLive live;
    guint hash;     /* of what is in memory now */
    uint32_t ranks; /* number of ranks in it */
    bool exists;
} State;

/* A change computed before; `from` NO_STATE: none. */
typedef struct {
    LhRegion region;
    uint32_t from, to;
    bool alloc, peak;
} Change;

struct _LhLiveStates {
    const LhProgram *program;
    bool shared;       /* else each rank has a state of its own, which is not in `known` */
    GPtrArray *states; /* of State, by number: the addresses do not change */
    GArray *free;      /* of uint32_t: numbers without a state */
    GHashTable *known; /* of State by content; the value is the number */
    uint32_t unused;   /* number of states without ranks */
    Change changes[CHANGES];
};

static guint
hash_of(gconstpointer key)
{
    return ((const State *)key)->hash;
}

/* Memory of equal sizes that differs in its peak alone is rare. */
static guint
content_hash(const LhLive *live)
{
    uint64_t sum = live->bytes + live->host_bytes;

    for (uint64_t i = 0; i < LH_TENSOR_KINDS; i++)
        sum += live->by_tensor[i] * (2 * i + 3);
    return (guint)(lh_mix(lh_mix(0, sum), live->peak_bytes) >> 32);
}

static gboolean
is_equal(gconstpointer a, gconstpointer b)
{
    const State *one = a, *other = b;

    return memcmp(&one->live, &other->live, sizeof(one->live)) == 0;
}

static void
forget_changes(LhLiveStates *s)
{
    for (uint32_t i = 0; i < CHANGES; i++)
        s->changes[i].from = NO_STATE;
}

LhLiveStates *
lh_live_states_new(const LhProgram *program, uint32_t ranks)
{
    LhLiveStates *s = g_new0(LhLiveStates, 1);

    s->program = program;
    s->shared = ranks >= SHARED_FROM;
    s->states = g_ptr_array_new_with_free_func(g_free);
    s->free = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    s->known = g_hash_table_new(hash_of, is_equal);
    forget_changes(s);
    return s;
}

void
lh_live_states_free(LhLiveStates *s)
{
    if (s == NULL)
        return;
    g_hash_table_unref(s->known);
    g_array_unref(s->free);
    g_ptr_array_unref(s->states);
    g_free(s);
}

static State *
state_of(const LhLiveStates *s, uint32_t number)
{
    return g_ptr_array_index(s->states, number);
}

const LhLive *
lh_live_states_get(const LhLiveStates *s, uint32_t state)
{
    return &state_of(s, state)->live;
}

uint32_t
lh_live_states_count(const LhLiveStates *s)
{
    return s->states->len - s->free->len;
}

uint32_t
lh_live_states_end(const LhLiveStates *s)
{
    return s->states->len;
}

/* Drops the states that no rank is in. */
static void
sweep(LhLiveStates *s)
{
    for (uint32_t i = 0; i < s->states->len; i++) {
        State *state = state_of(s, i);

        if (!state->exists || state->ranks > 0)
            continue;
        g_hash_table_remove(s->known, state);
        state->exists = false;
        g_array_append_val(s->free, i);
    }
    s->unused = 0;
    forget_changes(s);
}

/* Adds a state; returns its number. */
static uint32_t
add(LhLiveStates *s, const State *added)
{
    uint32_t number = s->states->len;

    if (s->free->len > 0) {
        number = g_array_index(s->free, uint32_t, s->free->len - 1);
        g_array_set_size(s->free, s->free->len - 1);
    } else {
        g_ptr_array_add(s->states, g_new(State, 1));
    }
    *state_of(s, number) = *added;
    s->unused++;
    return number;
}

/* Returns the number of the state with the memory @live. */
static uint32_t
intern(LhLiveStates *s, const LhLive *live)
{
    const State wanted = { .live = *live, .hash = content_hash(live), .exists = true };
    gpointer known;
    uint32_t number;

    if (g_hash_table_lookup_extended(s->known, &wanted, NULL, &known))
        return GPOINTER_TO_UINT(known);
    if (s->unused > UNUSED_MAX)
        sweep(s);
    number = add(s, &wanted);
    g_hash_table_insert(s->known, state_of(s, number), GUINT_TO_POINTER(number));
    return number;
}

static void
join_state(LhLiveStates *s, uint32_t state)
{
    if (state_of(s, state)->ranks++ == 0)
        s->unused--;
}

static void
leave_state(LhLiveStates *s, uint32_t state)
{
    if (--state_of(s, state)->ranks == 0)
        s->unused++;
}

uint32_t
lh_live_states_begin(LhLiveStates *s, uint32_t rank)
{
    State own = { .exists = true };
    uint32_t state;

    lh_live_init(&own.live, s->program, rank);
    state = s->shared ? intern(s, &own.live) : add(s, &own);
    join_state(s, state);
    return state;
}

/* Where a change of the region is remembered, an alloc as well as a free. */
static Change *
place_of(LhLiveStates *s, uint32_t from, const LhRegion *region)
{
    const uint64_t hash =
        lh_mix(lh_mix(from, region->slot), (uint64_t)region->part << 32 | region->count);

    return &s->changes[(hash ^ hash >> 32) % CHANGES];
}

static bool
is_known(const Change *c, uint32_t from, const LhRegion *region, bool alloc)
{
    return c->from == from && c->alloc == alloc && c->region.slot == region->slot &&
           c->region.part == region->part && c->region.count == region->count &&
           c->region.half == region->half;
}

uint32_t
lh_live_states_change(LhLiveStates *s, uint32_t from, LhRegion region, bool alloc, bool *peak)
{
    Change *change;

    if (!s->shared) {
        *peak = lh_live_change(&state_of(s, from)->live, s->program, region, alloc);
        return from;
    }
    change = place_of(s, from, &region);
    if (!is_known(change, from, &region, alloc)) {
        LhLive live = state_of(s, from)->live;
        const bool peaks = lh_live_change(&live, s->program, region, alloc);
        const uint32_t to = intern(s, &live); /* may forget all changes */

        *change = (Change){ region, from, to, alloc, peaks };
    }
    *peak = change->peak;
    if (change->to != from) {
        join_state(s, change->to);
        leave_state(s, from);
    }
    return change->to;
}
