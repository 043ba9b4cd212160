/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank joined over NCCL, its errors, and its waits: all communicators are non-blocking, so every
 * wait ends at the deadline.
 */
#pragma once

#include "runtime/api/links.h"
#include "runtime/gpu/nccl_api.h"
#include "runtime/gpu/nccl_communicators.h"

#include <stdatomic.h>

#define LH_NCCL_LOOK_US 50 /* interval of polling NCCL */

/* Progress of a rank of this process, for messages that name missing ranks. */
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

/* Device memory of a stream in which messages of several pieces are contiguous. */
typedef struct {
    LhDeviceStream stream;
    unsigned char *memory;
    uint64_t bytes, used;
} LhNcclStaging;

/* A joined rank. */
typedef struct {
    LhNcclLinks *links;
    LhLinksRank rank;
    ncclComm_t world;
    ncclComm_t *comms;   /* [lanes]; NULL: this rank is no member */
    GArray *staging;     /* of LhNcclStaging, one per stream */
    GPtrArray *outgrown; /* device memory that may still be in use */
    bool aborted;
} LhNcclRank;

/* Sets "NCCL: @what: unhandled system error (NCCL's reason)". Returns false. */
bool lh_nccl_fail(const LhNcclRank *j, const char *what, ncclResult_t result, GError **error);

/* "communicator 1 of ranks 0, 4"; caller frees. */
char *lh_nccl_comm_text(const LhNcclComm *lane);

/* Waits until a communicator has no operation in progress. */
bool lh_nccl_settle(const LhNcclRank *j, ncclComm_t comm, const char *what, GError **error);

/* Whether the result of a call, which may still be in progress, is no error. */
bool lh_nccl_done(const LhNcclRank *j, ncclResult_t result, const char *what, GError **error);

/* Waits until the host's stream is idle. */
bool lh_nccl_finish_host(const LhNcclRank *j, const char *what, GError **error);

/* Releases memory that the host's stream used; after a failure it is kept, since it may still be in
 * use. */
void lh_nccl_give_back(const LhNcclRank *j, unsigned char *memory, bool finished);
