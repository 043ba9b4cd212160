/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of one nccl-tests program: its ranks and hosts, and its table. Of several rows of one size
 * the median is kept, and of each row the out-of-place half.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t bytes;
    double us, busbw; /* busbw: GB/s; nocheck:unit: as nccl-tests calls it */
    guint line;
} LhNcclLogRow;

typedef struct {
    char *file;
    char *sha256;
    const char *program; /* "all_reduce_perf" */
    char *nccl;          /* its version; NULL: unknown */
    guint line;          /* of the table */
    guint ranks, hosts;  /* all hosts have equally many ranks */
    GArray *rows;        /* of LhNcclLogRow, by ascending size; at least one */
} LhNcclLog;

/* LH_ERROR_INPUT with file and line if it is not such a log, or of several runs. Caller frees. */
LhNcclLog *lh_nccl_log_load(const char *path, GError **error);
LhNcclLog *lh_nccl_log_parse(const char *file, const char *text, gsize length, GError **error);
void lh_nccl_log_free(LhNcclLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNcclLog, lh_nccl_log_free)
