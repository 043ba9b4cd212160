/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement of tokens on ranks. N tokens are split into segments (start, stride, count); a rank
 * holds `parts` segments (its chunk). Segments are numbered globally; a placement maps (rank, part)
 * to segments and back.
 */
#pragma once

#include "kernels/kernel.h"
#include "model/mask.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    LH_PLACE_CONTIGUOUS, /* one part: rank r holds tokens [r n, (r+1) n) */
    /*
     * Two parts: half-chunks r and 2P-1-r. With a split of U, each group of U consecutive ranks
     * holds the half-chunks that one of P/U ranks would have, in U pieces each: rank r has piece r
     * mod U of both.
     */
    LH_PLACE_ZIGZAG,
    LH_PLACE_STRIPED, /* one part: tokens r, r+P, r+2P, ... */
    LH_PLACE_HEADS,   /* one part: all tokens, for the rank's slice of the heads */
} LhPlacementKind;

/* Indexed by LhPlacementKind, NULL-terminated: "contiguous", "zigzag", "striped", "heads". */
extern const char *const lh_placement_names[];

typedef struct {
    LhPlacementKind kind;
    uint32_t ranks;
    uint64_t seq_length; /* a multiple of the number of segments */
    uint32_t split;      /* zigzag only; divides ranks; 0 and 1: none */
} LhPlacement;

/* The pairs of a query segment and a key segment that a mask allows, in local indices. */
typedef struct {
    LhMaskKind kind;
    int64_t shift;  /* of LH_MASK_CAUSAL; kernels exist for 0 and -1 only */
    uint64_t pairs; /* exact */
} LhBlock;

uint32_t lh_placement_parts(const LhPlacement *p); /* segments of one rank */
uint32_t
lh_placement_segments(const LhPlacement *p); /* of all ranks: ranks * parts, or 1 (heads) */
uint32_t lh_placement_segment_id(const LhPlacement *p, uint32_t rank, uint32_t part);
LhSegment lh_placement_segment(const LhPlacement *p, uint32_t segment_id);

/*
 * The block of query segment @q against key segment @k under @rule, exact for any two segments of
 * equal stride. LH_MASK_POSITIONS if no mask in local indices describes it.
 */
LhBlock lh_block(LhSegment q, LhSegment k, const LhMaskRule *rule);
