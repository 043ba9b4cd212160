/*
 * Where tokens live. N tokens are cut into segments (start, stride, count); a rank holds `parts`
 * segments (its chunk). Segments are numbered globally; placement maps (rank, part) -> segment and
 * back.
 */
#pragma once

#include "kernels/kernel.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_PLACE_CONTIGUOUS, /* one part: rank r holds tokens [r n, (r+1) n) */
    LH_PLACE_ZIGZAG,     /* two parts: half-chunks r and 2P-1-r */
    LH_PLACE_STRIPED,    /* one part: tokens r, r+P, r+2P, ... */
} LhPlacementKind;

/* Indexed by LhPlacementKind, NULL-terminated: "contiguous", "zigzag", "striped". */
extern const char *const lh_placement_names[];

typedef struct {
    LhPlacementKind kind;
    uint32_t ranks;
    uint64_t seq_length; /* a multiple of ranks * parts */
} LhPlacement;

/* Token positions start + i * stride, i in [0, count). */
typedef struct {
    uint64_t start;
    uint64_t stride;
    uint64_t count;
} LhSegment;

/* Which pairs of a query segment and a key segment a mask allows, in local indices. */
typedef struct {
    LhMaskKind kind;
    int64_t shift;  /* of LH_MASK_CAUSAL; other values than 0 and -1 have no kernel */
    uint64_t pairs; /* exact */
} LhBlock;

uint32_t lh_placement_parts(const LhPlacement *p);    /* segments of one rank */
uint32_t lh_placement_segments(const LhPlacement *p); /* of all: ranks * parts */
uint32_t lh_placement_segment_id(const LhPlacement *p, uint32_t rank, uint32_t part);
LhSegment lh_placement_segment(const LhPlacement *p, uint32_t segment_id);

/* Pairs with j <= i + shift among @nq rows and @nk keys; both at most 2^31. */
uint64_t lh_causal_pairs(uint64_t nq, uint64_t nk, int64_t shift);

/*
 * The block of query segment @q against key segment @k: every pair when not @causal, else those
 * with key position <= query position. Exact for any two segments of equal stride.
 */
LhBlock lh_block(LhSegment q, LhSegment k, bool causal);
