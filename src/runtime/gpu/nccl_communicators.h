/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes of a program: the NCCL communicators that it uses. An NCCL communicator serialises the
 * calls of a rank, whatever their streams, so the messages of one communicator number may need
 * several. Computed from the program alone, so that every process finds the same lanes in the same
 * order.
 *
 *     messages of one number, and all that they match, on one stream
 *         a lane for each set of ranks that they connect
 *     messages sent on one stream and received on another
 *         a lane for every pair of ranks, as in PyTorch; otherwise one stream would wait for the
 * other collectives a lane for each communicator: a number and the ranks that it spans
 */
#pragma once

#include "program/program.h"

/* A pair of ranks that exchange messages in a lane, as positions among its members. */
typedef struct {
    uint32_t from, to;
} LhNcclCommPair;

typedef struct {
    uint8_t number;        /* the program's communicator number */
    bool collectives;      /* else messages */
    uint16_t streams;      /* bit mask of the streams whose ops use it */
    uint32_t *members;     /* ranks; the index is the rank in the lane; owned */
    uint32_t count;        /* number of members */
    uint32_t round;        /* lanes of one round share no member */
    LhNcclCommPair *pairs; /* pairs that exchange messages, each once, ascending; owned */
    uint32_t pairs_count;
} LhNcclComm;

typedef struct _LhNcclComms LhNcclComms;

/* Walks the ops of all ranks. NULL with @error (LH_ERROR_NO) if NCCL cannot run the program. Caller
 * frees. */
LhNcclComms *lh_nccl_comms_new(const LhProgram *program, GError **error);
void lh_nccl_comms_free(LhNcclComms *lanes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNcclComms, lh_nccl_comms_free)

uint32_t lh_nccl_comms_count(const LhNcclComms *lanes);
const LhNcclComm *lh_nccl_comms_at(const LhNcclComms *lanes, uint32_t lane);
uint32_t lh_nccl_comms_rounds(const LhNcclComms *lanes);

/* The lane of a message of exchange @op between @rank and @peer. */
uint32_t lh_nccl_comm_of_message(const LhNcclComms *lanes, const LhOp *op, uint32_t rank,
                                 uint32_t peer);

/* The lane of a collective. */
uint32_t lh_nccl_comm_of_collective(const LhNcclComms *lanes, const LhOp *op);

/* Position of @rank among the members, or UINT32_MAX. */
uint32_t lh_nccl_comm_position(const LhNcclComm *lane, uint32_t rank);
