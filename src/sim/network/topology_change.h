/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a topology by a scenario: the numbers that planners vary most, in place of those of
 * the file.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"
#include "sim/network/topology.h"

#include <stddef.h>

#define LH_NICS_MAX 4096 /* NICs, and GPUs, per node */
#define LH_OVERSUBSCRIPTION_MAX 1000
#define LH_NODES_MAX 1048576

/* 0: as in the file. */
typedef struct {
    uint64_t nics;      /* per node */
    double nic_rate;    /* bytes/s of transfers over one NIC, each direction; nocheck:unit: as the
                           option is called */
    double nvlink_rate; /* likewise of a GPU's NVLink; nocheck:unit: likewise */
    double oversubscription; /* of a fat tree's leaves */
} LhTopologyChange;

#define LH_TOPOLOGY_CHANGE_AT(at, member) ((at) + offsetof(LhTopologyChange, member))

/* Rows of a table of fields, for a struct with an LhTopologyChange at @at. */
#define LH_TOPOLOGY_CHANGE_FIELDS(at, marks)                                                       \
    { .name = "nics",                                                                              \
      .category = LH_ABOUT_CLUSTER,                                                                \
      .type = LH_FIELD_UINT,                                                                       \
      .offset = LH_TOPOLOGY_CHANGE_AT(at, nics),                                                   \
      .flags = (marks),                                                                            \
      .min = 1,                                                                                    \
      .max = LH_NICS_MAX,                                                                          \
      .description = "NICs per node, at most one per GPU; default: the topology's." },             \
        { .name = "nic_rate",                                                                      \
          .category = LH_ABOUT_CLUSTER,                                                            \
          .type = LH_FIELD_UNIT,                                                                   \
          .unit = LH_UNIT_PORT,                                                                    \
          .placeholder = "RATE",                                                                   \
          .offset = LH_TOPOLOGY_CHANGE_AT(at, nic_rate),                                           \
          .flags = (marks),                                                                        \
          .min = LH_BANDWIDTH_MIN,                                                                 \
          .max = LH_BANDWIDTH_MAX,                                                                 \
          .description = "Rate of a NIC in each direction: the port's rate in bits, such as "      \
                         "400G, of which transfers reach 96 %, or the transfers' rate in "         \
                         "bytes, such as 48GB/s; default: the topology's." },                      \
        { .name = "nvlink_rate",                                                                   \
          .category = LH_ABOUT_CLUSTER,                                                            \
          .type = LH_FIELD_UNIT,                                                                   \
          .unit = LH_UNIT_BANDWIDTH,                                                               \
          .placeholder = "RATE",                                                                   \
          .offset = LH_TOPOLOGY_CHANGE_AT(at, nvlink_rate),                                        \
          .flags = (marks),                                                                        \
          .min = LH_BANDWIDTH_MIN,                                                                 \
          .max = LH_BANDWIDTH_MAX,                                                                 \
          .description = "Bandwidth of transfers over the NVLinks of a GPU in each direction "     \
                         "(datasheets state the sum of both); default: the topology's." },         \
    {                                                                                              \
        .name = "oversubscription", .category = LH_ABOUT_CLUSTER, .type = LH_FIELD_DOUBLE,         \
        .offset = LH_TOPOLOGY_CHANGE_AT(at, oversubscription), .flags = (marks), .min = 1,         \
        .max = LH_OVERSUBSCRIPTION_MAX,                                                            \
        .description = "Oversubscription of a fat tree: bandwidth below a leaf switch over "       \
                       "that above it; default: the topology's."                                   \
    }

bool lh_topology_change_is_empty(const LhTopologyChange *change);

/* Returns why @topology does not allow the change, and sets *@field to the name of the field at
 * fault ("nic_rate"); NULL if it is allowed. Caller frees. */
char *lh_topology_change_refusal(const LhTopologyChange *change, const LhTopology *topology,
                                 const char **field);

/* Applies the change, which must be allowed. Measured times of collectives keep the links they were
 * measured on, so they change along with the rate. */
void lh_topology_change(LhTopology *topology, const LhTopologyChange *change);

/* "1, 2, 4, 8" for 8; caller frees. */
char *lh_topology_divisors(uint64_t number);
