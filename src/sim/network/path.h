/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of a run: the chain of steps, each caused by the one before it, that led to the
 * run's last end. Its steps lie end to end from 0 to the makespan, so that their durations add up
 * to the makespan exactly. Formulas and limits: docs/reference/model.md, "Bottlenecks".
 */
#pragma once

#include "base/units.h"

#include <glib.h>
#include <stdint.h>

/* What the time of a step is spent on. */
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
    uint32_t rank, op; /* owner of the op; for a message the sender */
    uint32_t peer;     /* for a message the receiving rank, else the rank itself */
    uint8_t kind;      /* LhPathStepKind */
    /* LINKS: the tiers of the limiting links, a bit for each LhTier. Several are in series and
     * equally fast, so that only all of them together can be sped up. */
    uint8_t tiers;
} LhPathStep;

/* Links of one route whose rates differ by less than this factor limit it together: a link is the
 * only limit if the rest is at least this much faster. Also the step of all what-ifs. */
#define LH_WHAT_IF_FACTOR 1.1

/* Share of the path spent on one thing. */
typedef struct {
    uint8_t kind, tiers; /* as in LhPathStep */
    LhTime time_ps;
} LhPathShare;

/* Sums @path (of LhPathStep) by kind and tiers: of LhPathShare, largest first, equal ones in the
 * order of kinds and tiers. Caller unrefs. */
GArray *lh_path_shares(const GArray *path);
