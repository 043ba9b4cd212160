/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that was taken from a system in large pieces and is given out in small ones, first fit. It
 * is never read or written here, so that it may be a device's.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define LH_ARENA_ALIGN 256

typedef struct _LhArena LhArena;

LhArena *lh_arena_new(void);
void lh_arena_free(LhArena *arena); /* NULL is allowed */

/* From now on it has @bytes at @memory, aligned to LH_ARENA_ALIGN. */
void lh_arena_add(LhArena *arena, unsigned char *memory, uint64_t bytes);

/* Aligned to LH_ARENA_ALIGN; NULL: no stretch of free memory is long enough. */
unsigned char *lh_arena_take(LhArena *arena, uint64_t bytes);
void lh_arena_give(LhArena *arena, unsigned char *memory);

/* What is taken, rounded up. */
uint64_t lh_arena_taken_bytes(const LhArena *arena);
