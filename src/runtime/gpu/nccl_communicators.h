/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes of a program: the communicators of NCCL that it runs over. A communicator of NCCL runs
 * the calls that a rank makes one after the other, whatever their streams, so the messages of one
 * number may need several. Made from the program alone, so that every process finds the same ones
 * in the same order.
 *
 *     messages of one number, and all that they meet, on one stream
 *         a lane for each set of ranks that they join
 *     messages that are sent on one stream and received on another
 *         a lane for every two ranks, as PyTorch makes them; else a stream would wait for the other
 *     collectives
 *         a lane for each communicator: a number and the ranks that it spans
 */
#pragma once

#include "program/program.h"

/* A message of a lane goes from one to the other; positions among its members. */
typedef struct {
    uint32_t from, to;
} LhNcclCommPair;

typedef struct {
    uint8_t number;        /* the program's, of the communicator */
    bool collectives;      /* else messages */
    uint16_t streams;      /* bits: those whose ops are on it */
    uint32_t *members;     /* ranks; the place of one is its rank in the lane; owned */
    uint32_t count;        /* of members */
    uint32_t round;        /* lanes of one round have no member in common */
    LhNcclCommPair *pairs; /* that exchange messages, each once, ascending; owned */
    uint32_t pairs_count;
} LhNcclComm;

typedef struct _LhNcclComms LhNcclComms;

/* Walks the programs of all ranks. NULL with @error (LH_ERROR_NO) and the reason if NCCL cannot
 * carry the program. Caller frees. */
LhNcclComms *lh_nccl_comms_new(const LhProgram *program, GError **error);
void lh_nccl_comms_free(LhNcclComms *lanes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNcclComms, lh_nccl_comms_free)

uint32_t lh_nccl_comms_count(const LhNcclComms *lanes);
const LhNcclComm *lh_nccl_comms_at(const LhNcclComms *lanes, uint32_t lane);
uint32_t lh_nccl_comms_rounds(const LhNcclComms *lanes);

/* The lane of a message between @rank and @peer that is a part of exchange @op. */
uint32_t lh_nccl_comm_of_message(const LhNcclComms *lanes, const LhOp *op, uint32_t rank,
                                 uint32_t peer);

/* The lane of a collective. */
uint32_t lh_nccl_comm_of_collective(const LhNcclComms *lanes, const LhOp *op);

/* The place of @rank among the members, or UINT32_MAX. */
uint32_t lh_nccl_comm_position(const LhNcclComm *lane, uint32_t rank);
