/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that has joined over NCCL, its errors, and how it waits: until the deadline, for none of
 * its communicators blocks.
 */
#pragma once

#include "runtime/api/links.h"
#include "runtime/gpu/nccl_api.h"
#include "runtime/gpu/nccl_communicators.h"

#include <stdatomic.h>

#define LH_NCCL_LOOK_US 50 /* from look to look at what NCCL is busy with */

/* How far a rank of this process is, for messages about those that others wait for. */
typedef enum {
    LH_NCCL_AT_START,
    LH_NCCL_AT_RUN,
    LH_NCCL_AT_END,
} LhNcclStage;

typedef struct {
    const LhLinksParams *params;
    const LhNccl *nccl;
    LhNcclComms *lanes;
    ncclUniqueId id;
    uint32_t ranks;
    atomic_int *stages; /* [place.count] of LhNcclStage */
} LhNcclLinks;

/* Device memory of a stream, in which messages lie end to end that have several pieces. */
typedef struct {
    LhDeviceStream stream;
    unsigned char *memory;
    uint64_t bytes, used;
} LhNcclStaging;

/* A rank that has joined. */
typedef struct {
    LhNcclLinks *links;
    LhLinksRank rank;
    ncclComm_t world;
    ncclComm_t *comms;   /* [lanes]; NULL: without this rank */
    GArray *staging;     /* of LhNcclStaging, one a stream */
    GPtrArray *outgrown; /* device memory that may still be in use */
    bool aborted;
} LhNcclRank;

/* "NCCL: @what: unhandled system error (what NCCL says)". Returns false. */
bool lh_nccl_fail(const LhNcclRank *j, const char *what, ncclResult_t result, GError **error);

/* "communicator 1 of ranks 0, 4"; caller frees. */
char *lh_nccl_comm_text(const LhNcclComm *lane);

/* Waits until a communicator has done what it was asked for. */
bool lh_nccl_settle(const LhNcclRank *j, ncclComm_t comm, const char *what, GError **error);

/* What a call that may go on behind its return has returned; false: it has failed. */
bool lh_nccl_done(const LhNcclRank *j, ncclResult_t result, const char *what, GError **error);

/* Waits until the host's stream has done everything. */
bool lh_nccl_finish_host(const LhNcclRank *j, const char *what, GError **error);

/* Memory that the host's stream used; if something failed, it may still do. */
void lh_nccl_give_back(const LhNcclRank *j, unsigned char *memory, bool finished);
