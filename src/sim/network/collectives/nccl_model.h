/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's own model of a collective's time, by which it chooses among its algorithms and protocols.
 * A closed form: other traffic is ignored.
 */
#pragma once

#include "program/op.h"
#include "sim/cost/device.h"
#include "sim/network/network.h"

typedef enum { LH_NCCL_TREE, LH_NCCL_RING, LH_NCCL_ALGORITHMS } LhNcclAlgorithm;
typedef enum { LH_NCCL_LL, LH_NCCL_LL128, LH_NCCL_SIMPLE, LH_NCCL_PROTOCOLS } LhNcclProtocol;

/* A group of ranks as NCCL sees it. */
typedef struct {
    uint64_t ranks, nodes;
    uint64_t channels;
    uint64_t compute_capability; /* 80: 8.0; 0: unknown */
    bool nvlink;                 /* ranks of a node communicate over NVLink, else over PCIe */
    double bus_gbps;             /* GB/s of all channels together: nocheck:unit: NCCL's unit */
} LhNcclGroup;

typedef struct {
    LhNcclAlgorithm algorithm;
    LhNcclProtocol protocol;
} LhNcclChoice;

/* Provenance of the constants for this device; links have their own in the topology. */
LhProvenance lh_nccl_provenance(const LhDevice *device);

/* Caller frees. */
LhNcclGroup *lh_nccl_group_new(const LhNetwork *network, const LhDevice *device,
                               const LhGroup *group);
void lh_nccl_group_free(LhNcclGroup *group);

/*
 * Seconds of a collective of @shard_bytes per rank: the minimum over the algorithms and protocols
 * that NCCL allows. Sets @choice to the fastest, unless NULL. Not for all-to-all, which NCCL
 * composes of sends.
 */
double lh_nccl_seconds(const LhNcclGroup *group, LhCollectiveKind kind, uint64_t shard_bytes,
                       LhNcclChoice *choice);

/* The part of a choice's time that does not depend on bytes. */
double lh_nccl_latency_s(const LhNcclGroup *group, LhCollectiveKind kind, uint64_t shard_bytes,
                         LhNcclChoice choice);
