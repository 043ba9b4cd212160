/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link between a GPU and the memory of its host, which copies of offloaded tensors take: PCIe,
 * or NVLink-C2C.
 */
#pragma once

#include "base/units.h"
#include "sim/cost/provenance.h"

#include <stdbool.h>

typedef enum {
    LH_DUPLEX_FULL, /* each direction has the whole bandwidth */
    LH_DUPLEX_HALF, /* both directions share it */
} LhDuplex;

/* Every GPU is taken to use its share of what GPUs share: the ranks of a step offload at the same
 * time. */
typedef struct {
    /* Bytes/s of copies in one direction; 0: the topology has no such link. */
    double bandwidth; /* nocheck:unit: named as in the file */
    LhTime latency_ps;
    int duplex;         /* LhDuplex */
    uint64_t shared_by; /* GPUs that share the bandwidth; 0: 1 */
    LhEvidence from;    /* provenance of the bandwidth */
    int latency_provenance;
} LhHostLink;

/* The CPUs of a node, which update the parameters whose optimizer states are in host memory. That
 * is bound by their memory; every rank of the node is taken to have an equal share. */
typedef struct {
    /* Bytes/s of memory traffic of all of a node's CPUs; 0: not known. */
    double bandwidth; /* nocheck:unit: named as in the file */
    LhEvidence from;
} LhHostCpu;

/* Seconds of a copy of @bytes, alone in its direction, and without a copy in the other one. */
static inline double
lh_host_link_seconds(const LhHostLink *link, uint64_t bytes)
{
    const double shared_by = link->shared_by > 1 ? (double)link->shared_by : 1;

    return (double)link->latency_ps / (double)LH_PS_PER_S +
           (double)bytes * shared_by / link->bandwidth;
}
