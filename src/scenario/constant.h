/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that can be fitted: numbers of a device, a topology or a framework by name, and values
 * to try in their place.
 */
#pragma once

#include "model/framework.h"
#include "sim/cost/device.h"
#include "sim/network/topology.h"

typedef enum {
    LH_CONSTANT_ATTENTION_SLOWDOWN,   /* of the topology */
    LH_CONSTANT_PRODUCT_SLOWDOWN,     /* likewise */
    LH_CONSTANT_LINEAR_EFFICIENCY,    /* of the device */
    LH_CONSTANT_MATRIX_EFFICIENCY,    /* likewise */
    LH_CONSTANT_MEMORY_EFFICIENCY,    /* of the device */
    LH_CONSTANT_NVLINK_BANDWIDTH,     /* of the topology, bytes/s */
    LH_CONSTANT_NIC_BANDWIDTH,        /* likewise */
    LH_CONSTANT_COLLECTIVE_BANDWIDTH, /* likewise */
    LH_CONSTANT_FSDP_OVERHEAD,        /* of the framework, seconds */
    LH_CONSTANTS,
} LhConstant;

/* "attention_rate", ...; NULL-terminated. */
extern const char *const lh_constant_names[];

/* LH_CONSTANTS if there is none of this name. */
LhConstant lh_constant_find(const char *name);

/* What the file of a device, a topology or a framework has it. */
typedef enum { LH_OWNER_DEVICE, LH_OWNER_TOPOLOGY, LH_OWNER_FRAMEWORK } LhConstantOwner;

/* What files may say of it, and where it is in the struct of its owner. */
typedef struct {
    double least, most;
    LhConstantOwner owner;
    size_t offset; /* of a double */
} LhConstantRange;

extern const LhConstantRange lh_constant_ranges[LH_CONSTANTS];

/* Values to use; 0: the file's. */
typedef struct {
    double value[LH_CONSTANTS];
} LhConstants;

/* Lays them, within their ranges, over what files say; of a framework, over what its file has. */
void lh_constants_apply(const LhConstants *constants, LhDevice *device, LhTopology *topology);
void lh_constants_apply_framework(const LhConstants *constants, LhFramework *framework);

/* Makes the kernels of @device as slow as they are on @topology. */
void lh_slow_down(const LhTopology *topology, LhDevice *device);

/* The value in the files; @framework may be NULL: then 0. */
double lh_constant_value(LhConstant constant, const LhDevice *device, const LhTopology *topology,
                         const LhFramework *framework);
