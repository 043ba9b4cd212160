/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run: the chain of steps, each caused by the one before it, that led to the
 * run's last end. Its steps lie end to end from 0 to the makespan, so that what they are spent on
 * adds up to the makespan exactly. Formulas and limits: docs/reference/model.md, "What binds a
 * run".
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdint.h>

/* What a step waits for. */
typedef enum {
    LH_STEP_COMPUTE, /* a kernel */
    LH_STEP_LINKS,   /* bytes on links */
    LH_STEP_LATENCY, /* of a message, after its last byte; of a collective's closed form */
    LH_STEP_HOST,    /* a host issues ops, or waits for its device */
    LH_PATH_STEP_KINDS
} LhPathStepKind;

/* "compute", "links", "latency", "host"; NULL-terminated. */
extern const char *const lh_step_kind_names[];

typedef struct {
    LhTime from_ps, to_ps;
    uint32_t rank, op; /* whose op; of a message the sender's */
    uint32_t peer;     /* of a message: the receiving rank; else the rank itself */
    uint8_t kind;      /* LhPathStepKind */
    /* LINKS: the links that hold the bytes back, a bit for each LhTier; if there are several, they
     * are in series and as fast as each other, so that only all of them together can be faster. */
    uint8_t tiers;
} LhPathStep;

/* How much faster the rest has to be before a link is what holds bytes back: links of one route
 * whose rates differ by less bind together. Also the step of all what-ifs. */
#define LH_WHAT_IF_FACTOR 1.1

/* What part of the path waits for one thing. */
typedef struct {
    uint8_t kind, tiers; /* as of a step */
    LhTime time_ps;
} LhPathShare;

/* @path (of LhPathStep) summed up: of LhPathShare, the largest first; equal ones in the order of
 * kinds and tiers. Caller unrefs. */
GArray *lh_path_shares(const GArray *path);
