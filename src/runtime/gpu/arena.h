/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first-fit allocator that gives out small blocks of large pieces of memory. It never accesses
 * the memory itself, which may therefore be device memory.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#define LH_ARENA_ALIGN 256

typedef struct _LhArena LhArena;

LhArena *lh_arena_new(void);
void lh_arena_free(LhArena *arena); /* NULL is allowed */

/* Adds a piece of @bytes at @memory, aligned to LH_ARENA_ALIGN. */
void lh_arena_add(LhArena *arena, unsigned char *memory, uint64_t bytes);

/* Allocates, aligned to LH_ARENA_ALIGN; NULL if no free block is large enough. */
unsigned char *lh_arena_take(LhArena *arena, uint64_t bytes);
void lh_arena_give(LhArena *arena, unsigned char *memory);

/* Allocated bytes, rounded up to the alignment. */
uint64_t lh_arena_taken_bytes(const LhArena *arena);
