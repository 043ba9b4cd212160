/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: the rates of one GPU. Attention rates follow R(s) = R_inf / (1 + s0 / s), s the key
 * length of the block, on CPUs R(s, q) = R_inf / (1 + s0 / s + s1 / q), q its query length. Every
 * number has a provenance.
 */
#pragma once

#include "base/json/json.h"
#include "kernels/kernel.h"
#include "sim/cost/attention_tiles.h"
#include "sim/cost/provenance.h"

/* One fitted curve: kernel x mask x head dimension. */
typedef struct {
    char *kernel; /* row of the kernel table, e.g. "attention_fwd" */
    int mask;     /* 0 full, 1 causal */
    uint64_t head_dim;
    double rate;              /* R_inf, flop/s */
    double half_length;       /* s0, tokens of keys: the length at which half of R_inf is reached */
    double query_half_length; /* s1, tokens of queries, likewise; 0: the query length does not
                                 matter, as on GPUs, where tiles account for it */
    /* Tokens: shortest and longest block of the fit; 0: not stated. Beyond them the curve is
     * extrapolated. */
    uint64_t length_min, length_max;
    LhEvidence from;
    LhFitResiduals residuals;
} LhKernelRate;

/* The memory bandwidth of one elementwise kernel, where it is known. */
typedef struct {
    char *kernel;
    double bandwidth; /* bytes/s; nocheck:unit: named as in the file */
    LhEvidence from;
    LhFitResiduals residuals;
} LhKernelTraffic;

typedef enum { LH_ATTENTION_FWD, LH_ATTENTION_BWD } LhAttentionDirection;

/* Work of a serving system beside the tiles, for comparison with its measurements; 0: none. */
typedef struct {
    LhTime launch_ps;       /* of all kernels of a call */
    double append;          /* bytes/s; nocheck:unit: of keys and values into the cache */
    double queries;         /* bytes/s; nocheck:unit: of queries, and as much output */
    LhTime append_token_ps; /* of the append, for a token of LH_APPEND_ELEMENTS elements */
    bool split_keys;        /* among SMs, by FlashAttention-3's rule */
    double partials;        /* bytes/s; nocheck:unit: of outputs of split keys */
    uint64_t l2_bytes;      /* the device's L2 cache; 0: does not matter */
    double beyond_l2;       /* bytes/s; nocheck:unit: of data beyond half of the L2 */
} LhServing;

/* Relative error of calls of similar duration: four in five of the fitted measurements are within
 * @error of their predictions. */
typedef struct {
    LhTime until_ps; /* of shorter calls; 0: of all longer ones */
    double error;
} LhAttentionQuantile;

/* Measurements beside predictions: relative errors. */
typedef struct {
    uint64_t rows;       /* number of fitted measurements */
    double mean, worst;  /* absolute relative errors of these */
    double holdout_mean; /* mean of the half held out from a fit to the other half */
    double holdout;      /* worst of the held-out half */
    GArray *quantiles;   /* of LhAttentionQuantile, the shortest first; NULL: unknown */
} LhAttentionResiduals;

/* The attention kernel of a library: library x direction x head dimension x masks. */
typedef struct {
    char *library; /* "fa3" */
    int direction; /* LhAttentionDirection */
    uint64_t head_dim;
    GPtrArray *masks; /* of char *: "full", "causal" */
    int tile_of;      /* 0 queries, 1 keys: tiling.of_keys */
    int order;        /* LhTileOrder: tiling.order */
    LhTiling tiling;
    double rate;           /* R0, flop/s, of all SMs while cool */
    double sustained_rate; /* Rs, likewise, in the long run */
    LhTime knee_ps;        /* duration of a kernel whose rate is halfway */
    LhServing serving;
    LhAttentionResiduals residuals;
    LhEvidence from;
} LhAttentionRow;

#define LH_ATTENTION_KNEE_PS (4 * LH_PS_PER_S / 1000)

/* Memory used beside the program's buffers: by the driver's context and by libraries. */
typedef struct {
    uint64_t bytes;
    LhEvidence from; /* without a source LH_MEMORY_CONTEXT_BYTES is assumed */
} LhMemoryContext;

#define LH_MEMORY_CONTEXT_BYTES UINT64_C(1449551462) /* 1.35 GiB */

/* Minimum fraction of a peak that kernels reach; the maximum is 1. */
#define LH_EFFICIENCY_MIN 0.01

/* Fraction of the device's memory assumed to be lost to fragmentation. */
#define LH_MEMORY_MARGIN 0.02

typedef struct {
    char *name;
    char *description;
    char *source;
    double matrix_rate;       /* dense 16-bit tensor-core peak, flop/s */
    double matrix_efficiency; /* fraction of the peak reached by large matrix products, (0, 1] */
    int matrix_provenance;
    double linear_efficiency; /* fraction reached by kernels of linear attention; 0: unknown */
    LhEvidence linear_from;
    double fp32_rate; /* of products in fp32, without matrix units, flop/s; 0: unknown */
    LhEvidence fp32_from;
    uint64_t memory_capacity; /* bytes */
    double memory_bandwidth;  /* peak, bytes/s; nocheck:unit: named as in the file */
    double memory_efficiency; /* fraction of the peak reached by elementwise kernels, (0, 1] */
    int memory_provenance;
    LhMemoryContext memory_context;
    uint64_t sm_count;
    uint64_t compute_capability; /* times 10: 80 is 8.0; 0: not an NVIDIA GPU, or unknown */
    int host_provenance;         /* LhProvenance of the next two */
    LhTime kernel_launch_ps;     /* host time to issue one op */
    LhTime stream_sync_ps;       /* host time for a device synchronisation */
    /* Fraction of its speed that a rank loses while it has messages, measured on CPUs, whose cores
     * move them; 0: use the SMs held by messages ("ctas" of the links). */
    double messages_hold;
    /* Core sharing: each group of machine_ranks consecutive ranks shares machine_cores
     * (< machine_ranks) cores equally. 0: each rank has its cores to itself. */
    uint64_t machine_ranks, machine_cores;
    uint64_t tile_rows;     /* query rows of one thread block of the attention kernels */
    int tile_order;         /* LhTileOrder of these thread blocks */
    GArray *kernels;        /* of LhKernelRate */
    GArray *elementwise;    /* of LhKernelTraffic; NULL: none */
    GArray *attention;      /* of LhAttentionRow; NULL: none */
    char *attention_kernel; /* the library of these that is used; NULL: see lh_cost_init() */
    /* Rows of lh_device_fields that a profile gave, a bit each, and its source; NULL: no profile.
     */
    uint64_t profile_rows;
    char *profile_source;
    char *sha256;
    int schema; /* version of longhaul.device, from 0 */
} LhDevice;

/* Reads @name: a name (a file of devices/) or a path. */
LhDevice *lh_device_load(const char *name, GError **error);
LhDevice *lh_device_parse(const char *file, const char *text, gsize length, GError **error);
void lh_device_free(LhDevice *device);
/* Removes entry @curve from the device's kernels. */
void lh_device_drop_curve(LhDevice *device, guint curve);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhDevice, lh_device_free)

/* Rejects row @index of the lists "kernels" and "elementwise" of @json, a device or a profile, if
 * it duplicates an earlier row. */
bool lh_device_check_curve(const LhJson *json, const GArray *kernels, guint index, GError **error);
bool lh_device_check_traffic(const LhJson *json, const GArray *elementwise, guint index,
                             GError **error);

/* Rejects a device or profile @json that has only one of machine_ranks and machine_cores, or a core
 * for each rank. */
bool lh_device_check_machine(const LhJson *json, const LhDevice *device, GError **error);

/*
 * The curve for @kernel, mask and head dimension: exact, else linear between the two neighbouring
 * head dimensions, else the nearest one. A kernel without curves of its own gets those of the first
 * kernel in the file with the same effect (attention forward, attention backward); one with curves
 * for the other mask only gets those. A nearest head dimension or another mask makes the provenance
 * "assumed", another kernel at best "fitted". False if there is none (then: roofline). @rate is
 * filled by value (its strings are borrowed from the device).
 */
bool lh_device_rate(const LhDevice *device, const char *kernel, bool causal, uint32_t head_dim,
                    LhKernelRate *rate);

/* The row of @kernel in the table of elementwise kernels, or NULL. Borrowed. */
const LhKernelTraffic *lh_device_traffic(const LhDevice *device, const char *kernel);

/* Makes attention use the rows of @library, which must have some; NULL: curves first, as in
 * lh_cost_init(). */
void lh_device_use_library(LhDevice *device, const char *library);

/* Fraction of the peak reached by kernels of linear attention, stated or assumed. */
double lh_device_linear_efficiency(const LhDevice *device);

/* Flop/s of products in fp32, without matrix units, stated or assumed. */
double lh_device_fp32_rate(const LhDevice *device);

/* Memory used by context and libraries, stated or assumed. */
uint64_t lh_device_context_bytes(const LhDevice *device);

/* Memory available to a program: the device's memory without that of context and libraries, and
 * without the fraction @margin of its capacity, [0, 1]. 0 if nothing is left. */
uint64_t lh_device_usable_bytes(const LhDevice *device, double margin);
