/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/arena.h"

#include <stdbool.h>

/* A block of memory, free or allocated. */
typedef struct {
    unsigned char *at;
    uint64_t bytes;
    bool taken;
    bool joins; /* follows the block before it without a gap, in the same piece */
} Stretch;

struct _LhArena {
    GArray *stretches; /* of Stretch; those of one piece are consecutive */
    uint64_t taken_bytes;
};

LhArena *
lh_arena_new(void)
{
    LhArena *arena = g_new0(LhArena, 1);

    arena->stretches = g_array_new(FALSE, FALSE, sizeof(Stretch));
    return arena;
}

void
lh_arena_free(LhArena *arena)
{
    if (arena == NULL)
        return;
    g_array_unref(arena->stretches);
    g_free(arena);
}

void
lh_arena_add(LhArena *arena, unsigned char *memory, uint64_t bytes)
{
    const Stretch s = { .at = memory, .bytes = bytes / LH_ARENA_ALIGN * LH_ARENA_ALIGN };

    g_array_append_val(arena->stretches, s);
}

static Stretch *
stretch(const LhArena *arena, guint i)
{
    return &g_array_index(arena->stretches, Stretch, i);
}

unsigned char *
lh_arena_take(LhArena *arena, uint64_t bytes)
{
    const uint64_t wanted = (MAX(bytes, 1) + LH_ARENA_ALIGN - 1) / LH_ARENA_ALIGN * LH_ARENA_ALIGN;

    for (guint i = 0; i < arena->stretches->len; i++) {
        Stretch *s = stretch(arena, i);
        const Stretch rest = { .at = s->at + wanted, .bytes = s->bytes - wanted, .joins = true };
        unsigned char *at = s->at;

        if (s->taken || s->bytes < wanted)
            continue;
        s->taken = true;
        s->bytes = wanted;
        arena->taken_bytes += wanted;
        if (rest.bytes > 0)
            g_array_insert_val(arena->stretches, i + 1, rest);
        return at;
    }
    return NULL;
}

/* Merges block @i with the next if both are free and of one piece. */
static void
join_stretches(LhArena *arena, guint i)
{
    Stretch *s = stretch(arena, i);

    if (i + 1 >= arena->stretches->len || s->taken || s[1].taken || !s[1].joins)
        return;
    s->bytes += s[1].bytes;
    g_array_remove_index(arena->stretches, i + 1);
}

void
lh_arena_give(LhArena *arena, unsigned char *memory)
{
    guint i = 0;

    while (i < arena->stretches->len && stretch(arena, i)->at != memory)
        i++;
    g_assert(i < arena->stretches->len && stretch(arena, i)->taken);
    stretch(arena, i)->taken = false;
    arena->taken_bytes -= stretch(arena, i)->bytes;
    join_stretches(arena, i);
    if (i > 0)
        join_stretches(arena, i - 1);
}

uint64_t
lh_arena_taken_bytes(const LhArena *arena)
{
    return arena->taken_bytes;
}
