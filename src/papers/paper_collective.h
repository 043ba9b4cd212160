/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One collective of a published table: what it takes alone, as NCCL runs it.
 */
#pragma once

#include "papers/paper_case.h"
#include "program/op.h"

/* What is judged. */
typedef enum {
    LH_JUDGE_COLLECTIVE,   /* the cluster's file */
    LH_JUDGE_LEFT_OUT,     /* the same without the time of this size */
    LH_JUDGE_LINKS_EDITED, /* another cluster's file, with the links of this one */
} LhJudged;

/* Borrows the options that it was read from. */
typedef struct {
    const char *cluster; /* a name of topologies/, or a path; "NAME:NODES" has so many nodes */
    uint64_t ranks;      /* the first ones of the cluster; at least 2 */
    uint64_t bytes;      /* as nccl-tests prints them */
    LhCollectiveKind kind;
    const char *nccl; /* a version, whose times hold where the cluster has them; may be NULL */
    const char *edited_from; /* the other cluster, for LH_JUDGE_LINKS_EDITED; may be NULL */
} LhPaperCollective;

/* From options "cluster", "ranks", "collective" and "bytes", all of them, and "nccl" and
 * "edited_from", no other; false with LH_ERROR_USAGE if one is missing or none. */
bool lh_paper_collective_read(const LhPaperOptions *options, LhPaperCollective *collective,
                              GError **error);

/* Seconds, and their error bar (nccl_measured.h). LH_ERROR_NO if nothing says how long it takes,
 * there is no such time to leave out, or no other cluster. */
bool lh_paper_collective_seconds(const LhPaperCollective *collective, LhJudged judged,
                                 double *seconds, double *bar, GError **error);
