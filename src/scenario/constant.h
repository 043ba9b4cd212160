/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that can be fitted: named numbers of a device, a topology or a framework, and values to
 * try in their place.
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

/* Returns LH_CONSTANTS if the name is unknown. */
LhConstant lh_constant_find(const char *name);

/* The file that has the constant: a device's, a topology's or a framework's. */
typedef enum { LH_OWNER_DEVICE, LH_OWNER_TOPOLOGY, LH_OWNER_FRAMEWORK } LhConstantOwner;

/* Range that files allow for a constant, and its place in the struct of its owner. */
typedef struct {
    double least, most;
    LhConstantOwner owner;
    size_t offset; /* of a double */
} LhConstantRange;

extern const LhConstantRange lh_constant_ranges[LH_CONSTANTS];

/* Values to use; 0: keep the file's value. */
typedef struct {
    double value[LH_CONSTANTS];
} LhConstants;

/* Replace the files' values by those of @constants, clamped to their ranges. The framework's
 * constant is replaced only if its file has it. */
void lh_constants_apply(const LhConstants *constants, LhDevice *device, LhTopology *topology);
void lh_constants_apply_framework(const LhConstants *constants, LhFramework *framework);

/* Applies the slowdowns of @topology to the kernels of @device. */
void lh_slow_down(const LhTopology *topology, LhDevice *device);

/* The value that the files give; @framework may be NULL: its constants are then 0. */
double lh_constant_value(LhConstant constant, const LhDevice *device, const LhTopology *topology,
                         const LhFramework *framework);
