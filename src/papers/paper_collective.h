/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single collective of a published table: its time alone, as NCCL runs it.
 */
#pragma once

#include "papers/paper_case.h"
#include "program/op.h"

/* What is judged. */
typedef enum {
    LH_JUDGE_COLLECTIVE,   /* the cluster's file */
    LH_JUDGE_LEFT_OUT,     /* the same with this size held out */
    LH_JUDGE_LINKS_EDITED, /* another cluster's file with this one's links */
} LhJudged;

/* Borrows the options that it was read from. */
typedef struct {
    const char *cluster; /* a name of topologies/, or a path; "NAME:NODES" for a number of nodes */
    uint64_t ranks;      /* the first ones of the cluster; at least 2 */
    uint64_t bytes;      /* as printed by nccl-tests */
    LhCollectiveKind kind;
    const char *nccl; /* a version whose times are used if the cluster has them; may be NULL */
    const char *edited_from; /* the other cluster, for LH_JUDGE_LINKS_EDITED; may be NULL */
} LhPaperCollective;

/* Reads the options "cluster", "ranks", "collective" and "bytes" (required), "nccl" and
 * "edited_from"; false with LH_ERROR_USAGE if one is missing or unknown. */
bool lh_paper_collective_read(const LhPaperOptions *options, LhPaperCollective *collective,
                              GError **error);

/* Seconds, and their error bar (nccl_measured.h). LH_ERROR_NO if the topology does not give the
 * time, there is no such time to hold out, or no other cluster. */
bool lh_paper_collective_seconds(const LhPaperCollective *collective, LhJudged judged,
                                 double *seconds, double *bar, GError **error);
